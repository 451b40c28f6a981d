"""A factory of pytest fixtures that open a lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Literal, TypeVar

import pytest

Lab = TypeVar("Lab")


def lab_fixture(
    make: Callable[[], AbstractContextManager[Lab]], scope: Literal["module", "function"] = "module"
) -> object:
    """Return a fixture that opens the lab returned by `make`, once for all tests of a module, or for each test."""

    def running() -> Iterator[Lab]:
        with make() as lab:
            yield lab

    return pytest.fixture(scope=scope)(running)
