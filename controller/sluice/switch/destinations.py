"""Stage destinations: whose requests are counted apart and limited, the limits, and the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice import columns
from sluice.addresses import Address, Packed, order
from sluice.names import Action, Table
from sluice.news import Requests

from .bucket import Bucket
from .registers import Registers
from .state import State

UNLISTED = 0
"""The number that requests are counted under whose destination has none."""
REST, TOGETHER = b"", b"\xff" * 17
"""Stand for unlisted destinations and for those that share a number; an address has 4 or 16 bytes."""

_NOTE = b"limit="


def entries(state: State) -> Iterator[P4TableEntry]:
    """Every watched address, and those of content services that refuse for want of agents: their clients get a reset.

    A limit that both buckets hold together is noted, for a controller that starts anew.
    """
    options = state.plan.config.news
    closed = {one.config.address for one in state.plan.services if state.unread.get(one.id) == {}}
    for address in sorted(closed - state.crowd.numbers.keys(), key=order):
        yield P4TableEntry(
            Table.DESTINATIONS,
            match=P4TableMatch(address=address),
            action=P4TableAction(Action.LIMIT_DESTINATION, id=UNLISTED, answer_reset=1, remember_time=0),
        )
    if options is None:
        return
    limited = {host.address for host in options.hosts if host.limit}
    for address, number in state.crowd.numbers.items():
        own = address in limited
        limit = state.crowd.limits.get(number)
        yield P4TableEntry(
            Table.DESTINATIONS,
            match=P4TableMatch(address=address),
            action=P4TableAction(
                Action.LIMIT_DESTINATION,
                id=number,
                answer_reset=int(options.refuse == "reset" or address in closed),
                # A host with a limit of its own has one bucket only: the second would be open.
                remember_time=0 if own else state.units.ticks(options.remember_s),
            ),
            metadata=b"" if limit is None else _NOTE + f"{limit:g}".encode(),
        )


def limit_noted(metadata: bytes) -> float | None:
    """The limit in an entry's metadata; None without one."""
    try:
        return float(metadata.removeprefix(_NOTE)) if metadata.startswith(_NOTE) else None
    except ValueError:
        return None


def for_anybody(state: State) -> Mapping[int, Bucket]:
    """The buckets open to anybody, by destination number."""
    return state.crowd.anybody


def for_returning(state: State) -> Mapping[int, Bucket]:
    """The buckets for remembered clients that the first refused, by destination number."""
    return state.crowd.returning


async def read_requests(registers: Registers, numbers: Mapping[Address, int]) -> dict[Packed, Requests]:
    """Cumulative requests by address; those of unlisted destinations under REST. Raises SwitchError.

    Addresses that share a number share their counts, which are given once, under TOGETHER.
    """
    by_number = {UNLISTED: REST}
    for address, number in numbers.items():
        by_number[number] = TOGETHER if number in by_number else address.packed
    wanted = list(by_number)
    counts = await registers.columns(list(columns.registers(columns.DESTINATION).values()), wanted)
    return {by_number[number]: Requests(*row) for number, row in zip(wanted, zip(*counts, strict=True), strict=True)}
