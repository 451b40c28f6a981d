"""pytest hooks that let labs run in parallel: each worker of pytest-xdist has its own network namespace, because all
labs use the same interface names."""

import pytest

from topo.testbed.namespaces import enter_new


def pytest_configure(config: pytest.Config) -> None:
    """Move a worker of pytest-xdist into a new network namespace; without workers the tests run in the current
    namespace."""
    if hasattr(config, "workerinput"):
        enter_new()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest test files (mark `long`) first; the order is otherwise unchanged."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
