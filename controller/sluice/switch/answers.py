"""Stage answers: who sent an ARP, as the switch tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from finsy import P4DigestEntry, P4DigestList

from sluice.addresses import IPV4_BITS, Address, from_number
from sluice.frames import mac_text
from sluice.names import Digest

from .errors import AlreadyThere
from .session import Session
from .state import Neighbour


@dataclass(frozen=True, slots=True)
class Sender:
    """What an ARP says of its sender: an address, and where it is."""

    address: Address
    place: Neighbour
    asks_us: bool = False
    """It is a request for one of our addresses, which the switch answers."""


def subscription() -> P4DigestEntry:
    """What has a switch tell the sender of every ARP, each at once, and the same one as often as it is heard.

    The data plane answers requests itself. A copy of each frame would need a clone session, or a mirror on Tofino.
    """
    return +P4DigestEntry(Digest.ARP_SENDER_T, max_list_size=1, max_timeout_ns=0)


async def subscribe(session: Session) -> None:
    """Have the switch tell the sender of every ARP, if it does not yet. Raises SwitchError."""
    with suppress(AlreadyThere):
        await session.write([subscription().encode_update(session.pipeline.schema)])


def senders(digests: Iterable[P4DigestList]) -> Iterator[Sender]:
    """The senders in lists of digests, in their order."""
    for digest in digests:
        for data in digest:
            said = cast(dict[str, Any], data)
            mac = mac_text(int(said["mac"]).to_bytes(6, "big"))
            asks_us = said["answered_by"] != said["address"]
            yield Sender(from_number(said["address"], IPV4_BITS), Neighbour(said["ingress_port"], mac), asks_us)
