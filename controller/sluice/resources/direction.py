"""Servers' send buffers: what each transfer needs becomes a cap, and what of it is to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .columns import Flags, Numbers
from .need import Needs
from .segments import in_segments
from .shares import Sharing
from .throughput import Column

SMALL = 64_000
"""Bytes below which a transfer is left alone. The papers say "small" without a number."""
WORTH = 1 / 8
"""A cap is written when it changes by more than this part."""
RESERVED = 1 / 8
"""What small transfers that found no slot may take of a budget beyond an equal share."""
UNUSED = 1 / 32
"""Small changes are written as well when they would leave more than this part of a budget unused."""
LARGEST = float((1 << 30) - 1)
"""No window is above this (RFC 7323, section 2.3)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a server has to send from, in bytes, and how it is shared."""

    size: float
    sharing: Sharing
    fixed: float | None = None
    """The share of everybody, whatever the budget is: what the papers compare with."""
    needs: Needs = Needs.PRODUCTION


class Told(NamedTuple):
    """A server's direction in an interval: sums over the transfers that take part, in bytes."""

    budget: float
    default: int
    """The cap of connections without one of their own; 0: none."""
    transfers: int = 0
    capped: int = 0
    """Those whose share is a segment or more below their need."""
    flight: float = 0.0
    need: float = 0.0
    share: float = 0.0


class Direction:
    """Remembers what the switch holds: caps by slot, and defaults by server."""

    def __init__(self, slots: int, defaults: Mapping[int, int]) -> None:
        self.held = np.full(slots, np.nan)
        """The caps in the switch, in bytes; 0 is none, NaN not known."""
        self.defaults = dict(defaults)

    def in_effect(self, server: Numbers) -> Column:
        """The caps of all slots' transfers, in bytes: their own or their server's; infinite without one, NaN where that
        is not known."""
        defaults = np.zeros(1 + max(int(server.max(initial=0)), max(self.defaults, default=0)))
        defaults[list(self.defaults)] = list(self.defaults.values())
        caps = np.where(self.held == 0, defaults[server], self.held)
        return np.where(caps == 0, np.inf, caps)

    def decide(
        self,
        budgets: Mapping[int, tuple[Budget, int]],
        server: Numbers,
        needs: Column,
        flight: Column,
        mss: Column,
        *,
        slotted: float = 1.0,
    ) -> tuple[Column, Flags, dict[int, Told]]:
        """The caps, which of them are to be written, and a row for each server.

        ``budgets``: by server, with the sampling: of 2^sampling connections one is in a slot, and their part of the
        budget is shared among them. ``slotted``: the part of those connections that found a slot. The others have the
        default, which comes off the budget.
        """
        servers = 1 + max(int(server.max(initial=0)), max(budgets, default=0))
        parts = np.full(servers, np.inf)
        taking = needs > 0
        sharing = np.bincount(server[taking], minlength=servers).tolist()
        defaults: dict[int, int] = {}
        for number, (budget, sampling) in budgets.items():
            unslotted = round(sharing[number] * (1 / slotted - 1))
            reserve = RESERVED * budget.size / 2**sampling
            least = SMALL if unslotted * SMALL <= reserve else reserve / unslotted
            sharers = (sharing[number] + unslotted) * 2**sampling + 1
            before = self.defaults.get(number, 0)
            defaults[number] = default_cap(budget.size, budget.fixed, sharers, before, least)
            if budget.fixed is None:
                parts[number] = max(0.0, budget.size / 2**sampling - unslotted * defaults[number])
        caps = shared(budgets, parts, server, needs, mss)
        is_worth = _differs(self.held, caps)
        effect = np.bincount(server, np.where(is_worth, caps, self.held), servers)
        # What is not written would come to more than there is, or leave much of it unused: then all that differs is.
        enough = (1 - UNUSED) * parts
        is_off = (effect > parts) | ((effect < enough) & (np.bincount(server, caps, servers) >= enough))
        is_worth |= is_off[server] & (caps != self.held)

        columns = (taking, caps < needs - np.maximum(mss - 1.0, 0.0), np.where(taking, flight, 0.0), needs, caps)
        sums = np.stack([np.bincount(server, one, servers) for one in columns])[:, list(budgets)].T.tolist()
        told: dict[int, Told] = {}
        for (number, (budget, _)), (transfers, capped, *sizes) in zip(budgets.items(), sums, strict=True):
            told[number] = Told(budget.size, defaults[number], int(transfers), int(capped), *sizes)
        return caps, is_worth, told


def default_cap(budget: float, fixed: float | None, sharers: int, before: int, least: float = SMALL) -> int:
    """An equal share, but at least so much; as before when it would change by little. All in bytes."""
    if fixed is not None:
        return int(min(LARGEST, fixed))
    new = min(LARGEST, max(least, budget / max(1, sharers)))
    return int(new) if abs(new - before) > WORTH * before else before


def shared(
    budgets: Mapping[int, tuple[Budget, int]], parts: Column, server: Numbers, needs: Column, mss: Column
) -> Column:
    """The shares of each server's part in whole bytes, at least 1; 0 for those who need nothing, or have no budget.

    But for the papers' needs, what nobody needs is shared by the need: it is room for TCP's swing, whose mean the need
    is, and room to grow in for a transfer that loses nothing. Such shares are in whole segments.
    """
    caps, grows = np.zeros(len(needs)), np.zeros(len(parts), np.bool_)
    ways: dict[Sharing, list[int]] = {}
    for number, (budget, _) in budgets.items():
        ways.setdefault(budget.sharing, []).append(number)
        grows[number] = budget.fixed is None and budget.needs is not Needs.PAPER
    for sharing, numbers in ways.items():
        is_one = np.zeros(len(parts), np.bool_)
        is_one[numbers] = True
        active = np.flatnonzero(is_one[server] & (needs > 0))
        owners = server[active]
        shares = sharing(parts, needs[active], owners)
        whole = np.bincount(owners, shares, len(parts))
        has_room = grows & (whole > 0) & (whole < parts)
        more = np.divide(parts, whole, out=np.ones(len(parts)), where=has_room)
        shares = shares * more[owners]
        rounds = grows[owners]
        shares[rounds] = in_segments(shares[rounds], mss[active][rounds], owners[rounds], parts)
        caps[active] = np.clip(np.floor(shares), 1.0, LARGEST)
    return caps


def _differs(held: Column, caps: Column) -> Flags:
    """By so much that it is worth a write; also where it is not known what is there, and where a cap begins or ends."""
    return ~(np.abs(caps - held) <= WORTH * held) | ((held > 0) != (caps > 0))
