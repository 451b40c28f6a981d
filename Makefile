# sluice: every command a newcomer needs. `make help` lists them.
#
# Set-up is done by whatever target needs it, once: Debian packages, a virtual environment in .venv, the Rust programs in target.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-builtin-rules

PYTHON  ?= python3
SWITCH  ?= embedded
BIN     := .venv/bin
STAMPS  := .venv/stamps
SWITCHD := target/release/sluice-switch
P4SRC   := $(sort $(shell find p4src -name '*.p4'))
ARTEFACTS := p4src/build/sluice.json p4src/build/sluice.p4info.txtpb
export SWITCH
# Bytecode is kept, whatever the environment says: tests start hundreds of Pythons.
unexport PYTHONDONTWRITEBYTECODE

# Before set-up, which takes minutes.
ifeq ($(SWITCH)$(SDE_INSTALL),tofino)
ifneq ($(filter demo lab ptf experiments,$(MAKECMDGOALS)),)
$(error SWITCH=tofino needs $$SDE_INSTALL, an installation of open-p4studio whose bin/ has tofino-model and bf_switchd (docs/guide/tofino.md))
endif
endif

.PHONY: help demo lab news news-overhead news-phases test ptf ptf-page ptf-twin test-python test-simulation test-controller test-switch test-lab test-labs test-measured lint lint-python lint-switch format p4 p4-check bench dist experiments setup clean root
.DELETE_ON_ERROR:

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'
	@echo
	@echo "  SWITCH=bmv2 in front of demo, lab, ptf, news or experiments uses a stock simple_switch_grpc from PATH;"
	@echo "  SWITCH=tofino of demo, lab or ptf Tofino's model, with SDE_INSTALL=... of open-p4studio (docs/guide/tofino.md)."

demo: setup root ## the main job: three Apache servers, one of them loaded; equal split against R
	@$(BIN)/python -m topo.demo

lab: setup root ## the same network with Mininet's prompt, RECORD=x.pcap for `sluice replay`, CONTENT=1 content switching, RESOURCES=1 shared send buffers; SCENARIO=... runs one flash crowd (docs/reference/crowds.md)
ifdef SCENARIO
	@$(BIN)/python -m topo.labs.crowds --output results/lab --scenario $(SCENARIO) --variant $(or $(VARIANT),production) $(if $(HOUR),--hour) $(if $(LOG),--log '$(LOG)') $(if $(REGION),--region $(REGION)) $(if $(ONSET),--onset $(ONSET)) $(if $(LOSS),--loss $(LOSS))
else
	@$(BIN)/python -m topo.lab $(if $(RECORD),--record $(RECORD)) $(if $(CONTENT),--content) $(if $(RESOURCES),--resources)
endif

news: setup root ## the flash crowds of Chen & Heidemann: up to 45 min; QUICK=1 takes up to 10
	@$(BIN)/python -m topo.labs.crowds $(if $(QUICK),--quick)

news-overhead: setup root ## what flash-crowd control costs, T = 16 to 256 s: 12 min
	@$(BIN)/python -m topo.labs.crowds.series overhead

news-phases: setup root ## what the published control makes of a crowd, by when in an interval it begins: 13 min
	@$(BIN)/python -m topo.labs.crowds.series phases

# One computes while another waits, and what needs no switch runs while that is built; each one's output comes when it has ended.
# Labs have clients that give up, so no compiler runs beside them. What is measured runs alone.
test: ## set-up, then every check and every test
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target setup lint p4-check test-python test-switch ptf ptf-twin
	@$(MAKE) --no-print-directory test-lab
	@echo "sluice: every check and every test passed"

# What set-up has built of others is not built again (where cargo knows build-dir: 1.91), and the switch is not replaced.
test-switch: $(SWITCHD) ## tests of the embedded switch
	CARGO_BUILD_BUILD_DIR=target CARGO_TARGET_DIR=target/tests \
	  cargo test --quiet --workspace --tests --release --config .cargo/tests.toml

test-python: test-simulation test-controller ## tests of the simulation, the experiments, the controller and the tools

# Files with the longest tests first, and a process more than there are processors, for some tests wait.
PYTEST := $(BIN)/pytest -q --numprocesses $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder

test-simulation: $(STAMPS)/python
	$(PYTEST) sim experiments

test-controller: setup $(STAMPS)/checkers
	cargo build --release --quiet --package sluice-tofino --example stand_in_driver
	$(PYTEST) controller tools

ptf: setup root ## packet tests of the pipeline
	$(BIN)/python ptf-tests/run.py

ptf-page: $(STAMPS)/python ## docs/results/packet-tests.md, of the last run on each switch
	$(BIN)/python ptf-tests/page.py

ptf-twin: setup root ## the same, of the program with the parts of Tofino's that v1model can run (docs/reference/targets.md)
	$(BIN)/python ptf-tests/run.py --pipeline p4src/build/twin

test-lab: ## short lab runs with real TCP
	@$(MAKE) --no-print-directory --jobs=1 test-labs test-measured

# Labs wait more than they compute: two more than there are processors.
test-labs: setup root
	$(BIN)/pytest -q -m "not calm and not alone" --numprocesses $$(($$(nproc) + 2)) --dist loadfile --no-loadscope-reorder topo

test-measured: setup root
	$(BIN)/pytest -q -m "alone and not calm" topo

lint: lint-python lint-switch ## ruff, pyright, import rules, language, rustfmt, clippy

lint-python: $(STAMPS)/python
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	PYTHONPATH=controller:ptf-tests:. $(BIN)/lint-imports --no-cache --no-logo tools/imports.toml
	$(BIN)/python -m tools.language

# By the release profile, whose build scripts and macros are there already; behind the build, for cargo runs once at a time.
lint-switch: $(SWITCHD) $(STAMPS)/python
	$(BIN)/python -m tools.rust_imports .
	cargo fmt --check
	cargo clippy --release --quiet --workspace --all-targets -- -D warnings

format: $(STAMPS)/python ## let ruff and rustfmt lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt

p4: $(STAMPS)/python ## compile p4src/ with p4c, then generate the names; TARGET=tofino or tofino2: p4src/tna (docs/reference/targets.md)
ifneq ($(filter tofino tofino2,$(TARGET)),)
	$(BIN)/python -m tools.p4_tofino build $(TARGET)
else
	$(BIN)/python -m tools.gen_judge
	$(BIN)/python tools/p4.py build
	$(BIN)/python -m tools.gen_names
	$(BIN)/python -m tools.gen_reference
endif

p4-check: $(STAMPS)/python ## sources, artefacts and names agree, both targets too; no path touches a register twice; apply blocks are short; heads of stages agree with their code
	$(BIN)/python -m tools.apply_blocks
	$(BIN)/python -m tools.stage_heads
	$(BIN)/python -m tools.gen_judge --check
	$(BIN)/python tools/p4.py check
	$(BIN)/python -m tools.gen_names --check
	$(BIN)/python -m tools.gen_reference --check
	$(BIN)/python tools/register_touches.py p4src/build/sluice.json
	$(BIN)/python tools/gateway_conditions.py p4src/build/sluice.json
	$(BIN)/python -m tools.target_contract
	$(BIN)/python -m tools.p4_tofino check

bench: setup root ## the switch next to BMv2, the kernel's DNAT and a plain loop; QUICK=1: two minutes
	cargo build --release --quiet --examples
	@$(BIN)/python -m tools.bench $(if $(QUICK),--quick)

experiments: setup root ## the papers' figures and today's alternatives: some 19 hours; FIG=... one of them, QUICK=1: under 112 min (docs/results/README.md)
	@tools/install_packages.sh experiments/packages.txt
	cargo build --release --quiet --examples
	@$(BIN)/python -m experiments $(FIG) $(if $(QUICK),--quick)

dist: $(STAMPS)/python $(SWITCHD) ## wheels in dist/: the controller's, and one with sluice-switch, sluice-agent and sluice-tofino inside
	@$(BIN)/python -m tools.dist dist

# Set-up

setup: $(STAMPS)/system $(STAMPS)/python $(SWITCHD)

$(STAMPS)/python: pyproject.toml constraints.txt | $(STAMPS)/system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "sluice needs Python 3.11 or later as '$(PYTHON)'; name another one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --use-pep517 --constraint constraints.txt --editable '.[lab,page,dev]'
	@mkdir -p $(STAMPS) && touch $@

# The stamp outlives nothing: without the packages named in it, it is made again.
$(STAMPS)/system: tools/packages.txt topo/packages.txt
	@tools/install_packages.sh $^
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/checkers: tools/tests/packages.txt
	@tools/install_packages.sh $^
	@mkdir -p $(STAMPS) && touch $@

$(SWITCHD): $(shell find Cargo.toml Cargo.lock .cargo agent crates gateway switch -type f) | check-cargo
	cargo build --release --quiet
	@touch $@

.PHONY: check-cargo
check-cargo:
	@command -v cargo >/dev/null \
	  || { echo "sluice needs a Rust toolchain (1.91 or later): https://rustup.rs" >&2; exit 1; }

root:
	@test "$$(id -u)" = 0 \
	  || { echo "This makes network namespaces and needs root: run it with sudo" >&2; exit 1; }

clean: ## remove what set-up and runs left here
	rm -rf .venv dist results target
