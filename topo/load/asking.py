"""A client of the servers of `topo.load.answering`: many connections, every byte of every answer compared.

    python -m topo.load.asking --address 10.0.0.110 --connections 20 --requests 50 --paths /images /fast /page

Each connection asks for pages below the paths in random order, of random sizes; with `--pipelined N` for so many at
once. Prints one JSON object (`Outcome`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from topo.load.answering import PORT, body

PATIENCE_S = 30.0
"""How long an answer may take."""


@dataclass
class Outcome:
    """What became of the requests of all connections."""

    answered: int = 0
    """Requests with the right answer."""
    wrong: list[str] = field(default_factory=list)
    """Answers with another status or body, or in the place of another."""
    broken: dict[str, int] = field(default_factory=dict[str, int])
    """Connections by what ended them early."""
    servers: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Path -> server -> answers."""
    mixed: int = 0
    """Connections whose requests for one path were answered by more than one server."""


@dataclass(frozen=True)
class Plan:
    """What to ask for."""

    address: str
    paths: Sequence[str]
    requests: int
    """On each connection."""
    pipelined: int = 1
    most_bytes: int = 10_000
    pause_s: float = 0.0
    """Between two requests of a connection."""


class Asker:
    """Asks, and compares."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan, self._random = plan, random.Random(seed)
        self.outcome = Outcome()

    async def connection(self) -> None:
        """One connection from its beginning to its end."""
        met: dict[str, set[str]] = {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await asyncio.open_connection(self._plan.address, PORT)
            left = self._plan.requests
            while left:
                batch = min(left, self._plan.pipelined)
                await self._ask(reader, writer, batch, met)
                left -= batch
                await asyncio.sleep(self._plan.pause_s)
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError) as error:
            why = type(error).__name__
            self.outcome.broken[why] = self.outcome.broken.get(why, 0) + 1
        self.outcome.mixed += any(len(names) > 1 for names in met.values())

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, times: int, met: dict[str, set[str]]
    ) -> None:
        asked: list[tuple[str, bytes]] = []
        for _ in range(times):
            path, seed = self._random.choice(self._plan.paths), self._random.getrandbits(32)
            size = int(self._plan.most_bytes ** self._random.random())
            writer.write(f"GET {path}?seed={seed}&bytes={size} HTTP/1.1\r\nHost: shop\r\n\r\n".encode())
            asked.append((path, body(seed, size)))
        for path, expected in asked:
            async with asyncio.timeout(PATIENCE_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
                came = await reader.readexactly(int(fields.get("Content-Length", 0)))
            server = fields.get("X-Server", "nobody")
            self.outcome.servers.setdefault(path, Counter())[server] += 1
            met.setdefault(path, set()).add(server)
            if head.startswith("HTTP/1.1 200 ") and came == expected:
                self.outcome.answered += 1
            else:
                self.outcome.wrong.append(
                    f"{path} of {server}: {head.splitlines()[0]}, {len(came)} of {len(expected)} bytes"
                )


async def run(plan: Plan, *, connections: int, at_once: int, seconds: float, seed: int) -> Outcome:
    """Make so many connections, or as many as there is time for."""
    asker, left = Asker(plan, seed), connections
    end = time.monotonic() + seconds

    async def one_after_the_other() -> None:
        nonlocal left
        while left > 0 and time.monotonic() < end:
            left -= 1
            await asker.connection()

    await asyncio.gather(*(one_after_the_other() for _ in range(min(at_once, connections))))
    return asker.outcome


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Asks servers, and compares what they answer.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--paths", nargs="+", required=True)
    parser.add_argument("--connections", type=int, default=sys.maxsize)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--requests", type=int, default=1)
    parser.add_argument("--pipelined", type=int, default=1)
    parser.add_argument("--most-bytes", type=int, default=10_000)
    parser.add_argument("--pause-s", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    plan = Plan(
        options.address, options.paths, options.requests, options.pipelined, options.most_bytes, options.pause_s
    )
    outcome = asyncio.run(
        run(plan, connections=options.connections, at_once=options.at_once, seconds=options.seconds, seed=options.seed)
    )
    print(json.dumps(vars(outcome)))


if __name__ == "__main__":
    main()
