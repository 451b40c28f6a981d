"""Parts of the product that an experiment puts something else in place of, to measure what they are worth."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

Part = tuple[object, str, object]
"""A module or class, the name of an attribute of it, and the attribute's substitute."""


@contextmanager
def substituted(parts: Sequence[Part]) -> Generator[None]:
    """Put the substitutes in place until the block ends."""
    with ExitStack() as places:
        for owner, name, substitute in parts:
            places.enter_context(patch.object(owner, name, substitute))
        yield
