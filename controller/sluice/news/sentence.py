"""Describes the verdict of flash-crowd control in one sentence for the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sluice.addresses import Packed

from .limit import Limit
from .verdict import Cause, Verdict
from .window import Measurement


def sentence(
    verdict: Verdict,
    measured: Measurement,
    limit: Limit | None,
    hot_spot: Packed | None,
    rates: tuple[float, float],
    *,
    others: Sequence[tuple[Packed, Limit, tuple[float, float]]] = (),
    everyone: bool,
    overall: bool = False,
    static: bool = False,
    unprotected: str | None = None,
    frozen: Sequence[str] = (),
    name: Callable[[Packed], str],
    server_name: Callable[[int], str],
) -> str:
    """Return one sentence for the operator.

    ``rates`` are the target's admitted and refused requests per second; with ``overall`` they are those of all
    destinations, because the hot spot is not counted. ``others``: further hot spots with limits and rates.
    ``everyone``: one limit applies to all destinations. ``static``: this mode sets no limits. ``unprotected``: the
    reason for which a crowd might raise no alarm. ``frozen``: if the verdict has ``freeze``, the names of the services
    whose weights stay; empty for all services.
    """
    where = "every destination" if everyone else "an unknown destination" if hot_spot is None else name(hot_spot)
    admitted, refused = rates
    unlimited = "limited as configured only" if static else "not limited yet"
    numbers = (
        f"{unlimited}, {admitted:.1f}/s admitted{' in all' if overall else ''}"
        if limit is None
        else f"limit {limit.rate:.1f}/s, {admitted:.1f}/s admitted, {refused:.1f}/s refused"
    )
    for other, theirs, (admitted_there, refused_there) in others:
        numbers += f"; at {name(other)}: limit {theirs.rate:.1f}/s"
        numbers += f", {admitted_there:.1f}/s admitted, {refused_there:.1f}/s refused"
    servers, is_single = _listed([server_name(server) for server in verdict.servers]), len(verdict.servers) == 1
    whose = f" of {_listed(frozen)}" if frozen else ""
    frozen_weights = f"; the weights{whose} are frozen" if verdict.freeze else ""
    match verdict.cause:
        case Cause.CROWD:
            worst = (
                f"; {servers} {'answers' if is_single else 'answer'} worse than the others" if verdict.servers else ""
            )
            return f"Flash crowd at {where}: {numbers}{worst}{frozen_weights}."
        case Cause.FLOOD:
            limited = f" ({where}: {numbers})" if limit is not None else ""
            return f"Flood of connection requests, {measured.offered:.1f}/s{limited}{frozen_weights}."
        case Cause.SICK:
            servers_leave = f"Sick server: {servers} leaves" if is_single else f"Sick servers: {servers} leave"
            return f"{servers_leave} connection requests unanswered; there is no crowd{frozen_weights}."
        case Cause.NORMAL:
            limits = f"; limit {limit.rate:.1f}/s kept at {where}" if limit is not None else ""
            limits += "".join(f", {theirs.rate:.1f}/s at {name(other)}" for other, theirs, _ in others)
            fast = "no responses" if measured.ar is None else f"fast responses at {measured.ar / 1000:.1f} kbit/s"
            warned = f"; a flash crowd may raise no alarm: {unprotected}" if unprotected else ""
            return f"Normal: {measured.admitted:.1f} requests/s, {fast}{limits}{warned}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
