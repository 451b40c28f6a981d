"""Tests of stage `destinations`: admitted clients are remembered; above the limit their SYNs use another bucket."""

from __future__ import annotations

import zlib

from harness import entries
from harness.base import admitted, refused, returned
from harness.crowds import HOT, OTHER, Crowd, segment
from harness.flow import Flow
from harness.plan import CLIENT, CLIENT_GATEWAY, CLIENT_HOST, S1, S1_HOST, S2_HOST, WEB, Host
from sluice.addresses import from_text
from sluice.names import ADMITTED_CLIENTS, DropReason, Meter, Register, TofinoRegister
from sluice.switch.targets import TOFINO

MINUTE = 916
"""A minute in ticks."""


def memory(client: str, destination: str) -> tuple[int, int]:
    """Return a client's cell and fingerprint, as AdmittedClients in p4src/v1model/externs/clients.p4 computes them."""
    hashed = zlib.crc32(from_text(client).packed + from_text(destination).packed)
    return hashed % ADMITTED_CLIENTS, hashed // ADMITTED_CLIENTS


class Remembered(Crowd):
    """Base class of the tests of the memory of clients, which is empty at the start."""

    def setUp(self) -> None:
        super().setUp()
        self.switch.registers.clear(Register.ADMITTED_CLIENTS)

    def stamp(self, client: str, destination: str) -> int | None:
        """Return the tick at which the client was last admitted; None if the client is not remembered."""
        cell, fingerprint = memory(client, destination)
        (value,) = self.switch.registers.read([(Register.ADMITTED_CLIENTS, cell)])
        if self.switch.pipeline.target is TOFINO:
            (stamp,) = self.switch.registers.read([(TofinoRegister.ADMITTED_STAMPS, cell)])
            value = value << 32 | stamp
        return value & 0xFFFFFFFF if value and value >> 32 == fingerprint else None


def stranger(number: int) -> Host:
    """Return a client that has not sent a packet yet."""
    return Host(CLIENT, f"20.1.0.{number}", CLIENT_GATEWAY.mac)


class ReturningService(Remembered):
    """An admitted client's next connection to a service is admitted above the limit; an unknown client's is refused."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT, remember=MINUTE)
        self.limit(1, known=2)
        self.opens_web(40001, admitted(HOT))
        self.spent(Meter.DESTINATION_LIMIT)
        unknown = Flow(WEB, S1, "20.1.0.1", 40001)
        self.refuses_web(unknown)
        self.opens_web(40002, returned(HOT))
        self.refuses_web(unknown)
        self.opens_web(40003, returned(HOT))
        self.spent()
        self.refuses_web(Flow(WEB, S1, client_port=40004))


class ReturningHost(Remembered):
    """A returning client's SYN to a host without a service is admitted, although such connections are not pinned."""

    def runTest(self) -> None:
        self.exhausts(S1_HOST, remember=MINUTE, known=5)
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))
        self.drops(CLIENT, segment(S1_HOST.address, source=stranger(1)), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address, client_port=50001), returned(HOT))


class StrangersTakeNothing(Remembered):
    """SYNs of unknown clients take no token of the bucket for returning clients."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.limit(1, known=1)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        for number in range(20):
            frame = segment(S1_HOST.address, source=stranger(number))
            self.drops(CLIENT, frame, DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))


class KnownFromBefore(Remembered):
    """A client that was admitted before the limit was set is remembered."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.limit(1)
        self.passes(S1_HOST, segment(S1_HOST.address, source=stranger(1)), admitted(HOT))
        self.spent()
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))


class Forgotten(Remembered):
    """After the configured time a client is unknown again; each admitted SYN renews the time."""

    def runTest(self) -> None:
        self.exhausts(S1_HOST, remember=2)
        first = self.stamp(CLIENT_HOST.address, S1_HOST.address)
        assert first is not None
        self.pass_ticks(3)
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.assertEqual(self.stamp(CLIENT_HOST.address, S1_HOST.address), first)
        self.switch.modify([entries.destination(S1_HOST.address, HOT, remember=MINUTE)])
        self.passes(S1_HOST, segment(S1_HOST.address), returned(HOT))
        renewed = self.stamp(CLIENT_HOST.address, S1_HOST.address)
        assert renewed is not None
        self.assertGreater(renewed, first)


class PerDestination(Remembered):
    """A client that is remembered for one destination is unknown for another."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.watch(S2_HOST.address, OTHER, remember=MINUTE)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.limit(1, destination=OTHER)
        self.passes(S2_HOST, segment(S2_HOST.address, source=stranger(1)), admitted(OTHER))
        self.spent()
        self.drops(CLIENT, segment(S2_HOST.address), DropReason.ADMISSION_REFUSED, refused(OTHER))


class NoMemory(Remembered):
    """With a time of 0 s, as in Chen & Heidemann, the switch neither stores nor looks up clients."""

    def runTest(self) -> None:
        self.exhausts(S1_HOST, known=5)
        self.assertIsNone(self.stamp(CLIENT_HOST.address, S1_HOST.address))
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))


class Displaced(Remembered):
    """Of two clients that share a cell, the one admitted last is remembered; neither is mistaken for the other."""

    def runTest(self) -> None:
        cell, fingerprint = memory(CLIENT_HOST.address, S1_HOST.address)
        address = next(
            address
            for address in (f"20.{a}.{b}.{c}" for a in range(256) for b in range(256) for c in range(1, 255))
            if memory(address, S1_HOST.address)[0] == cell
        )
        other = Host(CLIENT, address, CLIENT_GATEWAY.mac)
        self.assertNotEqual(memory(address, S1_HOST.address)[1], fingerprint)
        self.watch(S1_HOST.address, HOT, remember=MINUTE)
        self.limit(2)
        self.passes(S1_HOST, segment(S1_HOST.address), admitted(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address, source=other), admitted(HOT))
        self.spent()
        self.drops(CLIENT, segment(S1_HOST.address), DropReason.ADMISSION_REFUSED, refused(HOT))
        self.passes(S1_HOST, segment(S1_HOST.address, source=other), returned(HOT))


class RefusedIsUnknown(Remembered):
    """A client whose SYNs were all refused is not remembered."""

    def runTest(self) -> None:
        self.watch(WEB.address, HOT, remember=MINUTE)
        self.limit(1)
        self.opens_web(40001, admitted(HOT))
        self.spent()
        for _ in range(3):
            self.refuses_web(Flow(WEB, S1, "20.1.0.1", 40001))
        self.assertIsNone(self.stamp("20.1.0.1", WEB.address))
