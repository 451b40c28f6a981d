"""The controller against sluice-tofino itself, before a server that stands in for Tofino's driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from configs import web
from finsy.proto import p4d, p4r
from live import running
from sluice.names import Register
from sluice.status import gather
from sluice.switch.targets import TOFINO
from sluice.switch.targets.detect import detect

from testbed.ports import free_port
from testbed.switches.tofino import GATEWAY

DRIVER = GATEWAY.with_name("examples") / "stand_in_driver"

pytestmark = pytest.mark.skipif(
    not (GATEWAY.exists() and DRIVER.exists()), reason="not built: `make test-controller` builds gateway and driver"
)


@asynccontextmanager
async def process(*words: str, says: str) -> AsyncGenerator[str]:
    """A program from a line of its output that contains ``says``, which this yields, until the block ends."""
    it = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    assert it.stdout is not None
    try:
        async with asyncio.timeout(60):
            while says not in (line := (await it.stdout.readline()).decode()):
                assert line, f"{words[0]} has ended"
        yield line.strip()
    finally:
        it.kill()
        await it.wait()


@pytest.fixture
async def address() -> AsyncGenerator[str]:
    """Of a gateway without a program."""
    served = f"127.0.0.1:{free_port()}"
    async with process(str(DRIVER), says="http://") as uri:
        command = (str(GATEWAY), "--grpc-server-addr", served, "--driver", uri)
        async with process(*command, says="the driver answers"):
            yield served


@pytest.fixture
def config(address: str, tmp_path: Path) -> Path:
    path = tmp_path / "sluice.yaml"
    text = web(address, control=str(tmp_path / "s.sock")).replace(', pipeline: ""', "")
    path.write_text(text.replace("  servers:", "  admission: {rate_per_s: 250, burst: 25}\n  servers:"))
    return path


async def test_a_gateway_is_known_programmed_and_adopted(address: str, config: Path) -> None:
    """Limits, drains and weights among what is read back; nothing tells the controller what kind of switch it is."""
    assert await detect(address, 1) is TOFINO
    async with running(config) as first:
        assert "services=1 servers=2 adopted=no" in first.said[0]
        assert (await gather(first.controller, pins=True))["services"][0]["name"] == "web"
        await first.controller.drain("s1", drain=True)
    async with running(config) as second:
        assert second.said[0].endswith("adopted=yes updates=0")
        assert second.controller.world.views[1].balancer.weights() == {2: 256}
        await second.controller.drain("s1", drain=False)
        config.write_text(config.read_text().replace("10.0.3.2, port: 80", "10.0.3.2, port: 81"))
        assert await second.controller.reload() != "reloaded: 0 updates"
    async with running(config) as third:
        assert third.said[0].endswith("adopted=yes updates=0")


async def test_cells_are_written_and_read(config: Path) -> None:
    """A few, and a whole register; the shadow of the driver is copied for the latter."""
    async with running(config) as it:
        assert it.controller.link is not None
        registers = it.controller.link.registers
        await registers.write_cells(Register.LEDGER_SYN, {1: 7, 2: 1 << 31})
        assert await registers.read(Register.LEDGER_SYN, [2, 1]) == [1 << 31, 7]
        (whole,) = await registers.arrays([Register.LEDGER_SYN])
        assert whole[:4].tolist() == [0, 7, 1 << 31, 0]


async def test_a_cell_of_two_words_is_one_number(config: Path) -> None:
    """A key of the connection table: fingerprint above, stamp below, whichever way it is read."""
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
