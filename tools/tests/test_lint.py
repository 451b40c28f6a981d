"""What the linter is told to leave out hides no file of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from topo.switches import REPOSITORY


def test_every_python_file_of_the_repository_is_linted() -> None:
    def lines(*command: str) -> set[Path]:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        return {REPOSITORY / line for line in done.stdout.splitlines()}

    owner = ("-c", f"safe.directory={REPOSITORY}")
    ours = lines("git", *owner, "ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    assert ours
    assert not {file for file in ours if file.exists()} - lines(sys.executable, "-m", "ruff", "check", "--show-files")
