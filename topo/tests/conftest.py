"""Labs side by side: a worker of pytest-xdist has a network namespace of its own, as labs name interfaces alike."""

import pytest

from topo.testbed.namespaces import enter_new


def pytest_configure(config: pytest.Config) -> None:
    """A worker has `workerinput`; whoever runs the tests alone stays where they are."""
    if hasattr(config, "workerinput"):
        enter_new()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long first, each file in one piece; else the order stays."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
