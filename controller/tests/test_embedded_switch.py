"""Tests of the controller with the embedded switch itself, over real P4Runtime, without interfaces or root."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from configs import web
from live import Running, running, until
from sluice.addresses import from_text
from sluice.balance import Counts
from sluice.config.load import load
from sluice.dataplane.connection import Connection
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import ACK, SYN
from sluice.dataplane.transfers import Flow, Segment, TransferCells
from sluice.features import Balance
from sluice.names import TICK_BASE, Counter, DropReason, PinState, Register
from sluice.switch.pipeline import load as load_pipeline
from sluice.switch.programmer import Programmer
from sluice.switch.reconcile import read_back
from sluice.switch.session import Session
from sluice.views import metrics
from sluice.views.explain import explain
from sluice.views.status import gather
from sluice.views.statustext import render

from topo.testbed.namespaces import free_port
from topo.testbed.switches.embedded import BINARY
from topo.testbed.switches.started import StartedSwitch as Switch
from topo.testbed.switches.started import start

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="the embedded switch is not built: `make setup` builds it")


@pytest.fixture
async def switch() -> AsyncGenerator[Switch]:
    it = await start()
    yield it
    await it.stop()


@pytest.fixture
def config(switch: Switch, tmp_path: Path) -> Path:
    path = tmp_path / "sluice.yaml"
    text = web(switch.address, control=str(tmp_path / "s.sock"))
    path.write_text(text.replace("  servers:", "  admission: {rate_per_s: 250, burst: 25}\n  servers:"))
    return path


@asynccontextmanager
async def backup(config: Path) -> AsyncGenerator[Running]:
    """Run a second controller, which stands by while the first one leads."""
    async with running(config, ready=False) as it:
        await until(lambda: it.lines, "the second controller to say something")
        assert it.lines[0].startswith("sluice: standby")
        yield it


async def test_adoption_writes_nothing_at_all(config: Path) -> None:
    async with running(config) as first:
        assert "adopted=no" in first.lines[0]
    async with running(config) as second:
        assert second.lines[0].endswith("adopted=yes updates=0"), "meters included"


async def test_stand_by_takes_over_with_the_weights_of_the_switch(switch: Switch, config: Path) -> None:
    async with running(config) as first:
        await first.controller.drain("s1", drain=True)
        second = backup(config.rename(config.with_suffix(".second.yaml")))
        it = await second.__aenter__()
    try:
        await until(it.ready, "the second controller to take over")
        assert it.lines[-1].endswith("adopted=yes updates=0")
        assert it.controller.world[Balance].views[1].balancer.weights() == {2: 256}
    finally:
        await second.__aexit__(None, None, None)


async def test_scrapes_while_the_switch_restarts_all_get_an_answer(switch: Switch, config: Path) -> None:
    """While the switch is down, scrapes of the metrics report no servers, and they do not disturb the controller.

    After the switch's restart the controller is ready again, and scrapes are complete.
    """
    address, ups = f"127.0.0.1:{free_port()}", list[str]()

    def scrape() -> None:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            said = answer.read().decode()
        ups.extend(line.split()[1] for line in said.splitlines() if line.startswith("sluice_up "))
        assert ("sluice_server_ratio{" in said) == (ups[-1] == "1.0"), "all of it or nothing but this"

    async def keep_scraping() -> None:
        while True:
            await asyncio.to_thread(scrape)

    async with running(config) as it:
        with metrics.serve(it.controller, address):
            scrapes = asyncio.create_task(keep_scraping())
            await until(lambda: "1.0" in ups or scrapes.done(), "a scrape")
            await switch.stop()
            await until(lambda: ups[-1] == "0.0" or scrapes.done(), "a scrape without a switch")
            again = await start(switch.address)
            try:
                await until(lambda: it.ready(2), "the second ready line")
                await until(lambda: ups[-1] == "1.0" or scrapes.done(), "a scrape of the next switch")
                assert not scrapes.done(), "no scrape fails"
                scrapes.cancel()
                with suppress(asyncio.CancelledError):
                    await scrapes
            finally:
                await again.stop()


async def test_switch_restart_is_restored(switch: Switch, config: Path) -> None:
    async with running(config) as it:
        await it.controller.drain("s1", drain=True)
        await switch.stop()
        again = await start(switch.address)
        try:
            await until(lambda: it.ready(2), "the second ready line")
            assert "adopted=no" in it.lines[-1]
            pipeline = load_pipeline()
            async with Session(again.address, 1, pipeline, election_id=1) as reader:
                readback = await read_back(reader)
            assert readback.weights == {1: {2: 256}}
            assert readback.draining == {1}
        finally:
            await again.stop()


async def test_registers_counters_and_status(config: Path) -> None:
    async with running(config) as it:
        link = it.link
        await link.registers.write(Register.LEDGER_SYN, 1, 0xFFFF_FFFF)
        assert await link.registers.read(Register.LEDGER_SYN, [1, 2]) == [0xFFFF_FFFF, 0]
        assert len(await link.registers.read(Register.PIN_KEY_1)) == 131072
        shown = await gather(it.controller, pins=True)
        assert shown["services"][0]["servers"][0]["syn"] == 0xFFFF_FFFF
        assert "web 10.0.0.100:80" in render(shown)


def test_programmer(switch: Switch, config: Path) -> None:
    with Programmer(load(config)) as programmer:
        assert programmer.ledger("web", "s1") == Counts()
        assert programmer.counter(Counter.VERDICTS, DropReason.NO_ROUTE) == 0
        assert programmer.apply(weights={"web": {"s1": 1, "s2": 255}}) == 1


async def test_a_transfer_that_the_switch_measures_gets_a_cap_from_the_switch(config: Path) -> None:
    """The switch's registers show a connection to server 1 with 40 segments in flight, as packets would write them."""
    shares = "  resources: {send: {budget: 48KiB, needs: paper}}\n  servers:"
    config.write_text(config.read_text().replace("  servers:", shares))
    memory, flow = Memory(), Flow(number=200_000, fingerprint=0x5ABCDEF, server=1)
    cells = TransferCells(memory)
    answered = Segment(True, 500, 2, 0, SYN | ACK, PinState.PENDING, PinState.ANSWERED)
    assert cells.packet(1_000_000, flow, answered)
    assert cells.packet(1_020_000, flow, Segment(False, 2, 501, 0, ACK, PinState.ANSWERED))
    for number in range(80):
        assert cells.packet(1_030_000 + number, flow, Segment(True, 501 + 1000 * number, 2, 1000, ACK))
        if number == 39:
            assert cells.packet(1_060_000, flow, Segment(False, 2, 501 + 1000 * 40, 0, ACK))
    async with running(config) as it:
        link = it.link
        for register in (each for each in Register if each.name.startswith("TRANSFER_")):
            await link.registers.write_cells(register, {flow.slot: memory.of(register)[flow.slot]})
        async with asyncio.timeout(10):
            cap = 0
            while not cap:
                await asyncio.sleep(0.05)
                (cap,) = await link.registers.read(Register.SEND_CAP, [flow.number])
        assert cap >> 32 == flow.fingerprint
        assert cap & 0xFFFF_FFFF == 48 << 10
        status = (await gather(it.controller))["services"][0]["servers"][0]["resources"]["send"]
        assert (status["transfers"], status["share"], status["default_cap"]) == (1, 48 << 10, 64_000)


async def test_explain_finds_all_connections_of_a_client(config: Path) -> None:
    """The test writes the connection table's registers as packets would."""
    client, service = from_text("10.0.1.77").packed, from_text("10.0.0.100").packed
    async with running(config) as it:
        link = it.link
        for port, server, state in ((40000, 2, PinState.ESTABLISHED), (40001, 1, PinState.SERVER_CLOSING)):
            place = Connection(client, port, service, 80).place
            await link.registers.write(
                Register.PIN_KEY_2, place.slot_2, place.fingerprint << 36 | state << 32 | TICK_BASE + 100
            )
            await link.registers.write(Register.PIN_SERVER_2, place.slot_2, server)
        shown = await explain(it.controller, "10.0.1.77", "web")
        connections = [
            (connection["port"], connection["server"], connection["state"]) for connection in shown["connections"]
        ]
        assert connections == [(40000, "s2", "established"), (40001, "s1", "server_closing")]
        assert (shown["new"]["server"], shown["new"]["shares"]) == (None, {"s1": 0.5, "s2": 0.5})
        connection = await explain(it.controller, "10.0.1.77:40000", "web")
        assert (connection["connections"][0]["server"], connection["new"]["by"]) == ("s2", "pin")
        assert connection["limits"] == [{"limit": "admission", "rate_per_s": 250, "burst": 25}]
        assert (await explain(it.controller, "10.0.1.78", "web"))["connections"] == []
