"""Production mode: repeated SYNs of admitted connections raise no limit; Chen & Heidemann limit connections."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from news.fluid import TARGET
from sluice.news import News, NewsOptions, Observation, Requests

ONSET_S = 300
USUAL_PER_S, CROWD_PER_S = 20.0, 80.0


@settings(max_examples=12, deadline=None)
@given(st.floats(0, 6), st.floats(0.05, 0.2), st.integers(1, 9))
def test_the_first_limit_is_no_more_than_the_connections_of_any_second(
    repeats: float, slowed: float, seed: int
) -> None:
    """The server accepts 80 connections/s, and sends responses at ``slowed`` of their usual rate. Clients repeat each
    SYN ``repeats`` times on average before its answer comes."""
    random, news, requests = np.random.default_rng(seed), News(NewsOptions()), Requests()
    most_per_s = 0
    for second in range(ONSET_S + 120):
        in_crowd = second >= ONSET_S
        connections = int(random.poisson(CROWD_PER_S if in_crowd else USUAL_PER_S))
        repeated = int(random.poisson(connections * repeats)) if in_crowd else 0
        requests += Requests(offered=connections + repeated, admitted=connections)
        most_per_s = max(most_per_s, connections)
        rates = random.lognormal(12.0, 1.0, connections) * (slowed if in_crowd else 1.0)
        keys = random.integers(1, 1 << 62, connections, np.uint64)
        decision = news.observe(Observation(float(second), rates, {TARGET: requests}, flow_keys=keys))
        if decision is not None and decision.limits:
            assert decision.limits[TARGET].rate <= most_per_s
            return
    raise AssertionError("the crowd is not limited")
