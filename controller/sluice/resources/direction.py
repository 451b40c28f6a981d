"""Servers' send buffers: converts each transfer's need to a cap, and selects the caps to be written to the switch."""

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
"""A transfer that has sent fewer bytes than this gets no cap of its own. The papers call such transfers "small" without
a number."""
LEAST_CHANGE = 1 / 8
"""A cap whose change is at most this share of the cap in the switch is, as a rule, not written."""
RESERVED = 1 / 8
"""Each transfer without a slot gets SMALL bytes or more, unless all of them together would then need more than this
share of the budget. In that case they divide this share equally, or get an equal share of the budget if that is
larger."""
UNUSED = 1 / 32
"""If the unwritten changes would leave more than this share of a budget unused, even changes below LEAST_CHANGE are
written."""
LARGEST = float((1 << 30) - 1)
"""Largest window in bytes (RFC 7323, section 2.3)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A server's budget for send buffers in bytes, and the method by which it is shared."""

    size: float
    """Bytes for all connections of the server together."""
    sharing: Sharing
    fixed: float | None = None
    """A share in bytes that every transfer gets, independently of the budget. The papers compare their methods with
    such fixed shares."""
    needs: Needs = Needs.PRODUCTION
    """The method by which the transfers' needs are estimated."""


class SendSummary(NamedTuple):
    """Sums over those transfers of a server that take part in the sharing in an interval. Unless stated otherwise they
    are in bytes."""

    budget: float
    default: int
    """The cap of connections that have no cap of their own; 0: they have none."""
    transfers: int = 0
    """The number of transfers that take part."""
    capped: int = 0
    """The number of transfers whose share is at least a segment below their need."""
    flight: float = 0.0
    need: float = 0.0
    share: float = 0.0


class Direction:
    """The caps in the switch for the send direction: one per slot, and one default per server."""

    def __init__(self, slots: int, defaults: Mapping[int, int]) -> None:
        self.installed = np.full(slots, np.nan)
        """Each slot's cap in the switch, in bytes; 0: the slot has none, NaN: unknown."""
        self.defaults = dict(defaults)

    def in_effect(self, server: Numbers) -> Column:
        """Return the caps in effect on the transfers of all slots, in bytes: a transfer's own cap or its server's
        default.

        The result is infinite for a transfer without a cap, and NaN for an unknown cap.
        """
        defaults = np.zeros(1 + max(int(server.max(initial=0)), max(self.defaults, default=0)))
        defaults[list(self.defaults)] = list(self.defaults.values())
        caps = np.where(self.installed == 0, defaults[server], self.installed)
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
    ) -> tuple[Column, Flags, dict[int, SendSummary]]:
        """Decide the caps. Returns the caps, flags of those to be written, and a summary for each server.

        ``budgets``: each server's budget and sampling. Only 1 in 2^sampling connections can get a slot, and this share
        of the budget is divided among them. ``slotted``: the share of these connections that found a free slot. The
        default caps of the others are subtracted from the budget.
        """
        servers = 1 + max(int(server.max(initial=0)), max(budgets, default=0))
        budgets_left = np.full(servers, np.inf)
        is_sharing = needs > 0
        slotted_counts = np.bincount(server[is_sharing], minlength=servers).tolist()
        defaults: dict[int, int] = {}
        for number, (budget, sampling) in budgets.items():
            unslotted = round(slotted_counts[number] * (1 / slotted - 1))
            reserve = RESERVED * budget.size / 2**sampling
            least = SMALL if unslotted * SMALL <= reserve else reserve / unslotted
            sharers = (slotted_counts[number] + unslotted) * 2**sampling + 1
            before = self.defaults.get(number, 0)
            defaults[number] = default_cap(budget.size, budget.fixed, sharers, before, least)
            if budget.fixed is None:
                budgets_left[number] = max(0.0, budget.size / 2**sampling - unslotted * defaults[number])
        caps = shared(budgets, budgets_left, server, needs, mss)
        is_written = _differs(self.installed, caps)
        sums_in_effect = np.bincount(server, np.where(is_written, caps, self.installed), servers)
        # If the sum of a server's caps after this write would exceed its budget, write all its caps that differ. The
        # same applies if the sum would leave more than UNUSED of the budget free although the new caps do not.
        enough = (1 - UNUSED) * budgets_left
        is_inexact = (sums_in_effect > budgets_left) | (
            (sums_in_effect < enough) & (np.bincount(server, caps, servers) >= enough)
        )
        is_written |= is_inexact[server] & (caps != self.installed)

        figures = (
            is_sharing,
            caps < needs - np.maximum(mss - 1.0, 0.0),
            np.where(is_sharing, flight, 0.0),
            needs,
            caps,
        )
        sums = np.stack([np.bincount(server, figure, servers) for figure in figures])[:, list(budgets)].T.tolist()
        summaries: dict[int, SendSummary] = {}
        for (number, (budget, _)), (transfers, capped, *sizes) in zip(budgets.items(), sums, strict=True):
            summaries[number] = SendSummary(budget.size, defaults[number], int(transfers), int(capped), *sizes)
        return caps, is_written, summaries


def default_cap(budget: float, fixed: float | None, sharers: int, before: int, least: float = SMALL) -> int:
    """Return ``fixed`` if it is given, otherwise an equal share of the budget for each of ``sharers``, at least
    ``least``. Return ``before``, the present cap, if the share differs from it by at most LEAST_CHANGE of it. No cap
    is above LARGEST. Sizes are in bytes."""
    if fixed is not None:
        return int(min(LARGEST, fixed))
    new = min(LARGEST, max(least, budget / max(1, sharers)))
    return int(new) if abs(new - before) > LEAST_CHANGE * before else before


def shared(
    budgets: Mapping[int, tuple[Budget, int]], budgets_left: Column, server: Numbers, needs: Column, mss: Column
) -> Column:
    """Return each transfer's share of its server's budget in whole bytes, at least 1; 0 for a transfer that needs
    nothing.

    Except with Needs.PAPER or a fixed share, the part of a budget that no transfer needs is added to the shares, in
    proportion to the needs. A need is a mean, and TCP's window swings around it; the addition gives room for the swing,
    and lets transfers without loss grow. These shares are whole segments.
    """
    caps, grows = np.zeros(len(needs)), np.zeros(len(budgets_left), np.bool_)
    methods: dict[Sharing, list[int]] = {}
    for number, (budget, _) in budgets.items():
        methods.setdefault(budget.sharing, []).append(number)
        grows[number] = budget.fixed is None and budget.needs is not Needs.PAPER
    for sharing, numbers in methods.items():
        uses_method = np.zeros(len(budgets_left), np.bool_)
        uses_method[numbers] = True
        active = np.flatnonzero(uses_method[server] & (needs > 0))
        owners = server[active]
        shares = sharing(budgets_left, needs[active], owners)
        totals = np.bincount(owners, shares, len(budgets_left))
        has_room = grows & (totals > 0) & (totals < budgets_left)
        factors = np.divide(budgets_left, totals, out=np.ones(len(budgets_left)), where=has_room)
        shares = shares * factors[owners]
        is_rounded = grows[owners]
        shares[is_rounded] = in_segments(shares[is_rounded], mss[active][is_rounded], owners[is_rounded], budgets_left)
        caps[active] = np.clip(np.floor(shares), 1.0, LARGEST)
    return caps


def _differs(installed: Column, caps: Column) -> Flags:
    """Return flags of the caps that differ enough to be written. Caps that begin or end, and those whose installed
    value is unknown, always differ enough."""
    return ~(np.abs(caps - installed) <= LEAST_CHANGE * installed) | ((installed > 0) != (caps > 0))
