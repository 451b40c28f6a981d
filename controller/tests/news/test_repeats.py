"""Test of production mode: repeated SYNs of admitted connections do not raise the limit, which counts connections."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from news.fluid import TARGET
from sluice.news import News, NewsOptions, Observation, Requests

ONSET_S = 300
USUAL_PER_S, CROWD_PER_S = 20.0, 80.0


def first_limit(repeats: float, slowed: float, seed: int) -> float:
    """Return the first limit in a crowd, in connections/s.

    The server accepts 80 connections/s, and sends responses at the share `slowed` of their usual rate. Clients repeat
    each SYN `repeats` times on average before the SYN-ACK arrives.
    """
    arrivals, repetitions = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    news, requests = News(NewsOptions()), Requests()
    for second in range(ONSET_S + 60):
        in_crowd = second >= ONSET_S
        connections = int(arrivals.poisson(CROWD_PER_S if in_crowd else USUAL_PER_S))
        repeated = int(repetitions.poisson(connections * repeats)) if in_crowd else 0
        requests += Requests(offered=connections + repeated, admitted=connections)
        rates = arrivals.lognormal(12.0, 1.0, connections) * (slowed if in_crowd else 1.0)
        keys = arrivals.integers(1, 1 << 62, connections, np.uint64)
        samples = [TARGET] * (connections + repeated)
        decision = news.observe(Observation(float(second), rates, {TARGET: requests}, samples=samples, flow_keys=keys))
        if decision is not None and decision.limits:
            return decision.limits[TARGET].rate
    raise AssertionError("the crowd is not limited")


@settings(max_examples=15, deadline=None)
@given(st.floats(0.5, 6), st.floats(0.05, 0.2), st.integers(1, 99))
def test_repeated_syns_raise_no_first_limit(repeats: float, slowed: float, seed: int) -> None:
    """With repeated SYNs the first limit is not higher than without them.

    It may be lower: the alarm can come a second earlier, when fewer connections of the crowd have been counted.
    """
    assert first_limit(repeats, slowed, seed) <= first_limit(0.0, slowed, seed)
