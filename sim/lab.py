"""The lab's flash crowds, simulated with the lab's size, settings and loads. The code that evaluates lab runs also
evaluates the simulated runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

import yaml
from sluice.addresses import Address, number
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.news import Decision

from topo.plan.crowd.configuration import controller_config
from topo.plan.crowd.measures import Records
from topo.plan.crowd.network import BYSTANDER, CROWD, OTHER, PORT, TARGET, WITNESS
from topo.plan.crowd.readings import Row, Sample
from topo.plan.crowd.scenarios import FRAME_BYTES, SERVER, Scenario, Settings, Variant
from topo.plan.crowd.traffic import bystander_requests, target_requests
from topo.plan.requests import Request

from . import syn
from .answers import AnswerServer, FastServer, SlowServer
from .clock import Clock
from .crowd import CrowdPlan, CrowdRun, Place, simulate
from .tcp import TcpPlan

_OTHERS, _OTHERS_SERVERS = IPv4Network("10.128.0.0/16"), IPv4Network("10.129.0.0/16")
"""Networks with the addresses of further destinations, and of the servers of these destinations."""

SLOW_REQUEST_US, SLOW_TURN_US = 277.0, 24.0
"""CPU time, in microseconds, that the lab's slow server uses per request and per block sent, in addition to the
configured cost of a block. Measured in the lab (experiments/servercost.py; docs/reference/simulation.md); the time
compression k does not apply to these costs."""


@dataclass(frozen=True, slots=True)
class Other:
    """A destination and the address of its server."""

    name: str
    address: Address
    server: Address


def other(number: int) -> Other:
    """Return the further destination with this number, counted from 0; the lab's own destinations have no numbers."""
    return Other(f"other-{number}", _OTHERS[number], _OTHERS_SERVERS[number])


def configuration(
    scenario: Scenario,
    variant: Variant,
    settings: Settings,
    static_per_s: float | None,
    *,
    others: int = 0,
    others_period_s: float = 10.0,
) -> Config:
    """Return the controller's configuration of a run in the lab, with ``others`` further destinations.

    ``others_period_s``: seconds between the controller's balancing decisions for the further destinations.
    """
    news = variant.news(settings)
    content = controller_config(scenario.server, settings=settings, static_per_s=static_per_s, news=news)
    services, routes = content["services"], content["routes"]
    assert isinstance(services, list) and isinstance(routes, list)
    content["services"] = [*services, *(_service(other(number), others_period_s) for number in range(others))]
    content["routes"] = [*routes, *([{"to": str(_OTHERS_SERVERS), "via": str(OTHER.address)}] if others else [])]
    return parse(yaml.safe_dump(content))


def _service(destination: Other, period_s: float) -> dict[str, object]:
    return {
        "name": destination.name,
        "address": str(destination.address),
        "port": PORT,
        "balance": {"mode": "fixed", "period_s": period_s, "window_s": period_s},
        "servers": [{"name": f"{destination.name}-server", "address": str(destination.server), "port": PORT}],
    }


def lab_plan(scenario: Scenario, variant: Variant, settings: Settings, static_per_s: float | None = None) -> CrowdPlan:
    """Return the plan of a run of `make news`, with time compressed by k as in the lab. `settings` must already include
    the scenario's changes (`Scenario.settle`)."""
    k = settings.k
    log = [*target_requests(scenario, settings), *bystander_requests(settings)]
    requests = sorted((request.compressed(k) for request in log), key=lambda request: request.time_s)

    def place(request: Request) -> Place:
        host = WITNESS if request.server == BYSTANDER else CROWD[request.client % len(CROWD)]
        return Place(host.round_trip_s / k, request.client_bytes_per_s * 8 or math.inf, (host.name, request.client))

    def servers(clock: Clock) -> Mapping[str, Sequence[AnswerServer]]:
        slow = SlowServer(
            clock,
            workers=settings.slow_workers,
            backlog=settings.slow_backlog,
            turn_s=(settings.slow_turn_us + SLOW_TURN_US) / 1e6 / settings.slow_cpus,
            request_s=SLOW_REQUEST_US / 1e6 / settings.slow_cpus,
        )
        return {TARGET: [slow if scenario is SERVER else FastServer()], BYSTANDER: [FastServer()]}

    return CrowdPlan(
        config=configuration(scenario, variant, settings, static_per_s),
        requests=requests,
        servers=servers,
        place=place,
        link_bit_per_s=settings.link_bit_per_s * k,
        room_bytes=(settings.queue_frames + settings.burst_frames) * FRAME_BYTES,
        end_s=settings.seconds / k,
        tcp=TcpPlan(settings.initcwnd, rto_min_s=settings.rto_min_s / k),
        syn_waits_s=syn.linear(),
        patience_s=settings.patience_s / k,
        bulk_bit_per_s=settings.bulk_bit_per_s * k,
        bulk_place=Place(WITNESS.round_trip_s / k),
        bulk_from=int(OTHER.address),
        sample_s=settings.period_s / k / 8,
        seed=settings.seed,
    )


def records(
    run: CrowdRun,
    *,
    period_s: float,
    onset_s: float,
    end_s: float,
    link_bit_per_s: float,
    controls: bool,
    crowd: bool = True,
) -> Records:
    """Return a simulated run's records in the format of a lab run's records."""
    return Records(
        period_s=period_s,
        onset_s=onset_s,
        end_s=end_s,
        link_bit_per_s=link_bit_per_s,
        controls=controls,
        crowd=crowd,
        outcomes=run.outcomes,
        bulk=run.bulk,
        samples=[
            Sample(moment, link.sent, link.sent_bytes, link.dropped, 0.0, 0, 0.0, 0, 0, 0) for moment, link in run.link
        ],
        rows=[row(decision) for decision in run.decisions],
    )


def row(decision: Decision) -> Row:
    """Return a decision as a row of the controller's trace."""
    return Row(
        time_s=decision.time_s,
        ar_bps=math.nan if decision.measurement.ar is None else decision.measurement.ar,
        offered_per_s=decision.measurement.offered,
        admitted_per_s=decision.measurement.admitted,
        refused_per_s=decision.measurement.refused,
        alarm=decision.detection.alarm,
        limit_per_s=math.nan if decision.limit is None else decision.limit.rate,
        hot_spot="" if decision.hot_spot is None else str(number(decision.hot_spot)),
        cause=str(decision.verdict.cause),
        limits=len(decision.limits),
    )


def simulate_lab(
    scenario: Scenario, variant: Variant, settings: Settings, static_per_s: float | None = None
) -> Records:
    """Simulate one run of `make news`, and return its records."""
    run = simulate(lab_plan(scenario, variant, settings, static_per_s))
    k = settings.k
    return records(
        run,
        period_s=settings.period_s / k,
        onset_s=settings.onset_s / k,
        end_s=settings.seconds / k,
        link_bit_per_s=settings.link_bit_per_s * k,
        controls=variant.controls,
        crowd=not scenario.false_alarm,
    )
