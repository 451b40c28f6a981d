"""The requests of a run, and their distribution over the client hosts."""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from topo.plan.crowd.network import BYSTANDER, CROWD, TARGET, WITNESS
from topo.plan.crowd.scenarios import MODEM_BYTES_PER_S, Scenario, Settings
from topo.plan.requests import LogFormatError, Request, write_log
from topo.plan.synthesis import Crowd, synthesise
from topo.plan.worldcup import as_requests, read_records

SILENCE_S = 0.3
"""Seconds (not compressed) without requests at the beginning of the load, which is planned for the end of an interval
of the controller. A few requests that still fell into that interval would become its first estimate of the usual
rate."""


def target_requests(scenario: Scenario, settings: Settings) -> Iterator[Request]:
    """Return the requests to the target, before compression. In a scenario with slow clients, the requests
    from the onset on come over slow links. Raises LogFormatError for a log that cannot be replayed."""
    crowd = replace(settings.crowd(), over_s=settings.onset_s + scenario.lasts_s)
    requests = logged_requests(settings) if settings.log else synthesise(crowd, TARGET, seed=settings.seed)
    if not scenario.slow_clients:
        yield from requests
        return
    for request in requests:
        slow = request.time_s >= settings.onset_s
        yield replace(request, client_bytes_per_s=MODEM_BYTES_PER_S if slow else 0)


def logged_requests(settings: Settings) -> Iterator[Request]:
    """Return the requests of the log that the settings name, for the duration of the load. The log's crowd begins at
    the load's onset.

    Raises LogFormatError, with the file and the remedy, for a file that does not exist, has another format, or
    does not cover the load.
    """
    path, begin = Path(settings.log), settings.log_onset_s - settings.onset_s
    end, last = begin + settings.seconds, -math.inf
    if begin < 0:
        raise LogFormatError(
            f"{path}: a crowd {settings.log_onset_s:g} s after its beginning is too early: the load has"
            f" {settings.onset_s:g} s before the crowd; give a log that begins earlier, or another --onset"
        )
    try:
        for request in as_requests(read_records(path), TARGET, region=settings.log_region):
            last = request.time_s
            if last >= end:
                return
            if last >= begin:
                yield replace(request, time_s=last - begin)
    except (OSError, EOFError, zlib.error, LogFormatError) as error:
        raise LogFormatError(f"{path}: no World Cup 98 log can be read: {error}; give --log another file") from error
    if last < end - 1:
        holds = "has no requests" if last < 0 else f"ends after {last:.0f} s"
        raise LogFormatError(
            f"{path}: {holds}, and the load is from {begin:g} to {end:g} s of it: give a longer log, or another --onset"
            + ("" if settings.log_region is None else " or --region")
        )


def crowds_requests(scenario: Scenario, settings: Settings) -> Iterator[Request]:
    """Return the requests to the target and to the further services in the order of time, before compression; raise
    LogFormatError as `target_requests` does."""
    further = [synthesise(service.crowd(settings), service.name, seed=settings.seed) for service in scenario.further]
    return heapq.merge(target_requests(scenario, settings), *further, key=lambda item: item.time_s)


def bystander_requests(settings: Settings) -> Iterator[Request]:
    """Return the requests to the bystander: the same distribution of sizes as for the target, at a steady rate."""
    if not settings.web_per_s:
        return iter(())
    steady = Crowd(settings.web_per_s, settings.web_per_s, settings.onset_s, 0.0, settings.seconds)
    return synthesise(steady, BYSTANDER, seed=settings.seed)


def write_logs(directory: Path, crowds: Iterable[Request], bystander: Iterable[Request], k: float) -> dict[str, Path]:
    """Write a request log, with compressed times and without the requests of the first SILENCE_S seconds, for each
    client host; return the files by host. All requests of a client are on the same host."""
    shares: dict[str, list[Request]] = {host.name: [] for host in (*CROWD, WITNESS)}
    for request in heapq.merge(crowds, bystander, key=lambda item: item.time_s):
        if request.time_s < SILENCE_S * k:
            continue
        number, place = divmod(request.client, len(CROWD))
        host = WITNESS if request.server == BYSTANDER else CROWD[place]
        shares[host.name].append(replace(request, client=number).compressed(k))
    logs = {name: directory / f"{name}.log.csv" for name in shares}
    for name, requests in shares.items():
        write_log(logs[name], requests)
    return logs
