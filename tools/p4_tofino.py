"""Compiles p4src/tna with p4c's Tofino back end, and performs those checks that do not need the back end.

There are two programs: `tofino`, and `tofino2` for Tofino 2, which also includes content switching. `build` needs
`p4c-barefoot` and its assembler `bfas` on PATH. It writes the files that a switch needs to p4src/build/NAME: P4Info
(with P4Runtime's standard externs), bfrt.json, the pipe's context.json and binary, the driver's configuration
(sluice.conf), and a manifest. It writes the compiler's report to results/NAME. If a program does not fit, or cannot be
assembled, nothing in p4src/build/NAME changes.

`check` compares the artefacts with the manifests, and reports the sources whose code has changed since. Comments are
not compared, because these artefacts contain no line numbers. (v1model's program contains them, so `tools/p4.py` hashes
complete files.) Then `check` runs p4c's front end over the programs, which checks syntax, names and types. Any
p4c-bm2-ss suffices, since it refuses the architecture only after its front end; the check also needs TNA's headers.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import p4_resources
from tools.p4 import BUILD, COMPILER, ROOT, TOFINO_BUILDS, Build, P4Error, code_sha256, differences, sha256, sources

BACK_END = "p4c-barefoot"
ASSEMBLER = "bfas"
DESCRIPTIONS = ("sluice.p4info.txtpb", "bfrt.json")
"""The files that p4c's front end writes: P4Info, and BF Runtime's description of the program."""
CONF, CONTEXT = "sluice.conf", "pipe/context.json"
HEADERS_VARIABLE = "TNA_INCLUDE"
NO_BACK_END = "main package  match the expected model"
OTHER_TARGET = "the main package should be called V1Switch"
"""Texts of an error and of a warning by which p4c-bm2-ss (1.2.5.16) refuses other architectures after its front end."""
NOT_SAID = ("uninitialized-use", "uninitialized-out-param", "unused")
"""Warnings that are suppressed. A RegisterAction reads variables that are set before its execution, but not before its
declaration; Tofino zeroes metadata (`pa_auto_init_metadata`); some constants and functions are used only by v1model."""


@dataclass(frozen=True)
class Program:
    """A program for Tofino: how it is compiled, and to which folders its artefacts and report are written."""

    name: str
    build: Build
    folder: Path
    """Folder of the program's artefacts."""
    report: Path
    """Folder of the compiler's report."""
    chip: str = "tofino"
    """The chip's name for p4c, the assembler and the driver."""

    @property
    def manifest(self) -> Path:
        """The file with the hashes of sources and artefacts."""
        return self.folder / "manifest.json"

    @property
    def binary(self) -> str:
        """The path of the assembler's binary, named after the chip; it is relative to the program's or the report's
        folder."""
        return f"pipe/{self.chip}.bin"

    @property
    def artefacts(self) -> tuple[str, ...]:
        """The file names of the artefacts, without the manifest."""
        return (*DESCRIPTIONS, CONF, CONTEXT, self.binary)

    @property
    def assembly(self) -> Path:
        """The path of the assembly code that the compiler writes for the assembler; it is named after the source."""
        return self.report / "pipe" / f"{Path(self.build.main).stem}.bfa"


PROGRAMS = {
    name: Program(name, build, BUILD / name, ROOT / "results" / name, "tofino2" if name == "tofino2" else "tofino")
    for name, build in TOFINO_BUILDS.items()
}


def headers() -> Path | None:
    """Return the folder of tna.p4: $TNA_INCLUDE, else that of an installed p4c, else None. Raises P4Error if
    $TNA_INCLUDE has no tna.p4."""
    if named := os.environ.get(HEADERS_VARIABLE):
        if not (Path(named) / "tna.p4").exists():
            raise P4Error(
                f"${HEADERS_VARIABLE} is {named}, which has no tna.p4: "
                "name backends/tofino/bf-p4c/p4include of p4c's sources"
            )
        return Path(named)
    compiler = shutil.which(COMPILER)
    installed = Path(compiler).resolve().parent.parent / "share/p4c/p4include" if compiler else None
    return installed if installed and (installed / "tna.p4").exists() else None


def front_end_errors(said: str) -> list[str]:
    """Return the errors in p4c-bm2-ss's output, except the error that it prints for every program of another target.

    Raises P4Error if the output has neither that error nor another one, because the front end then did not finish.
    """
    errors = [line for line in said.splitlines() if "error:" in line]
    others = [line for line in errors if NO_BACK_END not in line]
    if not others and len(errors) != 1:
        raise P4Error(f"{COMPILER} did not reach the end of its front end:\n{said}")
    return others


def check_front_end(program: Program) -> None:
    """Run the front end on the program; if p4c or TNA's headers are missing, only print a line. Raises P4Error with
    p4c's output if the front end refuses the program."""
    include = headers()
    if not shutil.which(COMPILER) or not include:
        print(
            f"p4-tofino: {program.build.main} not type-checked "
            f"(needs {COMPILER} on PATH and TNA's headers, ${HEADERS_VARIABLE})"
        )
        return
    command = [COMPILER, "-I", str(include), *(f"--Wdisable={kind}" for kind in NOT_SAID), "-o", os.devnull]
    command += program.build.arguments
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    warnings = [line for line in done.stderr.splitlines() if "warning:" in line and OTHER_TARGET not in line]
    if front_end_errors(done.stderr) or warnings:
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    print(f"p4-tofino: {program.build.main} passes p4c's front end (its back end is `make p4 TARGET={program.name}`)")


def compile_command(program: Program, folder: Path) -> Sequence[str]:
    """Return the command that compiles into a folder. Raises P4Error if no Tofino back end is on PATH."""
    if not shutil.which(BACK_END):
        raise P4Error(
            f"no {BACK_END} on PATH: build https://github.com/p4lang/p4c with -DENABLE_TOFINO=ON, "
            "and put the folder of it and of bfas on PATH"
        )
    p4info, bfrt = (str(folder / name) for name in DESCRIPTIONS)
    include = headers()
    core = include.parents[3] / "p4include" if include else None  # for a source tree; an installed p4c finds core.p4
    includes = [str(each) for each in (include, core) if each and each.is_dir()]
    return [
        *(BACK_END, "--target", program.chip, "--arch", p4_resources.CHIPS[program.chip].architecture, "-g"),
        *p4_resources.CHIPS[program.chip].options,
        *("--verbose", "-Ttable_summary:1,table_dependency_graph:3"),
        *(word for each in includes for word in ("-I", each)),
        *("--p4runtime-force-std-externs", "--p4runtime-files", p4info, "--bf-rt-schema", bfrt),
        *(f"--Wdisable={kind}" for kind in NOT_SAID),
        *("-o", str(folder)),
        *program.build.arguments,
    ]


def build(program: Program) -> None:
    """Compile, assemble and write the program's artefacts. Raises P4Error if a step fails, with the output of p4c or
    the assembler, or if the program does not fit."""
    report = program.report
    shutil.rmtree(report, ignore_errors=True)
    report.mkdir(parents=True)
    command = compile_command(program, report)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    (report / "said.txt").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    outcome = p4_resources.outcome(report)
    if not outcome.get("fits"):  # p4c succeeds even if the program needs more stages than the chip has
        there = p4_resources.CHIPS[program.chip].stages
        raise P4Error(f"the program takes {outcome.get('stages')} stages, and a pipe has {there}")
    if not has_selects(program.assembly.read_text()):
        raise P4Error(
            f"this {BACK_END} has lost every `select` of the parser, so that every packet takes the first case: "
            "docs/reference/targets.md has the line that mends it"
        )
    print(p4_resources.table(report))
    assemble(program)
    keep(program, outcome)
    print(f"p4-tofino: the program is in {relative(program.folder)}, the compiler's report in {relative(report)}")


def has_selects(assembly: str) -> bool:
    """Return whether the ingress parser has a select in one of the program's states (p4c at 34b86e9 drops all
    selects)."""
    parser = re.search(r"^parser ingress:$(.*?)^\S", assembly, re.MULTILINE | re.DOTALL)
    states = re.split(r"^    (?=\S)", parser[1], flags=re.MULTILINE) if parser else []
    return any(re.search(r"^      match: \[ \w", state, re.MULTILINE) for state in states if state.startswith("parse_"))


def assemble(program: Program) -> None:
    """Assemble the compiled program into the binary. Raises P4Error with the assembler's output on an error."""
    if not shutil.which(ASSEMBLER):
        raise P4Error(f"no {ASSEMBLER} on PATH: it is built with {BACK_END}, and makes the binary")
    command = [
        ASSEMBLER,
        "--target",
        program.chip,
        "-o",
        str((program.report / program.binary).parent),
        str(program.assembly),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")


def keep(program: Program, outcome: dict[str, object]) -> None:
    """Write the program to its folder, with a manifest that contains the hashes of sources and artefacts."""
    folder, report = program.folder, program.report
    shutil.rmtree(folder, ignore_errors=True)
    (folder / program.binary).parent.mkdir(parents=True)
    for name in (*DESCRIPTIONS, program.binary):
        shutil.copyfile(report / name, folder / name)
    context = json.loads((report / CONTEXT).read_text())
    del context["build_date"]
    (folder / CONTEXT).write_text(json.dumps(context, separators=(",", ":")) + "\n")
    (folder / CONF).write_text(json.dumps(configuration(program), indent=1) + "\n")
    manifest = {
        "p4c": version(),
        "outcome": outcome,
        "sources": sources(program.build, hashed=code_sha256),
        "artefacts": {name: sha256(folder / name) for name in program.artefacts},
    }
    program.manifest.write_text(json.dumps(manifest, indent=1) + "\n")


def configuration(program: Program) -> dict[str, object]:
    """Return the driver's configuration of a program, as p4c writes it, but with paths relative to the file's
    folder."""
    pipeline = {
        "p4_pipeline_name": "pipe",
        "context": CONTEXT,
        "config": program.binary,
        "pipe_scope": [0, 1, 2, 3],
        "path": ".",
    }
    described = {"program-name": "sluice", "bfrt-config": DESCRIPTIONS[1], "p4_pipelines": [pipeline]}
    device = {"device-id": 0, "p4_programs": [described], "agent0": "lib/libpltfm_mgr.so"}
    return {"chip_list": [{"chip_family": program.chip, "instance": 0}], "p4_devices": [device]}


def version() -> str:
    """Return the version of the back end on PATH."""
    done = subprocess.run([BACK_END, "--version"], check=False, capture_output=True, text=True)
    versions = [line.split()[1] for line in (done.stdout + done.stderr).splitlines() if line.startswith("Version")]
    return versions[0] if versions else "unknown"


def relative(path: Path) -> str:
    """Return a path relative to the repository's root."""
    return str(path.relative_to(ROOT))


def check_artefacts(program: Program) -> None:
    """Raise P4Error if an artefact differs from the manifest; print a line if the program has not been built, or its
    sources have changed since the build."""
    where = relative(program.folder)
    if not program.manifest.exists():
        print(f"p4-tofino: nothing compiled in {where}")
        return
    manifest = json.loads(program.manifest.read_text())
    hashes = {name: sha256(program.folder / name) for name in program.artefacts if (program.folder / name).exists()}
    if changed := differences(manifest["artefacts"], hashes):
        raise P4Error(f"edited by hand, or missing: {where}/{', '.join(changed)}: run `make p4 TARGET={program.name}`")
    changed = differences(manifest["sources"], sources(program.build, hashed=code_sha256))
    since = f"; changed since: {', '.join(changed)}" if changed else ", of these sources"
    print(f"p4-tofino: {where} agrees with its manifest{since}")


def check() -> None:
    """Check the artefacts of all programs, then run the front end over them."""
    for program in PROGRAMS.values():
        check_artefacts(program)
        check_front_end(program)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `build` for one program, or `check` for all, as the command line demands; return the exit status."""
    parser = argparse.ArgumentParser(description="Compiles p4src/tna, or checks it as far as p4c's front end goes.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("program", nargs="?", choices=PROGRAMS, default="tofino")
    commands.add_parser("check")
    options = parser.parse_args(arguments)
    try:
        build(PROGRAMS[options.program]) if options.command == "build" else check()
    except P4Error as error:
        print(f"p4: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
