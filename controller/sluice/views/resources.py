"""Renders the part of ``sluice status`` about servers' TCP resources as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lines(name: str, shown: Mapping[str, Any]) -> list[str]:
    """Return the state of a server's resources as lines for a terminal."""
    text: list[str] = []
    if "send" in shown:
        row = shown["send"]
        text.append(
            f"{name} send buffers: {_kib(row['budget'])}; in flight {_kib(row['flight'])}, needed "
            f"{_kib(row['need'])}, shared out {_kib(row['share'])}; {row['transfers']} transfers, "
            f"{row['capped']} of them below their need; others {_kib(row['default_cap'])} each"
        )
    if "receive" in shown:
        row = shown["receive"]
        text.append(
            f"{name} receive buffers: {_kib(row['budget'])}; {row['connections']} open connections, "
            f"{_kib(row['default_cap'])} each"
        )
    if "idle" in shown:
        row = shown["idle"]
        limit = "an unknown number" if row["limit"] is None else str(row["limit"])
        text.append(
            f"{name} connections: {row['open']} of {limit}, {row['idle']} idle for {row['least_age_s']:g} s; "
            f"closed {row['closed']} of {row['asked']} asked, {row['lapsed']} without an answer, "
            f"{row['taken_back']} taken back, {row['raced']} raced"
        )
    return text


def _kib(octets: int) -> str:
    return f"{octets / 1024:,.0f} KiB"
