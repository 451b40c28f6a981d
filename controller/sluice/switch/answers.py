"""Stage answers: digests in which the switch reports the sender of each ARP packet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from finsy import P4DigestEntry, P4DigestList

from sluice.addresses import IPV4_BITS, Address, from_number
from sluice.frames import mac_text
from sluice.names import Digest

from .errors import AlreadyExists
from .session import Session
from .state import Neighbour


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of an ARP packet."""

    address: Address
    place: Neighbour
    """The switch port at which the packet arrived, and the sender's MAC address."""
    asks_us: bool = False
    """Whether the packet requests the MAC address of one of the switch's own addresses; the switch answers it."""


def subscription() -> P4DigestEntry:
    """Return the digest configuration by which a switch reports the sender of every ARP packet, repeated ones included.

    The switch sends each digest at once. A digest suffices because the data plane itself answers ARP requests. To copy
    the frames to the controller would need a clone session, or a mirror session on Tofino.
    """
    return +P4DigestEntry(Digest.ARP_SENDER_T, max_list_size=1, max_timeout_ns=0)


async def subscribe(session: Session) -> None:
    """Subscribe to the digests of ARP senders, unless the switch already sends them. Raises SwitchError."""
    with suppress(AlreadyExists):
        await session.write([subscription().encode_update(session.pipeline.schema)])


def senders(digests: Iterable[P4DigestList]) -> Iterator[Sender]:
    """Yield the senders that lists of digests report, in their order."""
    for digest in digests:
        for data in digest:
            fields = cast(dict[str, Any], data)
            mac = mac_text(int(fields["mac"]).to_bytes(6, "big"))
            asks_us = fields["answered_by"] != fields["address"]
            yield Sender(from_number(fields["address"], IPV4_BITS), Neighbour(fields["ingress_port"], mac), asks_us)
