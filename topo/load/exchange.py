"""Uploads and downloads of known bytes, each beside a twin that goes another way at the same time.

    python -m topo.load.exchange serve --address A --port P [--port Q]
    python -m topo.load.exchange run --to A:P --twin A:Q --transfers N --at-once N --seed N

A transfer is a connection: so many bytes up, so many down, all of them told by a seed. `run` prints what became of all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = struct.Struct("!QQQ")
"""Seed, bytes up, bytes down."""
RIGHT, WRONG = b"\1", b"\0"
PIECE = 1 << 14
LEAST, MOST = 20_000, 200_000
"""Bytes of each way."""
TIMEOUT_S = 120.0


def known(seed: int, size: int) -> bytes:
    """The bytes of a seed."""
    return random.Random(seed).randbytes(size)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a transfer, say whether it is what it should be, and send the other one."""
    try:
        seed, up, down = HEADER.unpack(await reader.readexactly(HEADER.size))
        is_right = await reader.readexactly(up) == known(seed, up)
        writer.write(RIGHT if is_right else WRONG)
        writer.write(known(seed + 1, down))
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the other side says so
    finally:
        writer.close()


async def serve(address: str, ports: Sequence[int]) -> None:
    """Answer for ever."""
    servers = [await asyncio.start_server(answer, address, port, backlog=4096) for port in ports]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


@dataclass(slots=True)
class Transfer:
    """What became of one."""

    is_right: bool = False
    stalled_s: float = 0.0
    """The longest time in which no byte went on."""
    error: str = ""
    at: float = 0.0

    def goes_on(self) -> None:
        """Some bytes have."""
        now = time.monotonic()
        self.stalled_s, self.at = max(self.stalled_s, now - self.at), now


async def transfer(to: tuple[str, int], seed: int, up: int, down: int) -> Transfer:
    """Make one."""
    one, writer = Transfer(), None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*to)
            writer.transport.set_write_buffer_limits(PIECE)
            one.at = time.monotonic()
            content = HEADER.pack(seed, up, down) + known(seed, up)
            for start in range(0, len(content), PIECE):
                writer.write(content[start : start + PIECE])
                await writer.drain()
                one.goes_on()
            received = bytearray()
            while more := await reader.read(PIECE):
                received += more
                one.goes_on()
        one.is_right = bytes(received) == RIGHT + known(seed + 1, down)
    except (OSError, TimeoutError) as error:
        one.error = repr(error)
    finally:
        if writer is not None:
            writer.close()
    return one


async def run(to: tuple[str, int], twin: tuple[str, int], transfers: int, at_once: int, seed: int) -> None:
    """Make so many with their twins, and print what became of them."""
    source, pairs = random.Random(seed), list[tuple[Transfer, Transfer]]()
    plans = (
        (source.getrandbits(62), source.randint(LEAST, MOST), source.randint(LEAST, MOST)) for _ in range(transfers)
    )

    async def work(mine: Iterator[tuple[int, int, int]]) -> None:
        for plan in mine:
            pairs.append(await asyncio.gather(transfer(to, *plan), transfer(twin, *plan)))

    await asyncio.gather(*(work(plans) for _ in range(at_once)))
    print(json.dumps(told(pairs)), flush=True)


def told(pairs: Sequence[tuple[Transfer, Transfer]]) -> dict[str, object]:
    """What became of all: of stalls the longest of each kind, and by how much one's is longer than its twin's, or
    shorter, which is the machine's part in it."""
    both = [one for pair in pairs for one in pair]
    return {
        "transfers": len(pairs),
        "wrong": sum(not one.is_right for one in both),
        "errors": sorted({one.error for one in both if one.error}),
        "longest_s": max(one.stalled_s for one, _ in pairs),
        "longest_twin_s": max(twin.stalled_s for _, twin in pairs),
        "longer_s": max(one.stalled_s - twin.stalled_s for one, twin in pairs),
        "shorter_s": max(twin.stalled_s - one.stalled_s for one, twin in pairs),
    }


def _place(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address, int(port)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve or run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.exchange", description="Transfers beside their twins.")
    parser.add_argument("what", choices=("serve", "run"))
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, action="append", default=[])
    parser.add_argument("--to", type=_place)
    parser.add_argument("--twin", type=_place)
    parser.add_argument("--transfers", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.what == "serve":
        asyncio.run(serve(options.address, options.port))
    else:
        asyncio.run(run(options.to, options.twin, options.transfers, options.at_once, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
