"""Flows put together from several readings."""

import numpy as np
from sluice.news import FlowCollector


def test_last_reading_of_a_flow_counts() -> None:
    flows = FlowCollector()
    flows.add(np.array([1, 2], np.uint64), np.array([10.0, 20.0]))
    flows.add(np.array([2, 3], np.uint64), np.array([25.0, 30.0]))
    assert sorted(flows.take()) == [10.0, 25.0, 30.0]


def test_nothing_is_kept_for_the_next_interval() -> None:
    flows = FlowCollector()
    assert flows.take().size == 0
    flows.add(np.array([1], np.uint64), np.array([10.0]))
    assert flows.take().size == 1
    assert flows.take().size == 0
