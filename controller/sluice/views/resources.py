"""What ``sluice status`` shows of servers' TCP resources, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lines(name: str, shown: Mapping[str, Any]) -> list[str]:
    """A server's for a terminal."""
    text: list[str] = []
    if "send" in shown:
        one = shown["send"]
        text.append(
            f"{name} send buffers: {_kib(one['budget'])}; in flight {_kib(one['flight'])}, needed "
            f"{_kib(one['need'])}, shared out {_kib(one['share'])}; {one['transfers']} transfers, "
            f"{one['capped']} of them below their need; others {_kib(one['default_cap'])} each"
        )
    if "receive" in shown:
        one = shown["receive"]
        text.append(
            f"{name} receive buffers: {_kib(one['budget'])}; {one['connections']} open connections, "
            f"{_kib(one['default_cap'])} each"
        )
    if "idle" in shown:
        one = shown["idle"]
        limit = "an unknown number" if one["limit"] is None else str(one["limit"])
        text.append(
            f"{name} connections: {one['open']} of {limit}, {one['idle']} idle for {one['least_age_s']:g} s; "
            f"closed {one['closed']} of {one['asked']} asked, {one['lapsed']} without an answer, "
            f"{one['taken_back']} taken back, {one['raced']} raced"
        )
    return text


def _kib(octets: int) -> str:
    return f"{octets / 1024:,.0f} KiB"
