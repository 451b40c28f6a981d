"""Steps of the ratios: the step of Ohta & Andou (section 4.1, equation 6), and the step of production mode, which
relieves several servers at once."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .ratios import Ratios, normalised

HOLD = "held: no server is the cause"
"""The reason of a decision in which flash-crowd control kept the ratios as they are."""


def worst(r: Mapping[int, float | None], ratios: Mapping[int, float]) -> int | None:
    """Return the server with the largest R. Among servers with equal R it is the one with the larger ratio, then the
    one with the lower number.

    Returns None if no server is to give up a part of its ratio: no server has evidence, all servers with evidence have
    the same R, or the largest R is not above 0. If only one server has evidence, and it has losses, it is the worst.
    """
    known = {server: value for server, value in r.items() if value is not None}
    if not known:
        return None
    largest = max(known.values())
    if largest <= 0 or (len(known) > 1 and all(_same(value, largest) for value in known.values())):
        return None
    candidates = [server for server, value in known.items() if _same(value, largest)]
    return min(candidates, key=lambda server: (-ratios[server], server))


def _same(a: float, b: float) -> bool:
    return a == b or (math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=1e-12))


def shift(ratios: Mapping[int, float], source: int, delta: float) -> Ratios:
    """Return the ratios after the part ``delta`` of the ratio of server ``source`` has moved to the other servers, in
    equal amounts.

    In a service with a single server nothing moves.
    """
    if len(ratios) == 1:
        return dict(ratios)
    moved = delta * ratios[source]
    result = {server: ratio + moved / (len(ratios) - 1) for server, ratio in ratios.items()}
    result[source] = ratios[source] - moved
    return normalised(result)


def relieve(ratios: Mapping[int, float], gifts: Mapping[int, float], receivers: Mapping[int, float]) -> Ratios:
    """Return the ratios after each server in ``gifts`` has given up a part of its ratio (the server's value in
    ``gifts``, 0 to 1). The ``receivers`` share the sum in proportion to their values.

    Ohta & Andou relieve one server per period. If 30 of 300 servers are loaded, these servers then still have 0.67 of
    an equal share after three minutes. If all are relieved at once, they have 0.31 of it (simulated).

    So that a few receivers are not flooded, the ratio that moves is at most max(``gifts``) times the sum of the
    receivers' ratios, or the largest single gift if that is more. If all gifts together exceed this limit, they are
    reduced in proportion. Without receivers nothing moves.
    """
    amounts = {server: gift * ratios[server] for server, gift in gifts.items()}
    total, scale = sum(amounts.values()), sum(receivers.values())
    if total <= 0 or scale <= 0:
        return dict(ratios)
    most = max(gifts.values()) * sum(ratios[server] for server in receivers)
    moved = min(1.0, max(most, *amounts.values()) / total)
    return normalised(
        {
            server: ratio + moved * (total * receivers.get(server, 0.0) / scale - amounts.get(server, 0.0))
            for server, ratio in ratios.items()
        }
    )
