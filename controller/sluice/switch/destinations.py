"""Stage destinations: the destination addresses whose requests the switch counts separately and can limit."""

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
"""The destination number under which the switch counts requests to unlisted destinations."""
ALL_UNLISTED, ALL_SHARED = b"", b"\xff" * 17
"""Keys in place of a packed address: for all unlisted destinations, and for all destinations that share a number. A
packed address has 4 or 16 bytes, so neither key can equal one."""

_NOTE = b"limit="


def entries(state: State) -> Iterator[P4TableEntry]:
    """Yield an entry for every address that flash-crowd control counts, and for every content service that refuses
    clients because no agent answers.

    An entry of the second kind makes the switch answer refused clients with a reset. An entry's metadata notes its
    limit, so that a restarted controller can restore the limit.
    """
    options = state.plan.config.news
    closed = {service.config.address for service in state.plan.services if state.unread.get(service.id) == {}}
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
                # A host with a limit of its own has only one bucket. No second bucket could limit remembered clients,
                # so none are remembered.
                remember_time=0 if own else state.units.ticks(options.remember_s),
            ),
            metadata=b"" if limit is None else _NOTE + f"{limit:g}".encode(),
        )


def limit_noted(metadata: bytes) -> float | None:
    """Return the limit, in connections per second, that an entry's metadata notes; None if it notes none."""
    try:
        return float(metadata.removeprefix(_NOTE)) if metadata.startswith(_NOTE) else None
    except ValueError:
        return None


def general_buckets(state: State) -> Mapping[int, Bucket]:
    """Return the buckets that every client's requests may use, by destination number."""
    return state.crowd.general


def returning_buckets(state: State) -> Mapping[int, Bucket]:
    """Return the buckets, by destination number, for remembered clients that the general bucket refused."""
    return state.crowd.returning


async def read_requests(registers: Registers, numbers: Mapping[Address, int]) -> dict[Packed, Requests]:
    """Return the cumulative requests by address; those to all unlisted destinations are under ALL_UNLISTED.

    Addresses that share a number also share its counts, which are returned once, under ALL_SHARED. Raises SwitchError.
    """
    by_number = {UNLISTED: ALL_UNLISTED}
    for address, number in numbers.items():
        by_number[number] = ALL_SHARED if number in by_number else address.packed
    numbered = list(by_number)
    counts = await registers.columns(list(columns.registers(columns.DESTINATION).values()), numbered)
    return {by_number[number]: Requests(*row) for number, row in zip(numbered, zip(*counts, strict=True), strict=True)}
