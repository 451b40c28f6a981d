"""Tests of the controller with the real sluice-tofino, which uses a substitute for Tofino's driver."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from configs import web
from finsy.proto import p4d, p4r
from live import running, until
from sluice.features import Balance
from sluice.names import Register
from sluice.switch.targets import TOFINO
from sluice.switch.targets.detect import detect
from sluice.views.status import gather

from topo.testbed.namespaces import free_port
from topo.testbed.switches.tofino import GATEWAY

DRIVER = GATEWAY.with_name("examples") / "stand_in_driver"

pytestmark = pytest.mark.skipif(
    not (GATEWAY.exists() and DRIVER.exists()), reason="not built: `make test-controller` builds gateway and driver"
)


async def line(program: asyncio.subprocess.Process, says: str) -> str:
    """Return the next line of a program's output that contains `says`."""
    assert program.stdout is not None
    async with asyncio.timeout(60):
        while says not in (text := (await program.stdout.readline()).decode()):
            assert text, "the program has ended"
    return text.strip()


@asynccontextmanager
async def process(*words: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a program; kill it (SIGKILL) when the block ends."""
    it = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    try:
        yield it
    finally:
        it.kill()
        await it.wait()


@asynccontextmanager
async def gateway(served: str, driver: str, *more: str) -> AsyncGenerator[None]:
    """Run a gateway while the block runs; enter the block when the gateway's driver answers."""
    async with process(str(GATEWAY), "--grpc-server-addr", served, "--driver", driver, *more) as it:
        await line(it, "the driver answers")
        yield


@pytest.fixture
async def address() -> AsyncGenerator[str]:
    """Yield the address of a gateway on which no program is installed yet."""
    served = f"127.0.0.1:{free_port()}"
    async with process(str(DRIVER)) as driver, gateway(served, await line(driver, "http://")):
        yield served


def configured(address: str, folder: Path) -> Path:
    """Write a configuration for a gateway; return the path of the configuration."""
    path = folder / "sluice.yaml"
    text = web(address, control=str(folder / "s.sock")).replace(', pipeline: ""', "")
    path.write_text(text.replace("  servers:", "  admission: {rate_per_s: 250, burst: 25}\n  servers:"))
    return path


@pytest.fixture
def config(address: str, tmp_path: Path) -> Path:
    return configured(address, tmp_path)


async def test_a_gateway_is_known_programmed_and_adopted(address: str, config: Path) -> None:
    """A starting controller detects the gateway and adopts its limits, drains and weights without a write."""
    assert await detect(address, 1) is TOFINO
    async with running(config) as first:
        assert "services=1 servers=2 adopted=no" in first.lines[0]
        assert (await gather(first.controller, pins=True))["services"][0]["name"] == "web"
        await first.controller.drain("s1", drain=True)
    async with running(config) as second:
        assert second.lines[0].endswith("adopted=yes updates=0")
        assert second.controller.world[Balance].views[1].balancer.weights() == {2: 256}
        await second.controller.drain("s1", drain=False)
        config.write_text(config.read_text().replace("10.0.3.2, port: 80", "10.0.3.2, port: 81"))
        assert await second.controller.reload() != "reloaded: 0 updates"
    async with running(config) as third:
        assert third.lines[0].endswith("adopted=yes updates=0")


async def test_a_gateway_that_is_killed_and_started_again_is_adopted(tmp_path: Path) -> None:
    """The running controller and a later one adopt the complete state, without a write to the driver."""
    served = f"127.0.0.1:{free_port()}"
    config, state = configured(served, tmp_path), ("--state", str(tmp_path / "state"))
    async with process(str(DRIVER)) as driver:
        uri = await line(driver, "http://")

        async def written() -> int:
            driver.send_signal(signal.SIGUSR1)
            return int((await line(driver, "written=")).removeprefix("written="))

        async with AsyncExitStack() as killed:
            await killed.enter_async_context(gateway(served, uri, *state))
            async with running(config) as it:
                assert "adopted=no" in it.lines[0]
                await it.controller.drain("s1", drain=True)
                before = await written()
                await killed.aclose()
                async with gateway(served, uri, *state):
                    await until(lambda: it.ready(2), "the second ready line")
                    assert it.lines[-1].endswith("adopted=yes updates=0")
                    assert it.controller.world[Balance].views[1].balancer.weights() == {2: 256}
                    assert await written() == before
        async with gateway(served, uri, *state), running(config) as later:
            assert later.lines[0].endswith("adopted=yes updates=0")
            assert await written() == before


async def test_cells_are_written_and_read(config: Path) -> None:
    """The test reads single cells, and a complete register, for which the driver's shadow copy is synchronised."""
    async with running(config) as it:
        registers = it.link.registers
        await registers.write_cells(Register.LEDGER_SYN, {1: 7, 2: 1 << 31})
        assert await registers.read(Register.LEDGER_SYN, [2, 1]) == [1 << 31, 7]
        (whole,) = await registers.arrays([Register.LEDGER_SYN])
        assert whole[:4].tolist() == [0, 7, 1 << 31, 0]


async def test_a_cell_of_two_words_is_one_number(config: Path) -> None:
    """A key of the connection table is the fingerprint followed by the time stamp, however the key is read."""
    async with running(config) as it:
        assert it.controller.link is not None
        link = it.controller.link
        number = link.session.pipeline.schema.registers[Register.PIN_KEY_1].id
        members = [p4d.P4Data(bitstring=word.to_bytes(4, "big").lstrip(b"\0")) for word in (0xABCD, 0x01000007)]
        data = p4d.P4Data(struct=p4d.P4StructLike(members=members))
        entry = p4r.RegisterEntry(register_id=number, index=p4r.Index(index=5), data=data)
        await link.session.write([p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry))])
        cell = 0xABCD_01000007
        assert await link.registers.read(Register.PIN_KEY_1, [5, 6]) == [cell, 0]
        assert await link.registers.columns([Register.PIN_KEY_1], [5]) == [[cell]]
        (whole,) = await link.registers.arrays([Register.PIN_KEY_1])
        assert whole[4:7].tolist() == [0, cell, 0]
