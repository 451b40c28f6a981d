"""Spill before shed: a server at its cap of open connections gets no new ones while another has room.

A server is full at its cap, and until an eighth of it is free again (one connection at least), so that it neither
flaps nor starves. Where all that take connections are full by that, those below their cap are let in all the same:
nothing is refused while one has room.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_FREE = 8
"""One in so many of a cap's connections has to be free before a server that was full gets new ones."""


def released(cap: int) -> int:
    """Open connections at which a server that was full is not any more."""
    return cap - max(1, cap // _FREE)


def full_servers(
    caps: Mapping[int, int], open_now: Mapping[int, int], full: Collection[int], taking: Collection[int]
) -> frozenset[int]:
    """The full ones among the servers that have a cap.

    ``full`` are those of the look before; ``taking`` all servers that could be given connections, capped or not.
    """
    at_cap = frozenset(server for server, cap in caps.items() if open_now[server] >= cap)
    held = at_cap | {server for server in full if server in caps and open_now[server] > released(caps[server])}
    return at_cap if held.issuperset(taking) else held


def refuses(full: Collection[int], taking: Collection[int]) -> bool:
    """Whether new connections are to be refused: every server that could be given one is full."""
    return bool(taking) and set(full).issuperset(taking)
