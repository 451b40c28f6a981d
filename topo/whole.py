"""A directory of results that is there as a whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(directory: Path) -> Generator[Path]:
    """Give a new directory beside `directory`, which takes its place at the end; nothing changes if this raises.

    Raises OSError where it cannot be written.
    """
    partial, replaced = (directory.with_name(directory.name + what) for what in (".partial", ".replaced"))
    if replaced.exists() and not directory.exists():  # ended between the two renames below
        replaced.rename(directory)
    for left in (partial, replaced):
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    if directory.exists():
        directory.rename(replaced)
    partial.rename(directory)
    shutil.rmtree(replaced, ignore_errors=True)
