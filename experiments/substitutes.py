"""Replacement of parts of sluice by substitutes, to measure the effect of the original parts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

Part = tuple[object, str, object]
"""A module or class, the name of its attribute, and the substitute of the attribute."""


@contextmanager
def substituted(parts: Sequence[Part]) -> Generator[None]:
    """Replace the attributes by their substitutes until the `with` block ends."""
    with ExitStack() as places:
        for owner, name, substitute in parts:
            places.enter_context(patch.object(owner, name, substitute))
        yield
