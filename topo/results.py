"""Directories of results, and the version of the program that made the results. The content of a directory is replaced
only by complete results."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from topo.testbed import REPOSITORY
from topo.testbed.nodes import KERNEL, SWITCHES

PROGRAM = (
    *("agent", "crates", "gateway", "switch", "Cargo.lock", "Cargo.toml"),
    *("controller", "experiments", "p4src", "sim", "topo"),
)
"""Files and folders of the repository that determine the program's version; `docs` is not among them, because it
contains the program's results."""
PACKAGES = ("controller/sluice", "topo")
PIPELINE = "p4src/build/sluice.json"


@contextmanager
def replaced_directory(directory: Path) -> Generator[Path]:
    """Yield a new directory that replaces `directory` at the end of the context; if the context raises, `directory`
    stays unchanged.

    Raises OSError if the directory cannot be written.
    """
    partial, replaced = (directory.with_name(directory.name + suffix) for suffix in (".partial", ".replaced"))
    if replaced.exists() and not directory.exists():  # an earlier process ended between the two renames below
        replaced.rename(directory)
    for remains in (partial, replaced):
        shutil.rmtree(remains, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    if directory.exists():
        directory.rename(replaced)
    partial.rename(directory)
    shutil.rmtree(replaced, ignore_errors=True)


def results_directory(name: str, kind: str) -> Path:
    """Return the default directory of results; each kind of switch has its own."""
    return REPOSITORY / "results" / (name if kind == "embedded" else f"{name}-{kind}")


@cache
def program(*more: str) -> str:
    """Return the commit that is checked out, followed by ", changed" if the program's files differ from the commit; ""
    if git reports no commit.

    `more`: files and folders of the repository that belong to the program in addition to PROGRAM.

    Later calls return the result of the first call, because a running program does not change with a later checkout.
    """
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *PROGRAM, *more)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}, changed" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@cache
def version(kind: str) -> str:
    """Return a hash over the files of controller, lab, pipeline and switch; for the kind KERNEL, of controller and lab.

    Tests and documents are not part of the hash. Raises SetupError if the switch is not built.
    """
    sources = [
        path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py") if "tests" not in path.parts
    ]
    switch = [] if kind == KERNEL else [REPOSITORY / PIPELINE, Path(SWITCHES[kind].executable())]
    return digest(REPOSITORY, [*sources, *switch])


def digest(root: Path, files: Iterable[Path]) -> str:
    """Return a hexadecimal hash over the names and contents of files; raise OSError if a file cannot be read."""
    hashed = hashlib.sha256()
    for path in sorted(files):
        name = path.relative_to(root) if path.is_relative_to(root) else path.name
        hashed.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return hashed.hexdigest()[:16]
