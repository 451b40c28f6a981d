"""Measures how many packets a second the switch forwards on sluice's own program, next to its ceiling.

One network: a load host with two links to the switch. Frames of pinned connections go in on port 1 and come out,
translated, on port 2, where the kernel counts them. The forwarders take turns, round by round, so that a drift of the
machine meets all:

- `copy-forward`: the embedded switch's packet input and output without a pipeline. The ceiling.
- `embedded`: the embedded switch.
- `bmv2`: simple_switch_grpc, where it is on PATH.

`pps` is the largest offered rate, out of a bisection, at which at most one frame in a thousand is lost; the median
over rounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from sluice import names

from topo.hosts import LabHost
from topo.mn import Mininet, setLogLevel
from topo.netns import interface_packets
from topo.processes import Process, await_true, command_in, run_in
from topo.switches import SWITCHES, ProcessSwitch

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "switch/target/release/examples"
RESULTS = ROOT / "results/bench/switch.json"

SERVERS = 3
CONNECTIONS = 1000
CLIENT, VIP, PORT = "10.0.1.1", "10.0.0.100", 80
ROUTER_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
FCS_LENGTH = 4
LOSS = 0.001
RESOLUTION = 0.05
RATE_LIMIT = 2_000_000.0
READY_TIMEOUT_S = 30.0


class CopyForward(ProcessSwitch):
    """The embedded switch's packet input and output, and nothing else."""

    program = "copy_forward"

    def executable(self) -> str:
        """Return the release build of the example."""
        return str(EXAMPLES / "copy_forward")

    def command(self, executable: str, ports: dict[int, str]) -> list[str]:
        """Return the command line of copy_forward."""
        return [executable, *(ports[number] for number in sorted(ports))]

    def ready(self, process: Process) -> bool:
        """Say whether it forwards."""
        process.require_running()
        return "copy_forward: forwarding" in process.output()


class Bench:
    """One forwarder between the two links of a load host."""

    def __init__(self, who: str, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        network = Mininet(controller=None)
        stack.callback(network.stop)
        self.load = network.addHost("load", cls=LabHost, ip=None)
        kind = CopyForward if who == "copy-forward" else SWITCHES[who]
        self.switch = network.addSwitch("sw", cls=kind, directory=directory)
        for port in (1, 2):
            network.addLink(self.load, self.switch, port1=port, port2=port)
        assert isinstance(self.switch, ProcessSwitch)
        stack.callback(self.switch.stop_process)
        network.start()
        self.out_of, self.into = (self.load.intfs[port].name for port in (1, 2))

    def program(self) -> None:
        """Has the controller program the pipeline and learn the servers; then leaves the switch alone."""
        addresses = {self.out_of: [f"{CLIENT}/24"], self.into: [f"10.0.2.{11 + i}/24" for i in range(SERVERS)]}
        for interface, those in addresses.items():
            for address in those:
                run_in(self.load.pid, ["ip", "address", "add", address, "dev", interface])
        config = self.directory / "sluice.yaml"
        config.write_text(yaml.safe_dump(configuration(self.directory, isinstance(self.switch, SWITCHES["bmv2"]))))
        program = str(Path(sys.executable).parent / "sluice")
        controller = Process(
            "sluice run",
            [program, "run", "--config", str(config)],
            log=self.directory / "controller.log",
            namespace_pid=self.switch.pid,
        )
        try:
            controller.await_output("sluice: ready", READY_TIMEOUT_S)
            syns = self.write_frames("syn", "S", b"")

            def passing() -> bool:
                before = self.received()
                self.offer(syns, 10_000, CONNECTIONS / 10_000)
                return self.received() - before >= CONNECTIONS

            await_true("frames of every connection come through", passing, READY_TIMEOUT_S)
        finally:
            controller.stop()
        # Without addresses the load host's kernel answers nothing: what is measured goes one way.
        for interface in addresses:
            run_in(self.load.pid, ["ip", "address", "flush", "dev", interface])

    def write_frames(self, name: str, flags: str, payload: bytes) -> Path:
        """One frame of each connection, as packet_load reads them."""
        path = self.directory / f"{name}.frames"
        with path.open("wb") as file:
            for number in range(CONNECTIONS):
                segment = TCP(sport=10_000 + number, dport=PORT, flags=flags, seq=1, ack=1)
                frame = bytes(Ether(src=self.load.intfs[1].mac, dst=ROUTER_MACS[0]) / IP(src=CLIENT, dst=VIP) / segment)
                file.write((len(frame) + len(payload)).to_bytes(2, "big"))
                file.write(with_payload(frame, payload))
        return path

    def received(self) -> int:
        """Frames that have come out of the forwarder so far."""
        return interface_packets(self.load.pid)[self.into][0]

    def offer(self, frames: Path, rate: float, seconds: float) -> tuple[int, float]:
        """Sends frames; returns how many, and how long it took."""
        command = [str(EXAMPLES / "packet_load"), self.out_of, str(frames), str(rate), str(seconds)]
        done = subprocess.run(
            command_in(command, namespace_pid=self.load.pid),
            check=True,
            capture_output=True,
            text=True,
            timeout=seconds + READY_TIMEOUT_S,
        )
        sent, took = done.stdout.split()
        return int(sent), float(took)

    def passes(self, frames: Path, rate: float, seconds: float) -> tuple[float, bool]:
        """Offers a rate; returns what came out a second, and whether it was nearly all of it."""
        before = self.received()
        sent, took = self.offer(frames, rate, seconds)
        counted = [-1, self.received()]

        def settled() -> bool:
            counted.append(self.received())
            return counted[-1] == counted[-2] == counted[-3]

        await_true("the last frame has come out", settled, READY_TIMEOUT_S)
        received = counted[-1] - before
        return received / took, sent > 0 and received >= sent * (1 - LOSS)


def with_payload(frame: bytes, payload: bytes) -> bytes:
    """The frame with a payload behind it, lengths and checksums right."""
    packet = Ether(frame) / payload
    del packet[IP].len, packet[IP].chksum, packet[TCP].chksum
    return bytes(packet)


def configuration(directory: Path, thrift: bool) -> dict[str, object]:
    """The content of sluice.yaml."""
    switch: dict[str, object] = {"address": "127.0.0.1:9559", "device_id": 1}
    if thrift:
        switch["thrift"] = "127.0.0.1:9090"
    servers = [{"name": f"s{i}", "address": f"10.0.2.{11 + i}", "port": PORT} for i in range(SERVERS)]
    balance = {"mode": "fixed", "period_s": 10, "window_s": 200}
    return {
        "switch": switch,
        "interfaces": [
            {"port": port, "mac": ROUTER_MACS[port - 1], "address": f"10.0.{port}.254/24"} for port in (1, 2)
        ],
        "services": [{"name": "web", "address": VIP, "port": PORT, "balance": balance, "servers": servers}],
        "control": str(directory / "sluice.sock"),
    }


@contextmanager
def bench(who: str) -> Generator[Bench]:
    """A forwarder ready to be measured; everything is gone afterwards."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        one = Bench(who, directory, stack)
        if who != "copy-forward":
            one.program()
        yield one


def largest_rate(passes: Callable[[float], tuple[float, bool]]) -> float:
    """Bisects for the largest rate that passes, within RESOLUTION; frames per second that came out at it."""
    low, high, best = 0.0, RATE_LIMIT, 0.0
    first, whole = passes(0.0)
    if whole:
        return first
    # What comes out under overload is where the search begins.
    guess = first
    while high - low > RESOLUTION * max(low, 1.0):
        out, whole = passes(guess)
        if whole:
            low, best = guess, max(best, out)
        else:
            high = guess
        if high < 1000:
            break
        guess = (low + high) / 2 if low else high * 0.8
        if high == RATE_LIMIT:
            guess = low * 1.3
    return best


def measure(forwarders: list[str], lengths: list[int], rounds: int, seconds: float) -> list[dict[str, object]]:
    """Rows of the result, one for each forwarder and frame length."""
    found: dict[tuple[str, int], list[float]] = {}
    for turn in range(rounds):
        for who in forwarders:
            with bench(who) as one:
                for length in lengths:
                    frames = one.write_frames(str(length), "A", bytes(length - FCS_LENGTH - 54))
                    rate = largest_rate(lambda r, one=one, frames=frames: one.passes(frames, r, seconds))
                    found.setdefault((who, length), []).append(rate)
                    print(f"round {turn + 1}/{rounds}: {who}, {length} bytes: {rate:,.0f} packets/s", flush=True)
    return [
        {
            "who": who,
            "frame": length,
            "servers": SERVERS,
            "connections": CONNECTIONS,
            "entries": None,
            "pps": round(statistics.median(rates)),
            "pps_rounds": [round(rate) for rate in rates],
            "latency_us": None,
        }
        for (who, length), rates in found.items()
    ]


def table(rows: list[dict[str, object]]) -> str:
    """The rows as text, with the ratio to the ceiling."""
    ceiling = {row["frame"]: row["pps"] for row in rows if row["who"] == "copy-forward"}
    lines = [f"{'forwarder':<14}{'frame':>7}{'packets/s':>12}{'of the ceiling':>16}"]
    for row in rows:
        pps, of = row["pps"], ceiling[row["frame"]]
        assert isinstance(pps, int)
        assert isinstance(of, int)
        lines.append(f"{row['who']:<14}{row['frame']:>7}{pps:>12,}{pps / of:>16.2f}")
    return "\n".join(lines)


def main() -> int:
    """Measures, prints a table and writes the result; returns the exit status."""
    parser = argparse.ArgumentParser(description="Packets per second of the switch, next to the copy-forward ceiling.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one trial")
    parser.add_argument("--frames", type=int, nargs="+", default=[64, 512, 1400], help="lengths in bytes, FCS included")
    arguments = parser.parse_args()
    forwarders = ["copy-forward", "embedded"]
    if shutil.which("simple_switch_grpc"):
        forwarders.append("bmv2")
    else:
        print("simple_switch_grpc is not on PATH: bmv2 is left out")
    setLogLevel("error")
    rows = measure(forwarders, arguments.frames, arguments.rounds, arguments.seconds)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"program": f"{names.PROGRAM} {names.VERSION}", "rows": rows}, indent=1) + "\n")
    print(table(rows))
    print(f"written to {RESULTS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
