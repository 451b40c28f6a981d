"""Requests like those of the World Cup 98 logs, as Chen & Heidemann describe them, for machines without the logs.

Sizes: half of the answers are under 1 KB and 90 % are under 10 KB; the answers under 10 KB have half of all bytes. The
mean is about 3.5 KB. Rates: 20 per second until the onset, then 110 ("about 5 times in just several minutes", section
8.1; Fig. 18). Requests are a Poisson process. Four of five requests come from an earlier client, as with pages and
their pictures.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from topo.plan.requests import Request, write_log
from topo.plan.worldcup import Record, write_records

KB = 1000
SMALL_SHARE, MIDDLE_SHARE = 0.5, 0.4
SIZE_MIN, SIZE_MAX = 100, 150 * KB
TAIL_EXPONENT = 2.25
"""Exponent of the Pareto distribution of the largest tenth of the sizes, truncated at SIZE_MAX. With this exponent the
largest tenth has half of all bytes."""
AGAIN_SHARE = 0.8
"""Share of the requests that come from one of the latest RECENT_CLIENTS clients."""
RECENT_CLIENTS = 500


@dataclass(frozen=True, slots=True)
class Crowd:
    """The request rate over time; times in seconds, rates in requests per second, before time is compressed."""

    quiet_per_s: float = 20.0
    crowd_per_s: float = 110.0
    onset_s: float = 1000.0
    ramp_s: float = 60.0
    """Seconds in which the rate rises linearly from the quiet rate to the crowd's rate."""
    end_s: float = 2000.0
    over_s: float = math.inf
    """Time at which the rate returns to the quiet rate."""

    def rate(self, time_s: float) -> float:
        """Return the rate at a time."""
        if not self.onset_s <= time_s < self.over_s:
            return self.quiet_per_s
        risen = 1.0 if self.ramp_s <= 0 else min(1.0, (time_s - self.onset_s) / self.ramp_s)
        return self.quiet_per_s + risen * (self.crowd_per_s - self.quiet_per_s)


def draw_size(source: random.Random) -> int:
    """Draw the size of an answer in bytes."""
    kind = source.random()
    if kind < SMALL_SHARE:
        return round(_log_uniform(source, SIZE_MIN, KB - 1))
    if kind < SMALL_SHARE + MIDDLE_SHARE:
        return round(_log_uniform(source, KB, 10 * KB - 1))
    beyond = 1 - (10 * KB / SIZE_MAX) ** TAIL_EXPONENT
    return round(10 * KB * (1 - source.random() * beyond) ** (-1 / TAIL_EXPONENT))


def _log_uniform(source: random.Random, low: float, high: float) -> float:
    return low * math.exp(source.random() * math.log(high / low))


def synthesise(crowd: Crowd, server: str, *, seed: int) -> Iterator[Request]:
    """Generate the requests to `server` with the rates of `crowd`; equal arguments give equal requests."""
    source = random.Random(f"{seed} {server}")
    peak = max(crowd.quiet_per_s, crowd.crowd_per_s)
    recent: deque[int] = deque(maxlen=RECENT_CLIENTS)
    clients = 0
    now = 0.0
    while True:
        # Thinning (Lewis and Shedler): of a Poisson process with the peak rate, a share rate/peak of the events is
        # kept.
        now += source.expovariate(peak)
        if now >= crowd.end_s:
            return
        if source.random() * peak >= crowd.rate(now):
            continue
        if recent and source.random() < AGAIN_SHARE:
            client = source.choice(recent)
        else:
            client = clients
            clients += 1
            recent.append(client)
        yield Request(now, client, server, draw_size(source))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a synthesised log to the file that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.plan.synthesis", description=__doc__)
    parser.add_argument("output", type=Path, help="file to write")
    parser.add_argument("--worldcup", action="store_true", help="write the World Cup 98 binary format instead of CSV")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", default="target", help="name of the destination in the log")
    options = parser.parse_args(arguments)
    requests = synthesise(Crowd(), options.server, seed=options.seed)
    if options.worldcup:
        write_records(
            options.output, (Record(int(request.time_s), request.client, 0, request.size) for request in requests)
        )
    else:
        write_log(options.output, requests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
