"""Tests of the blocking interface to the controller's session, for packet tests and tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator
from typing import Any

import pytest
from configs import web
from fakeswitch import FakeSwitch
from sluice.balance import Counts
from sluice.config.load import parse
from sluice.names import DropReason, PuntReason, Register
from sluice.switch.errors import SwitchError
from sluice.switch.programmer import Programmer


class Elsewhere:
    """A fake switch in a thread of its own, so that blocking calls in the test's thread can reach it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.fake = self.do(self._start())

    async def _start(self) -> FakeSwitch:
        fake = FakeSwitch()
        await fake.start()
        return fake

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def close(self) -> None:
        self.do(self.fake.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture
def elsewhere() -> Generator[Elsewhere]:
    it = Elsewhere()
    yield it
    it.close()


def test_programs_changes_and_reads(elsewhere: Elsewhere) -> None:
    fake: FakeSwitch = elsewhere.fake
    neighbours = {"10.0.2.2": (2, "02:aa:00:00:00:02")}
    with Programmer(parse(web(fake.address)), neighbours) as switch:
        assert fake.weights(1) == {1: 128, 2: 128}
        assert len(fake.entries("neighbours")) == 1
        assert switch.apply(weights={"web": {"s1": 192, "s2": 64}}) == 1
        assert fake.weights(1) == {1: 192, 2: 64}
        assert switch.apply(ejected=[("web", "s2")]) == 1
        fake.hold(Register.LEDGER_SYN, switch.server("web", "s1").id, 3)
        assert switch.ledger("web", "s1") == Counts(syn=3)
        assert switch.drops(DropReason.NO_ROUTE) == 0
        assert switch.traffic().forwarded == 0
        assert switch.packet_in(timeout_s=0.05) is None

        async def send() -> None:
            fake.packet_in(b"frame", ingress_port=3, reason=PuntReason.TTL, neighbour=0)

        elsewhere.do(send())
        packet = switch.packet_in()
        assert packet is not None
        assert (packet.payload, packet["ingress_port"], packet["reason"]) == (b"frame", 3, PuntReason.TTL)
        switch.packet_out(b"answer", port=2)
        assert elsewhere.do(fake.packets_out.get()).payload == b"answer"
        without_routes = web(fake.address).replace("[{to: 0.0.0.0/0, via: 10.0.1.9}]", "[]")
        assert switch.reconfigure(parse(without_routes)) == 4, "two routes less, and weights and ejection as at first"


@pytest.mark.parametrize("mac", ["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00"])
def test_neighbour_with_a_mac_address_that_no_station_has_is_refused(elsewhere: Elsewhere, mac: str) -> None:
    config = parse(web(elsewhere.fake.address))
    text = f"neighbour 10.0.2.2: {mac} is not the MAC address of a single station; give the neighbour's own"
    with pytest.raises(SwitchError, match=text):
        Programmer(config, {"10.0.2.2": (2, mac)})
    with Programmer(config) as switch, pytest.raises(SwitchError, match=text):
        switch.apply(neighbours={"10.0.2.2": (2, mac)})


def test_fresh_empties_the_registers_and_otherwise_they_stay(elsewhere: Elsewhere) -> None:
    config = parse(web(elsewhere.fake.address))
    with Programmer(config):
        elsewhere.fake.hold(Register.LEDGER_SYN, 1, 3)
    with Programmer(config, fresh=False) as switch:
        assert switch.read_register(Register.LEDGER_SYN, [1]) == [3]
    with Programmer(config) as switch:
        assert switch.read_register(Register.LEDGER_SYN, [1]) == [0]


def test_another_primary_is_named(elsewhere: Elsewhere) -> None:
    config = parse(web(elsewhere.fake.address))
    with Programmer(config), pytest.raises(SwitchError, match="another controller is its primary"), Programmer(config):
        pass


def test_no_switch_is_said_at_once() -> None:
    with pytest.raises(SwitchError, match=r"switch 127\.0\.0\.1:1: "), Programmer(parse(web("127.0.0.1:1"))):
        pass
