"""Tests of registers over P4Runtime and over Thrift, which return equal values through one interface."""

from __future__ import annotations

import io
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator

import pytest
import thriftpy2
from fakeswitch import FakeSwitch, Memory
from finsy.proto import p4d, p4r
from sluice.config.model import ConnectionsConfig
from sluice.names import REGISTER_SIZES, TICK_BASE, PinState, Register
from sluice.switch import pipeline
from sluice.switch.bmv2thrift import IDL
from sluice.switch.connections import Pins, pins_of, read_slots
from sluice.switch.errors import SwitchError, SwitchLost
from sluice.switch.registers import P4RuntimeRegisters, Registers, open_registers
from sluice.switch.session import BATCH, Session
from sluice.switch.thriftregisters import ThriftRegisters
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TMultiplexedProcessor, TProcessor
from thriftpy2.transport import TBufferedTransportFactory, TServerSocket

_interface = thriftpy2.load_fp(io.StringIO(IDL), "test_bmv2_thrift")


class Bmv2:
    """A substitute for the register calls of BMv2's Thrift server."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[int, int]] = defaultdict(dict)

    def bm_register_read(self, cxt_id: int, name: str, index: int) -> int:
        if name not in list(Register):
            raise _interface.InvalidRegisterOperation(code=1)
        return self.cells[name].get(index, 0)

    def bm_register_read_all(self, cxt_id: int, name: str) -> list[int]:
        return [self.cells[name].get(index, 0) for index in range(REGISTER_SIZES[Register(name)])]

    def bm_register_write(self, cxt_id: int, name: str, index: int, value: int) -> None:
        self.cells[name][index] = value


class OneSocket(TServerSocket):
    """A socket that listens only once, because a second `listen` would lose clients that are already connected."""

    def listen(self) -> None:
        if self.sock is None:
            super().listen()


@pytest.fixture
def thrift_address() -> str:
    """Run a Thrift server with BMv2's register calls on a daemon thread; return the server's address."""
    processor = TMultiplexedProcessor()
    processor.register_processor("standard", TProcessor(_interface.Standard, Bmv2()))
    listener = OneSocket("127.0.0.1", 0, client_timeout=10_000)
    server = TThreadedServer(
        processor,
        listener,
        iprot_factory=TBinaryProtocolFactory(),
        itrans_factory=TBufferedTransportFactory(),
        daemon=True,
    )
    listener.listen()
    assert listener.sock is not None
    port = listener.sock.getsockname()[1]
    threading.Thread(target=server.serve, daemon=True).start()
    return f"127.0.0.1:{port}"


@pytest.fixture(params=["p4runtime", "thrift"])
async def registers(request: pytest.FixtureRequest, thrift_address: str) -> AsyncGenerator[Registers]:
    over_p4runtime = request.param == "p4runtime"
    async with (
        FakeSwitch(registers_over_p4runtime=over_p4runtime) as switch,
        Session(switch.address, 1, pipeline.load()) as session,
    ):
        await session.push_pipeline()
        opened = await open_registers(session, thrift_address)
        assert isinstance(opened, P4RuntimeRegisters if over_p4runtime else ThriftRegisters)
        yield opened
        await opened.close()


async def test_what_is_written_is_read(registers: Registers) -> None:
    await registers.write(Register.LEDGER_SYN, 7, 0xFFFF_FFFF)
    assert await registers.read(Register.LEDGER_SYN, [7, 1]) == [0xFFFF_FFFF, 0]
    everything = await registers.read(Register.LEDGER_SYN)
    assert len(everything) == REGISTER_SIZES[Register.LEDGER_SYN]
    assert everything[7] == 0xFFFF_FFFF
    assert await registers.read(Register.LEDGER_SYN, range(100)) == everything[:100]


async def test_many_cells_are_written_at_once(registers: Registers) -> None:
    """More cells than one request may contain are written in several requests."""
    cells = {index: index * 3 for index in range(5, 5 + 2 * BATCH)}
    await registers.write_cells(Register.RATE_BYTES, cells)
    await registers.write_cells(Register.RATE_BYTES, {})
    values = await registers.read(Register.RATE_BYTES)
    assert {index: value for index, value in enumerate(values) if value} == cells


async def test_an_array_is_what_is_read(registers: Registers) -> None:
    for index, value in enumerate((1, 0xFF, 0x100, 0xFFFF_FFFF)):
        await registers.write(Register.RATE_BYTES, 1000 * index, value)
    (array,) = await registers.arrays([Register.RATE_BYTES])
    assert array.tolist() == await registers.read(Register.RATE_BYTES)
    assert array[3000] == 0xFFFF_FFFF


async def test_arrays_of_several_registers_come_each_with_its_own_cells(registers: Registers) -> None:
    await registers.write(Register.RATE_BYTES, 17, 3)
    await registers.write(Register.LEDGER_SYN, 17, 4)
    wanted = [Register.LEDGER_SYN, Register.RATE_BYTES, Register.LEDGER_SYNACK]
    arrays = await registers.arrays(wanted)
    assert [array.tolist() for array in arrays] == [await registers.read(register) for register in wanted]
    assert [int(array[17]) for array in arrays] == [4, 3, 0]


@pytest.mark.parametrize("indices", [[], [5], [9, 5], list(range(400))])
async def test_columns_are_the_same_cells_of_several_registers(registers: Registers, indices: list[int]) -> None:
    wanted = (Register.LEDGER_SYN, Register.LEDGER_SYNACK)
    await registers.write(Register.LEDGER_SYN, 5, 50)
    await registers.write(Register.LEDGER_SYNACK, 9, 90)
    assert await registers.columns(wanted, indices) == [await registers.read(register, indices) for register in wanted]


class Answering(Session):
    """A session that returns the same bytes for every read."""

    def __init__(self, *answers: bytes) -> None:
        super().__init__("nowhere", 1, pipeline.load())
        self.answers = answers

    async def read_bytes(self, entities: object) -> list[bytes]:
        return list(self.answers)


def _entities(indices: range) -> bytes:
    number = pipeline.load().schema.registers[Register.RATE_BYTES].id
    entries = [
        p4r.RegisterEntry(register_id=number, index=p4r.Index(index=i), data=p4d.P4Data(bitstring=bytes([i % 256])))
        for i in indices
    ]
    return p4r.ReadResponse(entities=[p4r.Entity(register_entry=entry) for entry in entries]).SerializeToString()


async def test_an_answer_may_come_in_parts_and_in_another_encoding() -> None:
    size = REGISTER_SIZES[Register.RATE_BYTES]
    # The last message has an unknown field (number 1000): valid protobuf, but not the expected shape.
    parts = (_entities(range(100, size)), _entities(range(100)) + bytes.fromhex("c0 3e 01"))
    (cells,) = await P4RuntimeRegisters(Answering(*parts)).arrays([Register.RATE_BYTES])
    assert cells.tolist() == [index % 256 for index in range(size)]


async def test_a_cell_that_is_missing_is_named() -> None:
    registers = P4RuntimeRegisters(Answering(_entities(range(100))))
    with pytest.raises(SwitchError, match="rate_bytes: no cell 100 in the answer"):
        await registers.arrays([Register.RATE_BYTES])
    with pytest.raises(SwitchError, match="rate_bytes: no cell 100 in the answer"):
        await registers.columns([Register.RATE_BYTES], [5, 100])


async def test_63_bits_pass(registers: Registers) -> None:
    await registers.write(Register.PIN_KEY_1, 1, (1 << 63) - 1)
    assert await registers.read(Register.PIN_KEY_1, [1]) == [(1 << 63) - 1]


async def test_no_server_at_the_thrift_address() -> None:
    with pytest.raises(SwitchLost, match=r"is switch\.thrift right\?"):
        await ThriftRegisters.open("127.0.0.1:1")


async def test_thrift_refusal_is_no_loss_of_connection(thrift_address: str) -> None:
    registers = await ThriftRegisters.open(thrift_address)
    with pytest.raises(SwitchError, match="refused with code 1") as caught:
        await registers.read("unknown", [0])  # type: ignore[arg-type]
    assert not isinstance(caught.value, SwitchLost)
    assert await registers.read(Register.LEDGER_SYN, [0]) == [0]
    await registers.close()


async def test_pins_that_aged_are_not_counted() -> None:
    memory = Memory()
    now = TICK_BASE + 100_000

    async def pin(way: int, slot: int, server: int, state: PinState, age_s: float) -> None:
        key, owner = (
            (Register.PIN_KEY_1, Register.PIN_SERVER_1) if way == 1 else (Register.PIN_KEY_2, Register.PIN_SERVER_2)
        )
        await memory.write(key, slot, 0x1234 << 36 | state << 32 | now - memory.units.ticks(age_s))
        await memory.write(owner, slot, server)

    await pin(1, 5, 1, PinState.ESTABLISHED, 0)
    await pin(1, 6, 1, PinState.PENDING, 9)
    await pin(1, 4, 1, PinState.PENDING, 11)
    await pin(2, 7, 2, PinState.CLIENT_CLOSING, 100)
    await pin(2, 8, 2, PinState.CLOSED, 400)
    await pin(2, 9, 3, PinState.SERVER_CLOSING, 200)
    pins = await counted(memory)
    assert pins.by_server == {1: 2, 2: 1}
    assert pins.by_state == {
        PinState.PENDING: 1,
        PinState.ESTABLISHED: 1,
        PinState.CLIENT_CLOSING: 1,
        PinState.SERVER_CLOSING: 1,
    }
    assert pins.pinned == {1, 2, 3}


async def test_empty_table_has_no_pins() -> None:
    assert (await counted(Memory())).by_server == {}


async def counted(memory: Memory) -> Pins:
    slots = await read_slots(memory)
    return pins_of(slots, slots.unexpired(ConnectionsConfig(), 300.0, memory.units, slots.newest or 0))
