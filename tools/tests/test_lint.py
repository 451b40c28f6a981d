"""Checks that the linters check every file of this repository, and refuse an import that the rules forbid."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from topo.testbed import REPOSITORY


def test_every_python_file_of_the_repository_is_linted() -> None:
    def lines(*command: str) -> set[Path]:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        return {REPOSITORY / line for line in done.stdout.splitlines()}

    owner = ("-c", f"safe.directory={REPOSITORY}")
    ours = lines("git", *owner, "ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    assert ours
    assert not {file for file in ours if file.exists()} - lines(sys.executable, "-m", "ruff", "check", "--show-files")


def test_an_import_against_the_rules_is_named(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "controller/sluice", tmp_path / "sluice", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "sluice/balance/window.py").open("a") as module:
        module.write("\nfrom sluice.loops import world\n")
    folders = (tmp_path, REPOSITORY / "ptf-tests", REPOSITORY)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", REPOSITORY / "tools/imports.toml"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "sluice.balance.window -> sluice.loops.world" in done.stdout
