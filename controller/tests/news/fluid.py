"""Simulate a bottleneck under a flash crowd in virtual time: fluid flows, a token bucket, clients that retry.

The model is Chen & Heidemann's testbed (Fig. 17): clients of very different access rates behind a link of 2 Mbit/s.
Half of the responses are below 1 KB, and nine in ten are below 10 KB but carry only half of the bytes. Requests
arrive as a Poisson process. Flows share the link max-min fairly; slow start is modelled as a number of round trips,
to which a full link adds its queueing delay. Clients repeat a refused SYN after 1, 2, 3 and 4 s. They abort a
response after 120 s on average: 60 s of patience, which half of them prolong (section 7.6.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sluice.addresses import Packed, from_text
from sluice.news import Decision, News, Observation, Requests
from sluice.news.rates import measured_share
from tokenbucket import TokenBucket

STEP_S = 0.5
QUEUE_S = 0.3
PATIENCE_S = 120.0
RETRY_S = 4
TARGET, BYSTANDER = from_text("10.0.0.100").packed, from_text("10.0.0.101").packed
Floats = NDArray[np.float64]


@dataclass
class Bottleneck:
    """The link with its flows and clients. Request rates are in requests/s, and `capacity` is in bytes/s."""

    news: News
    arrivals: Callable[[float], float]
    """Function from the time in seconds to the requests/s at the target of the crowd."""
    capacity: float = 250_000.0
    bystanders: float = 0.0
    upload: float = 0.0
    """Packets/s of an upload to the bystander destination, in addition to the packets of its requests."""
    seed: int = 1
    access_bps: tuple[float, float] = (12.0, 1.2)
    """Log-normal distribution of clients' access rates: mean and standard deviation of ln(rate in bit/s)."""
    now: float = 0.0
    decisions: list[Decision] = field(default_factory=list[Decision])
    carried: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Time in seconds and used share of the link, for each step of the simulation."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.buckets: dict[Packed | None, TokenBucket] = defaultdict(lambda: TokenBucket(STEP_S))
        self.counts = {TARGET: Requests(), BYSTANDER: Requests()}
        self.retries: dict[int, int] = defaultdict(int)
        self.refused_for_good = 0
        self.fresh = 0
        self.flows: Floats = np.zeros((4, 0))  # rows: size and remaining bytes, age in seconds, speed in bytes/s
        self.finished: list[Floats] = []
        self.samples: list[Packed] = []
        self.full = False
        self.news.observe(Observation(0.0, np.zeros(0), self.counts))

    def run(self, until_s: float) -> list[Decision]:
        """Simulate steps and observations until `until_s`; return all decisions up to then."""
        every = round(self.news.options.interval_s / STEP_S)
        while self.now < until_s - 1e-9:
            for _ in range(every):
                self._step()
            self._observe()
        return self.decisions

    def utilisation(self, start_s: float) -> float:
        return float(np.mean([share for time, share in self.carried if time >= start_s]))

    def _arrive(self, destination: Packed, fresh: int, again: dict[int, int]) -> int:
        """Pass new and repeated SYNs through admission; return the number of admitted SYNs."""
        wanting = fresh + sum(again.values())
        limited = None if None in self.news_limits else destination
        admitted = self.buckets[limited].admit(wanting) if limited in self.news_limits else wanting
        refused = wanting - admitted
        self.counts[destination] += Requests(wanting, admitted, refused)
        if wanting and destination == TARGET:
            for attempt, many in {0: fresh, **again}.items():
                back = round(refused * many / wanting)
                if attempt < RETRY_S:
                    self.retries[self._slot + round((attempt + 1) / STEP_S) * 8 + attempt + 1] += back
                else:
                    self.refused_for_good += back
        return admitted

    def restart(self, *, keeps_baseline: bool = False) -> None:
        """Replace the controller by a new one, which adopts the limits in the switch.

        If `keeps_baseline`, the new controller also continues from the baseline of the former one.
        """
        news = News(self.news.options)
        if keeps_baseline:
            assert self.news.usual is not None
            news.restore(self.news.usual)
        for target, limit in self.news.limits.items():
            news.adopt(target, limit.rate)
        self.news = news
        self.news.observe(Observation(self.now, np.zeros(0), dict(self.counts)))

    @property
    def news_limits(self) -> set[Packed | None]:
        return {target for target, bucket in self.buckets.items() if bucket.setting is not None}

    @property
    def _slot(self) -> int:
        return round(self.now / STEP_S) * 8

    def _step(self) -> None:
        again = {attempt: many for attempt in range(1, 8) if (many := self.retries.pop(self._slot + attempt, 0))}
        fresh = int(self.random.poisson(self.arrivals(self.now) * STEP_S))
        self.fresh += fresh
        new = self._arrive(TARGET, fresh, again)
        self.samples += [TARGET] * (fresh + sum(again.values()) + 4 * new)
        if self.bystanders:
            other = self._arrive(BYSTANDER, int(self.random.poisson(self.bystanders * STEP_S)), {})
            self.samples += [BYSTANDER] * (5 * other + round(self.upload * STEP_S))
            new += other
        self.flows = np.concatenate([self.flows, self._new_flows(new)], axis=1)
        self._transfer()
        self.now += STEP_S

    def _new_flows(self, count: int) -> Floats:
        kind = self.random.random(count)
        low = np.where(kind < 0.5, 200.0, np.where(kind < 0.9, 1000.0, 10_000.0))
        high = np.where(kind < 0.5, 1000.0, np.where(kind < 0.9, 10_000.0, 40_000.0))
        size = self.random.uniform(low, high)
        access = np.clip(np.exp(self.random.normal(*self.access_bps, count)) / 8, 2_600, 1_250_000)
        rtt = np.clip(self.random.lognormal(np.log(0.08), 0.5, count), 0.01, 1.5) + (QUEUE_S if self.full else 0.0)
        rounds = np.ceil(np.log2(size / 1460 / 2 + 1))
        return np.stack([size, size, np.zeros(count), size / (rounds * rtt + size / access)])

    def _transfer(self) -> None:
        size, remaining, age, speed = self.flows
        demand = np.minimum(remaining, speed * STEP_S)
        level = _fair_level(demand, self.capacity * STEP_S)
        sent = np.minimum(demand, level)
        self.full = bool(np.isfinite(level))
        self.carried.append((self.now, float(sent.sum()) / (self.capacity * STEP_S)))
        took = np.minimum(STEP_S, remaining / np.maximum(np.minimum(speed, level / STEP_S), 1e-9))
        remaining = remaining - sent
        age = age + took
        done = remaining <= 1e-6
        seen = done & self._measured(size)
        self.finished.append(size[seen] / age[seen])
        gone = done | (self.random.random(size.size) < STEP_S / PATIENCE_S)
        self.flows = np.stack([size, remaining, age, speed])[:, ~gone]

    def _measured(self, size: Floats) -> NDArray[np.bool_]:
        """Return which responses the switch measures; digits of a response's size replace the hash of its flow."""
        return size * 1e6 % 1 < measured_share(self.news.options.flow_share)

    def _observe(self) -> None:
        size, remaining, age, _ = self.flows
        alive = (size - remaining) / np.maximum(age, STEP_S)
        rates = np.concatenate([*self.finished, alive[(alive > 0) & self._measured(size)]]) * 8
        drawn = self.random.random(len(self.samples)) < 0.125
        sampled = [self.samples[index] for index in np.flatnonzero(drawn)]
        self.finished, self.samples = [], []
        decision = self.news.observe(Observation(self.now, rates, dict(self.counts), samples=sampled))
        assert decision is not None
        self.decisions.append(decision)
        for target, limit in decision.limits.items():
            self.buckets[target].set(limit)
        for target in set(self.buckets) - set(decision.limits):
            self.buckets[target].set(None)


def _fair_level(demand: Floats, capacity: float) -> float:
    """Return the max-min fair share of the capacity; infinity when the capacity satisfies all demands."""
    if demand.sum() <= capacity:
        return float("inf")
    ordered = np.sort(demand)
    before = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    levels = (capacity - before) / np.arange(ordered.size, 0, -1)
    return float(levels[np.argmax(levels <= ordered)])
