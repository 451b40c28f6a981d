"""Very many connections of real TCP to servers that say their names: each must hear one name, and be ended by nobody.

    python -m topo.load.naming --to A:P --connections N --at-once N --asks N --pause SECONDS

Connections end by the client's FIN, the server's, or the client's RST, in turn. The last line says what became of all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import socket
import struct
import sys
from collections import Counter
from collections.abc import Sequence

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: close by RST."""
TIMEOUT_S = 60.0
"""For a connection to be made, and for an answer: a server may be silent for seconds."""


class Clients:
    """All of them."""

    def __init__(self, to: tuple[str, int], asks: int, pause_s: float) -> None:
        self._to, self._asks, self._pause_s = to, asks, pause_s
        self.counts: Counter[str] = Counter()
        self.names: Counter[str] = Counter()

    async def run(self, connections: int, at_once: int) -> None:
        """Make so many, each worker one after the other."""
        numbers = iter(range(connections))

        async def work() -> None:
            for number in numbers:
                self.counts[await self._one(number)] += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(work())

    async def _one(self, number: int) -> str:
        """What became of a connection."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection(*self._to)
        except (OSError, TimeoutError):
            return "not_made"
        try:
            first = b""
            for _ in range(self._asks):
                async with asyncio.timeout(TIMEOUT_S):
                    writer.write(b"name\n")
                    name = await reader.readline()
                if not name.endswith(b"\n"):
                    return "broken"
                if first and name != first:
                    return "another_name"
                first = name
                await asyncio.sleep(random.uniform(0, 2 * self._pause_s))
            self.names[first.decode().strip()] += 1
            if number % 3 == 1:
                writer.write(b"fin\n")
                await reader.read()
            elif number % 3 == 2:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        except (OSError, TimeoutError):
            return "broken"
        finally:
            writer.close()
        return "whole"


def main(arguments: Sequence[str]) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--at-once", type=int, required=True)
    parser.add_argument("--asks", type=int, required=True)
    parser.add_argument("--pause", type=float, required=True)
    options = parser.parse_args(arguments)
    address, port = options.to.rsplit(":", 1)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    clients = Clients((address, int(port)), options.asks, options.pause)
    asyncio.run(clients.run(options.connections, options.at_once))
    print(json.dumps({"counts": clients.counts, "names": clients.names}))


if __name__ == "__main__":
    main(sys.argv[1:])
