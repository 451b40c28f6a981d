"""A run of a scenario under a variant: build the lab, offer the load, write the raw records into a directory, and read
them."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from topo.labs.crowds.network import TRACE, CrowdLab
from topo.load.client import BULK_HEADER, BulkReceiver, ReplayClients
from topo.measure.capture import Recorder
from topo.measure.counts import PacketCounts
from topo.plan.crowd.measures import Records
from topo.plan.crowd.network import BULK_PORT, BYSTANDER, CROWD, OTHER, WITNESS
from topo.plan.crowd.readings import LinkCounts, Sample, read_rows, read_samples, write_samples
from topo.plan.crowd.scenarios import SCENARIOS, VARIANTS, Scenario, Settings, Variant
from topo.plan.crowd.traffic import SILENCE_S, bystander_requests, crowds_requests, write_logs
from topo.plan.outcomes import read_outcomes
from topo.results import program, replaced_directory, version
from topo.testbed.controller import CONFIGURATION
from topo.testbed.errors import SetupError
from topo.testbed.nodes import syn_retransmission
from topo.testbed.processes import Process, process_usage

SAMPLES_PER_INTERVAL = 16
STATUS_EVERY_SAMPLES = 8
LEAD_S = 2.0
"""Seconds that the clients need to start and to read their request logs."""
END_TIMEOUT_S = 20.0
FIRST_ROW_TIMEOUT_S = 30.0
"""Seconds, in addition to an interval, within which the controller must make its first decision. The controller makes
the decision at the end of its first interval."""
META = "meta.json"
BULK_FILE = "bulk.csv"
STATUS = "status.jsonl"
"""File of the flash-crowd control's entries in the controller's status: a JSON object per line, each with `time_s`, the
seconds since the load began."""
CAPTURE = "capture.pcap"
"""File of recorded packets; `sluice replay` reads it together with CONFIGURATION."""


@dataclass(frozen=True, slots=True)
class Run:
    """The definition of a run."""

    scenario: Scenario
    variant: Variant
    settings: Settings
    """The settings, including the scenario's changes."""
    static_per_s: float | None = None
    """A static limit on the target in requests per second, before compression; None: no such limit."""

    def identity(self, kind: str) -> dict[str, Any]:
        """Return a JSON object that identifies this run, including the versions of the programs that make it."""
        return {
            "scenario": self.scenario.name,
            "variant": self.variant.name,
            "static_per_s": self.static_per_s,
            "switch": kind,
            "version": version(kind),
            "settings": asdict(self.settings),
        }


def static_limit(variant: Variant, mean_per_s: float, k: float) -> float:
    """Return a static limit in requests per second, before compression. It is the mean limit ``mean_per_s`` of another
    run, divided by that run's compression ``k``.

    Raises SetupError if the other run never had a limit.
    """
    if math.isnan(mean_per_s):
        raise SetupError(f"{variant.name} takes its limit from {variant.static_from}, which limited nothing")
    return mean_per_s / k


def make_run(run: Run, kind: str, directory: Path, tick: Callable[[float], object], *, capture: bool = False) -> None:
    """Make the run and write its records into `directory`; at the end they replace all earlier content of the
    directory.

    `tick` is called with the remaining seconds of the load. With `capture`, the records include the packets at all
    ports of the switch and the controller's configuration. Raises SetupError if a program of the lab ends early.
    """
    settings, made_with = run.settings, program()
    limits: dict[str, Any] = {"news": run.variant.news(settings), "static_per_s": run.static_per_s}
    with CrowdLab(kind, settings, run.scenario.server, **limits, further=run.scenario.further) as lab:
        counts = (lab.quiet_packet_counts(), lab.link()) if lab.controlled else None
        recorder = Recorder(lab.switch.pid, lab.directory / CAPTURE) if capture else None
        if recorder is not None:
            lab.at_end(recorder.close)
        logs = write_logs(
            lab.directory, crowds_requests(run.scenario, settings), bystander_requests(settings), settings.k
        )
        period_s = settings.period_s / settings.k
        decided = first_decision(lab, period_s) if lab.controlled else time.time()
        start = _next_boundary(decided, period_s, time.time() + LEAD_S)
        clients = _start_clients(lab, logs, start, settings)
        statuses: list[Mapping[str, Any]] = []
        samples = sample(lab, start, settings, tick, statuses.append)
        if recorder is not None:
            recorder.stop()
        for client in clients:
            if client.wait(END_TIMEOUT_S):
                client.require_running()
        passed = None if counts is None else passed_since(lab, *counts)
        with replaced_directory(directory) as partial:
            captures = (CAPTURE, CONFIGURATION) if recorder is not None else ()
            controllers = (TRACE, "controller.log") if lab.controlled else ()
            named = (lab.directory / name for name in (BULK_FILE, *controllers, *captures))
            for path in (*lab.directory.glob("*-outcomes.csv"), *named):
                shutil.copy(path, partial)
            write_samples(partial / "samples.csv", samples)
            (partial / STATUS).write_text("".join(f"{json.dumps(status)}\n" for status in statuses))
            meta = run.identity(kind) | {
                "start": start,
                "program": made_with,
                "load": os.getloadavg()[0],
                "distance": lab.distance,
                "kernel": platform.release(),
                "syn_retransmission": syn_retransmission(lab.pid(WITNESS.name)),
                "switch_packets": passed,
            }
            (partial / META).write_text(json.dumps(meta, indent=2) + "\n")


def passed_since(lab: CrowdLab, packets: PacketCounts, link: LinkCounts) -> dict[str, int] | None:
    """Return the number of packets that passed the switch since an earlier reading, and the number of packets that the
    switch itself lost. Return None if packets are still in transit.

    Packets dropped by the bottleneck's filter count as sent by the switch and lost by the link.
    """
    try:
        since = lab.quiet_packet_counts().since(packets)
    except SetupError:
        lab.require_running()
        return None
    return {
        "received": since.received,
        "dropped": since.dropped,
        "lost_before": since.lost_before(),
        "lost_after": since.lost_after() - lab.link().since(link).dropped_packets,
    }


def is_done(run: Run, kind: str, directory: Path, since: float = 0.0) -> bool:
    """Return whether `directory` contains complete records of this run, made with the present versions of controller,
    lab, pipeline and switch.

    A run that began before `since` (in seconds, on the clock of time.time()) does not count.
    """
    try:
        meta = json.loads((directory / META).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    identity = json.loads(json.dumps(run.identity(kind)))
    return meta.get("start", 0.0) >= since and all(meta.get(name) == value for name, value in identity.items())


def first_decision(lab: CrowdLab, period_s: float) -> float:
    """Wait for the controller's first decision, and return its time, which is the end of an interval."""
    timeout_s = period_s + FIRST_ROW_TIMEOUT_S
    deadline = time.time() + timeout_s
    while time.time() < deadline:
        rows = read_rows(lab.directory / TRACE)
        if rows:
            return rows[0].time_s
        lab.require_running()
        time.sleep(0.01)
    raise SetupError(f"the controller has not decided anything in {timeout_s:g} s: see its log")


def _next_boundary(moment: float, period_s: float, earliest: float) -> float:
    """Return the first time, at or after `earliest`, that is an integral number of periods after `moment`."""
    periods = max(0.0, earliest - moment) / period_s
    return moment + (int(periods) + (periods > int(periods))) * period_s


def _start_clients(lab: CrowdLab, logs: Mapping[str, Path], start: float, settings: Settings) -> list[Process]:
    seconds, patience_s = settings.seconds / settings.k, settings.patience_s / settings.k
    servers = {name: f"{address}:{port}" for name, (address, port) in lab.places.items()}
    clients: list[Process] = []
    for client in (*CROWD, WITNESS):
        output, seed = str(lab.directory / f"{client.name}-outcomes.csv"), settings.seed + client.number
        log, pool = str(logs[client.name]), str(client.pool)
        replay = ReplayClients(log, pool, servers, start, seconds, output, patience_s, seed)
        clients.append(lab.start_program(replay, client.name))
    bulk, source = lab.directory / BULK_FILE, str(WITNESS.own_address)
    if settings.bulk_bit_per_s:
        receiver = BulkReceiver(str(OTHER.address), BULK_PORT, source, start, seconds, SILENCE_S, str(bulk))
        clients.append(lab.start_program(receiver, WITNESS.name))
    else:
        bulk.write_text(BULK_HEADER + "\n")
    return clients


def sample(
    lab: CrowdLab,
    start: float,
    settings: Settings,
    tick: Callable[[float], object],
    note: Callable[[Mapping[str, Any]], object] = lambda status: None,
) -> list[Sample]:
    """Take readings of the lab during the load, and return them. The last reading is from after the end of the load and
    includes the controller's status.

    `note` is called with the flash-crowd control's entry of each status, including `time_s`, the seconds since the load
    began.
    """
    step = settings.period_s / settings.k / SAMPLES_PER_INTERVAL
    seconds = settings.seconds / settings.k
    samples: list[Sample] = []
    due, refused = start, None
    while not samples or samples[-1].time_s < seconds:
        time.sleep(max(0.0, due - time.time()))
        lab.require_running()
        moment = time.time() - start
        link, received = lab.link(), lab.received_packets()
        if lab.controlled and (len(samples) % STATUS_EVERY_SAMPLES == 0 or moment >= seconds):
            status = lab.controller.ask(command="status")["news"]
            note({"time_s": moment, **status})
            refused = refused_of(status, BYSTANDER)
        samples.append(
            Sample(
                moment,
                link.sent_packets,
                link.sent_bytes,
                link.dropped_packets,
                *_usage(lab.switch.process),
                *_usage(lab.controller.process if lab.controlled else None),
                lab.slow.memory_bytes(),
                refused,
                received,
            )
        )
        tick(max(0.0, start + seconds - time.time()))
        due = max(due + step, time.time())
    return samples


def _usage(process: Process | None) -> tuple[float, int]:
    return (0.0, 0) if process is None else process_usage(process.pid)


def refused_of(status: Mapping[str, Any], service: str) -> int | None:
    """Return the number of refused SYNs to a service since the switch started, as reported in the controller's status.
    Return None if the service has no separate count."""
    rows = status["destinations"]
    return next((int(row["refused"]) for row in rows if row["name"].split()[0] == service), None)


# -- records


def read_records(directory: Path) -> Records:
    """Return the records of a complete run."""
    meta = json.loads((directory / META).read_text())
    settings = Settings(**meta["settings"])
    k = settings.k
    zero = float(meta["start"])
    return Records(
        period_s=settings.period_s / k,
        onset_s=settings.onset_s / k,
        end_s=settings.seconds / k,
        link_bit_per_s=settings.link_bit_per_s * k,
        slow_memory_bytes=settings.slow_memory_mb * 2**20,
        controls=VARIANTS[meta["variant"]].controls,
        crowd=not SCENARIOS[meta["scenario"]].false_alarm,
        outcomes=[outcome for path in sorted(directory.glob("*-outcomes.csv")) for outcome in read_outcomes(path)],
        bulk=_read_bulk(directory / "bulk.csv"),
        samples=read_samples(directory / "samples.csv"),
        rows=[replace(row, time_s=row.time_s - zero) for row in read_rows(directory / TRACE)],
    )


def made(directory: Path) -> dict[str, Any]:
    """Return how a complete run was made. `began`: begin of the run's load in seconds, on the clock of time.time().
    `load`: the machine's load average at the end, None if unknown. `program`: version of the programs that made the
    run, "" if unknown."""
    meta = json.loads((directory / META).read_text())
    return {"began": meta["start"], "load": meta.get("load"), "program": meta.get("program", "")}


def switch_packets(directory: Path) -> Mapping[str, int] | None:
    """Return the number of packets that passed the switch in a complete run, and the number that the switch itself
    lost; None if unknown."""
    return json.loads((directory / META).read_text()).get("switch_packets")


def conditions(directory: Path) -> str:
    """Return a line of text that describes the conditions of a run: how the distances are made, the TCP settings of the
    hosts, and the request log, if one was replayed."""
    meta = json.loads((directory / META).read_text())
    settings = Settings(**meta["settings"])
    return (
        f"distance: {meta['distance']}; initial window: {settings.initcwnd} segments;"
        f" congestion control: {settings.congestion_control}" + (f"; load: {settings.log}" if settings.log else "")
    )


def _read_bulk(path: Path) -> list[tuple[float, int]]:
    lines = (line.split(",") for line in path.read_text().splitlines()[1:])
    return [(float(moment), int(size)) for moment, size, _ in lines]
