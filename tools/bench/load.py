"""Runs the load generator crates/ports/examples/packet_load on the first core, in the load host's namespace."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from tools.bench.addresses import CLIENT_MAC
from tools.bench.search import Trial
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import held_back
from topo.testbed.processes import command_in

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "target/release/examples"
FCS_LENGTH = 4
HEADERS = 54
SPARE_TIME_S = 30.0


@dataclass(frozen=True, slots=True)
class Latency:
    """The number of received frames, and percentiles of the time from sending to arrival, in microseconds."""

    received: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Opened:
    """The number of connections with a completed handshake, the number of abandoned ones, and the time in seconds."""

    count: int
    given_up: int
    seconds: float


class Load:
    """The load generator between two interfaces of the load host."""

    def __init__(self, pid: int, out: str, into: str, directory: Path) -> None:
        self.pid, self.out, self.into, self.directory = pid, out, into, directory

    def frame(self, router: str, destination: tuple[str, int], flags: str, length: int) -> Path:
        """Return a file with the template frame of the connections; `length` in bytes includes the frame check
        sequence."""
        segment = TCP(dport=destination[1], flags=flags) / bytes(length - FCS_LENGTH - HEADERS)
        path = self.directory / f"{flags}-{length}.frame"
        path.write_bytes(bytes(Ether(src=CLIENT_MAC, dst=router) / IP(src="0.0.0.0", dst=destination[0]) / segment))
        return path

    def flood(self, frame: Path, first: int, count: int, rate: float, seconds: float) -> tuple[int, float]:
        """Send frames of the `count` connections from number `first` on, at `rate` (frames/s) for `seconds`.

        A rate of 0 means as fast as possible. Returns the number of frames sent, and the duration in seconds.
        """
        words = self._run(seconds, "flood", self.out, str(frame), first, count, rate, seconds)
        return int(words[0]), float(words[1])

    def latency(self, frame: Path, count: int, rate: float, seconds: float) -> Latency:
        """Send frames one at a time and measure each frame's latency."""
        words = self._run(seconds, "latency", self.out, self.into, str(frame), 0, count, rate, seconds)
        return Latency(int(words[1]), float(words[2]), float(words[3]))

    def handshakes(self, frame: Path, first: int, window: int, seconds: float) -> Opened:
        """Open connections, with up to `window` incomplete handshakes at a time."""
        words = self._run(seconds, "handshakes", self.out, self.into, str(frame), first, window, seconds)
        return Opened(int(words[0]), int(words[1]), float(words[2]))

    def _run(self, seconds: float, *arguments: str | float) -> list[str]:
        command = ["taskset", "--cpu-list", "0", str(EXAMPLES / "packet_load"), *(f"{word}" for word in arguments)]
        process = None
        try:
            with held_back():
                process = subprocess.Popen(
                    command_in(command, namespace_pid=self.pid),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            out, said = process.communicate(timeout=seconds + SPARE_TIME_S)
        except BaseException:
            if process:
                process.kill()
                process.communicate()
            raise
        if process.returncode:
            raise SetupError(said.strip() or f"packet_load: exit code {process.returncode}")
        return out.split()


def trial(sent: int, received: int, seconds: float) -> Trial:
    """Return a trial whose received frames are limited to the number sent, since the kernel may add a stray frame."""
    return Trial(sent, min(sent, received), seconds)
