"""A client that never pauses: connections that it holds, and new ones all the time, until SIGTERM.

    python steady.py ADDRESS PORT HELD PER_S

Every held connection asks its server's name (talker.py) every 0.1 s; it must be the same one each time. Every new one
asks once. Each 0.1 s a line of JSON says `[times that held ones were answered, new ones answered, faults]`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Sequence

ANSWER_S = 10.0
"""Of a SYN that is lost the first repetition takes 1 s, the third 7 s."""
PAUSE_S = 0.1


class Client:
    """Counts what was answered, and keeps what went wrong."""

    def __init__(self, address: str, port: int) -> None:
        self._at = address, port
        self.held = 0
        self.made = 0
        self.faults: list[str] = []

    async def hold(self) -> None:
        """One connection, for good."""
        first = ""
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(*self._at), ANSWER_S)
            while True:
                name = await self._name(reader, writer)
                first = first or name
                if name != first:
                    raise OSError(f"was {first}'s, now {name!r} answers")
                self.held += 1
                await asyncio.sleep(PAUSE_S)
        except (OSError, TimeoutError) as error:
            self.faults.append(f"held, of {first}: {error!r}")

    async def once(self) -> None:
        """One new connection."""
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(*self._at), ANSWER_S)
            await self._name(reader, writer)
            writer.close()
            self.made += 1
        except (OSError, TimeoutError) as error:
            self.faults.append(f"new: {error!r}")

    async def _name(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        writer.write(b"name\n")
        line = await asyncio.wait_for(reader.readline(), ANSWER_S)
        if not line:
            raise OSError("the connection ended")
        return line.decode().strip()


async def run(address: str, port: int, held: int, per_s: float) -> None:
    """Until SIGTERM; new connections that are under way then are waited for."""
    client, ended = Client(address, port), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    holding = [asyncio.create_task(client.hold()) for _ in range(held)]
    tasks = [asyncio.create_task(every(PAUSE_S, lambda: tell(client)))]
    news: set[asyncio.Task[None]] = set()

    def another() -> None:
        news.add(task := asyncio.create_task(client.once()))
        task.add_done_callback(news.discard)

    tasks.append(asyncio.create_task(every(1 / per_s, another)))
    await ended.wait()
    tasks[-1].cancel()
    await asyncio.gather(*news)
    for task in (*tasks, *holding):
        task.cancel()
    tell(client)


async def every(seconds: float, do: Callable[[], None]) -> None:
    """Do something so often."""
    while True:
        do()
        await asyncio.sleep(seconds)


def tell(client: Client) -> None:
    """A line of what has been so far."""
    print(json.dumps([client.held, client.made, client.faults]), flush=True)


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    address, port, held, per_s = arguments
    asyncio.run(run(address, int(port), int(held), float(per_s)))


if __name__ == "__main__":
    main(sys.argv[1:])
