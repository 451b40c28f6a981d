"""Tests of the measurement of flows, which combines several readings."""

import numpy as np
import pytest
from sluice.news import FlowCollector, ObservationError
from sluice.news.flows import matched
from sluice.news.lasting import Portion
from sluice.news.requests import Interval
from sluice.news.window import MeasurementWindow


def test_last_reading_of_a_flow_counts() -> None:
    flows = FlowCollector()
    flows.add(np.array([1, 2], np.uint64), np.array([10.0, 20.0]))
    flows.add(np.array([2, 3], np.uint64), np.array([25.0, 30.0]))
    keys, rates = flows.take()
    assert dict(zip(keys.tolist(), rates.tolist(), strict=True)) == {1: 10.0, 2: 25.0, 3: 30.0}


def test_nothing_is_kept_for_the_next_interval() -> None:
    flows = FlowCollector()
    assert flows.take()[1].size == 0
    flows.add(np.array([1], np.uint64), np.array([10.0]))
    assert flows.take()[1].size == 1
    assert flows.take()[1].size == 0


def test_bulk_transfer_counts_once_in_a_window() -> None:
    window = MeasurementWindow(4)
    for i in range(4):
        keys = np.array([7, *range(100 + 20 * i, 119 + 20 * i)], np.uint64)
        window.push(np.array([1000.0, *[10.0] * 19]), Interval(1.0, {}), keys)
    measured = window.measure(0.1, 10)
    assert (measured.flows, measured.ar) == (77, (1000 + 6 * 10) / 7)


def test_keys_that_are_not_as_many_as_the_flows_are_refused() -> None:
    with pytest.raises(ObservationError, match="2 keys for 1 flows: give one each"):
        matched(np.zeros(2, np.uint64), np.zeros(1))
    assert matched(None, np.zeros(1)) is None


def test_a_time_when_more_was_measured_counts_for_no_more() -> None:
    """The first reading measures all keys, the second a quarter of the keys: those whose last two bits are zero.

    Only keys of that quarter count from both readings.
    """
    flows = FlowCollector()
    flows.add(np.arange(1, 9, dtype=np.uint64), np.full(8, 10.0))
    flows.add(np.array([8, 12], np.uint64), np.array([20.0, 30.0]), 0.25)
    assert flows.share == 0.25
    keys, rates = flows.take()
    assert dict(zip(keys.tolist(), rates.tolist(), strict=True)) == {4: 10.0, 8: 20.0, 12: 30.0}
    assert flows.share == 1.0
    window = MeasurementWindow(4)
    window.push(np.full(8, 10.0), Interval(1.0, {}), np.arange(1, 9, dtype=np.uint64))
    window.push(np.array([20.0, 30.0]), Interval(1.0, {}), np.array([8, 12], np.uint64), 0.25)
    assert window.measure(1.0, 10).ar == pytest.approx(20.0)
    assert window.measure(1.0, 10).lasting == Portion(1, 2)
