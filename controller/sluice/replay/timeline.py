"""Shows decisions to users: as a line or a JSON object per decision, and as a plot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.features import Balance, CrowdControl
from sluice.features.balance.trace import record
from sluice.loops.commands import Refused
from sluice.loops.world import World
from sluice.resources.sharer import Decision

from .driver import Balanced, Controlled, Shared
from .replay import Moment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTS = (".png", ".svg", ".pdf")
"""Suffixes of a plot's file."""


def line(world: World, moment: Moment, start_s: float) -> str:
    """Return a line for a decision: seconds since the first reading, its subject, the measurements and the decision."""
    head = f"{moment.time_s - start_s:9.2f} s  "
    match moment.event:
        case Balanced(service, decision):
            names = world.names(service)
            servers = "  ".join(
                f"{names[i]} {ratio:.3f} (S {decision.differences[i].syn} A {decision.differences[i].synack}"
                f" R {_r(decision.r[i])})"
                for i, ratio in decision.ratios.items()
            )
            return f"{head}{service.name}: {servers}  {decision.reason}"
        case Controlled(decision):
            measured = decision.measurement
            ar = "-" if measured.ar is None else f"{measured.ar / 1000:,.1f} kbit/s"
            return f"{head}news: AR {ar}, {measured.offered:,.1f} requests/s; {decision.sentence}"
        case Shared(decision):
            return f"{head}buffers: " + "  ".join(_shares(world, decision))


def _shares(world: World, decision: Decision) -> Iterator[str]:
    for server in world.plan.servers:
        if (summary := decision.send.get(server.id)) is not None:
            yield (
                f"{server.name} send {summary.transfers} transfers, need {summary.need / 1024:,.0f} KiB,"
                f" share {summary.share / 1024:,.0f}, others {summary.default / 1024:,.0f} each"
            )
        if (received := decision.receive.get(server.id)) is not None:
            yield f"{server.name} receive {received.connections} open, {received.default / 1024:,.0f} KiB each"


def _r(value: float | None) -> str:
    return "-" if value is None else "inf" if math.isinf(value) else f"{value:.3f}"


def as_json(world: World, moment: Moment) -> dict[str, Any]:
    """Return a decision as JSON: for a service, as in `--trace-file`; for flash-crowd control, as `Decision.row()` with
    None for NaN; for shared buffers, the summaries of send and receive buffers by `SERVICE/SERVER`."""
    time = {"time": round(moment.time_s, 3)}
    match moment.event:
        case Balanced(service, decision):
            return record(service, world[Balance].views[service.id], decision, wrote=False) | time
        case Controlled(decision):
            row = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in decision.row().items()}
            return {**time, "news": row}
        case Shared(decision):
            sides = (("send", decision.send), ("receive", decision.receive))
            buffers = {
                f"{service.name}/{server.name}": {
                    side: summaries[server.id]._asdict() for side, summaries in sides if server.id in summaries
                }
                for service in world.plan.services
                for server in service.servers
                if any(server.id in summaries for _, summaries in sides)
            }
            return {**time, "buffers": buffers}


def draw(world: World, moments: Sequence[Moment], start_s: float, file: Path) -> None:
    """Plot over time the ratio and R (the SYN loss ratio) of each server and, with flash-crowd control, the rate of the
    fastest responses (AR), the offered and admitted requests, their limit, and the alarms.

    Raises OSError, and Refused if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 (importing takes a second, and it is optional)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise Refused(f"{error}: a plot needs matplotlib (pip install 'sluice[lab]'); leave --plot out") from error
    mpl.use("Agg")
    panels = 2 * len(world.plan.services) + (2 if world[CrowdControl].view else 0)
    figure = Figure(figsize=(8, 2.2 * panels), layout="constrained")
    axes: list[Axes] = list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])
    for service in world.plan.services:
        upper, lower = axes.pop(0), axes.pop(0)
        names = world.names(service)
        rows = [
            (m.time_s - start_s, e.decision)
            for m in moments
            if isinstance(e := m.event, Balanced) and e.service.id == service.id
        ]
        for server in service.servers:
            times = [time for time, _ in rows]
            upper.step(times, [d.ratios[server.id] for _, d in rows], where="post", label=names[server.id])
            lower.plot(times, [_plain(d.r[server.id]) for _, d in rows])
        upper.set_ylabel(f"{service.name}: ratio")
        upper.legend(fontsize="small", ncols=4)
        lower.set_ylabel("R")
    if world[CrowdControl].view:
        upper, lower = axes
        decided = [(m.time_s - start_s, e.decision) for m in moments if isinstance(e := m.event, Controlled)]
        times = [time for time, _ in decided]
        upper.plot(times, [_plain(d.measurement.ar) / 1000 for _, d in decided])
        upper.set_ylabel("AR, kbit/s")
        lower.plot(times, [d.measurement.offered for _, d in decided], label="offered")
        lower.plot(times, [d.measurement.admitted for _, d in decided], label="admitted")
        lower.step(
            times, [math.nan if d.limit is None else d.limit.rate for _, d in decided], where="post", label="limit"
        )
        for time, decision in decided:
            if decision.detection.alarm:
                lower.axvline(time, color="C3", alpha=0.1)
        lower.set_ylabel("requests/s")
        lower.legend(fontsize="small", ncols=3)
    figure.supxlabel(f"s since {datetime.fromtimestamp(start_s, UTC):%Y-%m-%d %H:%M:%S} UTC")
    figure.savefig(file, dpi=120)


def _plain(value: float | None) -> float:
    return math.nan if value is None or math.isinf(value) else value
