"""Labs side by side: a worker of pytest-xdist has a network namespace of its own, as labs name interfaces alike."""

import pytest

from topo.testbed.namespaces import enter_new


def pytest_configure(config: pytest.Config) -> None:
    """Give a worker of pytest-xdist a namespace; without workers the tests stay in the current one."""
    if hasattr(config, "workerinput"):
        enter_new()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the slowest files first, each file in one piece; keep the order otherwise."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
