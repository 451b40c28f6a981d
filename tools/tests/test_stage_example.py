"""Checks that the example of a stage with a register (examples/stage.patch) applies, compiles, and passes its packet
test."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs.markdown import ROOT
from tools.p4 import COMPILER
from topo.testbed.switches.embedded import BINARY as EMBEDDED

FILES = 6
"""The largest number of files that a developer edits by hand to add a stage."""
PATCH = ROOT / "examples/stage.patch"
TARGETS_AGREE = """
from tools import p4_objects, target_contract
ours, theirs = (p4_objects.of_sources(target) for target in ("v1model", "tna"))
assert ("register", "client_resets") in ours.keys() & theirs.keys()
assert target_contract.differences(ours, theirs) + target_contract.unlike() == []
"""
COMPILE = """
from tools import p4
p4.compile_one(p4.BUILDS[""], p4.BUILD)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the files that the example changes and its packet test needs, with the patch applied."""
    for folder in ("p4src", "controller", "tools", "topo", "ptf-tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        ["git", "apply", "--whitespace=error", str(PATCH)],
        cwd=tmp_path,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        check=True,
    )
    return tmp_path


def run(copy: Path, *arguments: str) -> None:
    """Run Python in the copy, with the copy's modules; if it fails, fail the test with its output."""
    path = os.pathsep.join(str(copy / folder) for folder in (".", "controller"))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_touches_few_files() -> None:
    touched = set(re.findall(r"^\+\+\+ b/(\S+)$", PATCH.read_text(), re.MULTILINE))
    assert "p4src/stages/resets.p4" in touched
    assert len(touched) <= FILES


def test_the_example_applies_and_its_targets_agree(copy: Path) -> None:
    run(copy, "-c", TARGETS_AGREE)
    run(copy, "-m", "tools.stage_heads")


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not on PATH: the example is not compiled")
@pytest.mark.skipif(os.geteuid() != 0, reason="packet tests make network namespaces and need root")
@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
def test_the_example_compiles_and_passes_its_packet_test(copy: Path) -> None:
    (copy / "target/release").mkdir(parents=True)
    (copy / "target/release/sluice-switch").symlink_to(EMBEDDED)
    run(copy, "-c", COMPILE)
    run(copy, "-m", "tools.gen_names")
    run(copy, "ptf-tests/run.py", "--switch", "embedded", "resets")
