"""A bystander's bulk transfer, limited by its application: 8 KB pieces, steadily (Chen & Heidemann, section 8.6).

    python -m topo.load.bulk send --address A --port P --bytes-per-s N
    python -m topo.load.bulk receive --address A --port P --source S --start EPOCH --seconds N --output FILE

The receiver writes `time_s,bytes,connections` for every tenth of a second: time since `--start`, how many connections
have been made by then.  One that ends is made again.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

HEADER = "time_s,bytes,connections"
PIECE = bytes(8192)
SLOT_S = 0.1
TIMEOUT_S = 1.0


def send(address: str, port: int, bytes_per_s: float) -> None:
    """Serve one receiver after the other for ever; a piece that the link holds up is sent late, none is left out
    unless it is more than a second late."""
    with socket.create_server((address, port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                due = time.monotonic()
                while True:
                    time.sleep(max(0.0, due - time.monotonic()))
                    connection.sendall(PIECE)
                    due = max(due + len(PIECE) / bytes_per_s, time.monotonic() - TIMEOUT_S)


class Receiver:
    """What one receiver has received, in each SLOT_S of the run."""

    def __init__(self, seconds: float) -> None:
        self.received = [0] * round(seconds / SLOT_S)
        self.connections = [0] * len(self.received)

    def run(self, address: str, port: int, source: str, start: float) -> None:
        """Receive until the run ends; `start` is its beginning, on time.time()."""
        end = start + len(self.received) * SLOT_S
        while time.time() < end:
            try:
                with socket.create_connection((address, port), TIMEOUT_S, source_address=(source, 0)) as connection:
                    self._count(self.connections, 1, start)
                    self._receive_from(connection, start, end)
            except OSError:
                time.sleep(SLOT_S)

    def lines(self) -> list[str]:
        """Return the lines of the file."""
        made = accumulate(self.connections)
        columns = enumerate(zip(self.received, made, strict=True))
        return [HEADER, *(f"{place * SLOT_S:.1f},{size},{number}" for place, (size, number) in columns)]

    def _receive_from(self, connection: socket.socket, start: float, end: float) -> None:
        connection.settimeout(SLOT_S)
        while time.time() < end:
            with suppress(TimeoutError):
                data = connection.recv(1 << 16)
                if not data:
                    return
                self._count(self.received, len(data), start)

    def _count(self, slots: list[int], number: int, start: float) -> None:
        slot = max(0, int((time.time() - start) / SLOT_S))
        if slot < len(slots):
            slots[slot] += number


def main(arguments: Sequence[str] | None = None) -> int:
    """Send or receive from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.bulk", description="An application-limited transfer.")
    parser.add_argument("what", choices=("send", "receive"))
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bytes-per-s", type=float, default=40_000.0)
    parser.add_argument("--source", default="0.0.0.0")
    parser.add_argument("--start", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--delay", type=float, default=0.0, help="begin so much later than --start, s")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    if options.what == "send":
        send(options.address, options.port, options.bytes_per_s)
    else:
        receiver = Receiver(options.seconds)
        time.sleep(max(0.0, options.start + options.delay - time.time()))
        receiver.run(options.address, options.port, options.source, options.start)
        partial = options.output.with_suffix(".partial")
        partial.write_text("\n".join(receiver.lines()) + "\n")
        partial.rename(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
