"""Tests of Padhye et al.'s throughput equation: cases calculated by hand, and limiting cases.

p is the loss rate, b the number of segments per ACK, W the window in segments at which a loss ends its growth, Q the
share of losses that only a timeout detects, and f the factor by which repeated timeouts lengthen the time without
sending.
"""

from math import sqrt

import numpy as np
import pytest
from sluice.resources.throughput import Column, segments_per_s


def one(loss: float, rtt_s: float = 0.1, rto_s: float = 0.2, limit: float = 1e9) -> float:
    def column(value: float) -> Column:
        return np.array([value])

    return float(segments_per_s(column(loss), column(rtt_s), column(rto_s), column(limit))[0])


def test_a_percent_by_hand() -> None:
    """At p = 0.01, b = 2: W = 2/3 + sqrt(132 + 4/9) = 12.1752, Q = 0.0322396 / 0.115172 = 0.279925, f = 1.010204."""
    sent = 99 + 12.1752 + 0.279925 / 0.99
    took_s = 0.1 * (12.1752 + 1) + 0.279925 * 0.2 * 1.010204 / 0.99
    assert one(0.01) == pytest.approx(sent / took_s, rel=1e-5)
    assert one(0.01) == pytest.approx(81.08, abs=0.01)


def test_a_window_that_limits_by_hand() -> None:
    """At p = 0.001, the largest window Wm = 10 is below W = 37.2: Q = 0.002997 * 1.006958 / 0.00995512 = 0.303147."""
    sent = 999 + 10 + 0.303147 / 0.999
    took_s = 0.1 * (2.5 + 99.9 + 2) + 0.303147 * 0.2 * 1.001002 / 0.999
    assert one(0.001, limit=10) == pytest.approx(sent / took_s, rel=1e-5)


def test_without_a_loss_the_window_alone_limits() -> None:
    assert one(0.0, limit=44) == pytest.approx(440)
    assert one(1e-9, limit=44) == pytest.approx(440, rel=0.01)


def test_where_all_is_lost_nothing_arrives() -> None:
    assert one(1.0) == 0.0
    assert 0 < one(0.99) < 1


def test_rare_losses_follow_the_square_root() -> None:
    """For rare losses, and so hardly any timeouts, the throughput approaches the formula of Mathis et al.

    It is 1 / (RTT sqrt(2bp/3)); here the RTT is 0.1 s, and b is 2.
    """
    assert one(1e-6) == pytest.approx(1 / (0.1 * sqrt(4e-6 / 3)), rel=0.02)


def test_more_loss_a_longer_way_a_smaller_window_never_gain() -> None:
    losses = np.geomspace(1e-7, 0.9, 60)
    for limit in (2.0, 3.0, 4.0, 40.0, 1e6):
        rates = segments_per_s(losses, np.full(60, 0.05), np.full(60, 0.2), np.full(60, limit))
        assert (np.diff(rates) < 0).all()
    assert one(0.01, rtt_s=0.2) < one(0.01, rtt_s=0.1)
    assert one(0.01, rto_s=1.0) < one(0.01, rto_s=0.2)
    assert one(0.01, limit=5) < one(0.01, limit=50)
