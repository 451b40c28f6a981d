"""A server at its cap of open connections gets no new ones while another server has room (spill before shed).

A server is full from the time it reaches its cap until an eighth of the cap (at least one connection) is free again.
Because of this margin, its state does not change with every connection. When all servers are full by this rule, servers
below their cap get connections again: no connection is refused while a server has room.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_FREE = 8
"""A full server gets new connections again when 1/_FREE of its cap is free."""


def released(cap: int) -> int:
    """Return the number of open connections at which a full server gets new connections again."""
    return cap - max(1, cap // _FREE)


def full_servers(
    caps: Mapping[int, int], open_now: Mapping[int, int], full: Collection[int], taking: Collection[int]
) -> frozenset[int]:
    """Return the full servers among those that have a cap.

    ``full`` are the full servers at the previous reading; ``taking`` are all servers that may get new connections, with
    or without a cap.
    """
    at_cap = frozenset(server for server, cap in caps.items() if open_now[server] >= cap)
    not_freed = at_cap | {server for server in full if server in caps and open_now[server] > released(caps[server])}
    return at_cap if not_freed.issuperset(taking) else not_freed


def refuses(full: Collection[int], taking: Collection[int]) -> bool:
    """Return whether new connections are to be refused: every server that may get new connections is full."""
    return bool(taking) and set(full).issuperset(taking)
