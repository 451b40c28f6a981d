"""The requests of a run, shared out to the client hosts."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from topo.load.requestlog import Request, write_log
from topo.load.synthesise import Crowd, synthesise
from topo.news.plan import BYSTANDER, CROWD, TARGET, WITNESS
from topo.news.scenarios import MODEM_BYTES_PER_S, Scenario
from topo.news.settings import Settings

SILENCE_S = 0.3
"""The load begins so long after the log, measured (not compressed): what falls into the tail of the controller's empty
first interval would be its first idea of what is usual."""


def target_requests(scenario: Scenario, settings: Settings) -> Iterator[Request]:
    """Return the target's requests, before compression."""
    crowd = settings.crowd()
    if not scenario.slow_clients:
        yield from synthesise(crowd, TARGET, seed=settings.seed)
        return
    for one in synthesise(crowd, TARGET, seed=settings.seed):
        slow = one.time_s >= settings.onset_s
        yield replace(one, client_bytes_per_s=MODEM_BYTES_PER_S if slow else 0)


def bystander_requests(settings: Settings) -> Iterator[Request]:
    """Return the bystander's web requests: the same sizes, at a steady rate."""
    if not settings.web_per_s:
        return iter(())
    steady = Crowd(settings.web_per_s, settings.web_per_s, settings.onset_s, 0.0, settings.seconds)
    return synthesise(steady, BYSTANDER, seed=settings.seed)


def write_logs(directory: Path, target: Iterable[Request], bystander: Iterable[Request], k: float) -> dict[str, Path]:
    """Write a compressed log for each client host and return where they are; a client is always on the same host."""
    shares: dict[str, list[Request]] = {host.name: [] for host in (*CROWD, WITNESS)}
    for one in heapq.merge(target, bystander, key=lambda request: request.time_s):
        if one.time_s < SILENCE_S * k:
            continue
        number, place = divmod(one.client, len(CROWD))
        host = WITNESS if one.server == BYSTANDER else CROWD[place]
        shares[host.name].append(replace(one, client=number).compressed(k))
    logs = {name: directory / f"{name}.log.csv" for name in shares}
    for name, requests in shares.items():
        write_log(logs[name], requests)
    return logs
