"""Connections whose hashes give them the same slots of the connection table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from .flow import Flow
from .plan import S1, WEB, Server
from .slots import colliding


@dataclass(frozen=True)
class Crowd:
    """Connections that share slots of the connection table.

    Each connection has two slots, in way 1 by one hash and in way 2 by another. `first` and `second` share their slots
    in way 1; all connections in `late` share both slots of `second`.
    """

    first: Flow
    second: Flow
    late: list[Flow]


def crowd(server: Server = S1, late: int = 4) -> Crowd:
    """Return flows of the web service that share slots and are sent to one server."""
    first = Flow(WEB, server)
    slot = first.key.slot_1
    second = next(colliding(first.key, slot_1=slot))
    keys = islice(colliding(second, slot_1=slot, slot_2=second.slot_2), late)
    return Crowd(first, Flow.of(second, WEB, server), [Flow.of(key, WEB, server) for key in keys])
