"""What is going on, in one sentence for a person."""

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
    """One sentence.

    ``rates`` are the target's admitted and refused requests per second; ``overall``: of all destinations, though one is
    meant. ``others``: further hot spots, their limits and rates. ``static``: this mode never limits. ``unprotected``:
    why a crowd might raise no alarm. ``frozen`` names the services whose weights are held, where these are not all.
    """
    where = "every destination" if everyone else "an unknown destination" if hot_spot is None else name(hot_spot)
    admitted, refused = rates
    unlimited = "limited as configured only" if static else "not limited yet"
    numbers = (
        f"{unlimited}, {admitted:.1f}/s admitted{' in all' if overall else ''}"
        if limit is None
        else f"limit {limit.rate:.1f}/s, {admitted:.1f}/s admitted, {refused:.1f}/s refused"
    )
    for other, theirs, (passed, held_back) in others:
        numbers += f"; at {name(other)}: limit {theirs.rate:.1f}/s, {passed:.1f}/s admitted, {held_back:.1f}/s refused"
    servers, one = _listed([server_name(server) for server in verdict.servers]), len(verdict.servers) == 1
    whose = f" of {_listed(frozen)}" if frozen else ""
    held = f"; the weights{whose} are frozen" if verdict.freeze else ""
    match verdict.cause:
        case Cause.CROWD:
            worst = f"; {servers} {'answers' if one else 'answer'} worse than the others" if verdict.servers else ""
            return f"Flash crowd at {where}: {numbers}{worst}{held}."
        case Cause.FLOOD:
            limited = f" ({where}: {numbers})" if limit is not None else ""
            return f"Flood of connection requests, {measured.offered:.1f}/s{limited}{held}."
        case Cause.SICK:
            who = f"Sick server: {servers} leaves" if one else f"Sick servers: {servers} leave"
            return f"{who} connection requests unanswered; there is no crowd{held}."
        case Cause.NORMAL:
            kept = f"; limit {limit.rate:.1f}/s kept at {where}" if limit is not None else ""
            kept += "".join(f", {theirs.rate:.1f}/s at {name(other)}" for other, theirs, _ in others)
            fast = "no responses" if measured.ar is None else f"fast responses at {measured.ar / 1000:.1f} kbit/s"
            warned = f"; a flash crowd may raise no alarm: {unprotected}" if unprotected else ""
            return f"Normal: {measured.admitted:.1f} requests/s, {fast}{kept}{warned}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
