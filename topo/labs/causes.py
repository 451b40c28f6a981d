"""The lab of labelled runs (`topo.plan.causes`): four web servers, and what goes wrong really made.

```
 10.101.0.0/16 .. 10.104.0.0/16 --- 10.0.1.2 client --- 1 sluice 2 --- 10.0.11.2 s1     web = 10.0.0.100:80
   hold what they send for the time that they are away           ..
 10.120.0.0/16: nobody                      bottleneck           5 --- 10.0.14.2 s4
```
The controller is as configured by default, in every run, but for the second look, as in the simulation: with it a slow
server is asked for no more than it can do, loses no SYN, and is no label.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from topo.labs.crowds.bottleneck import set_bottleneck
from topo.measure.counts import weight_changes
from topo.plan.causes import (
    BACKLOG,
    CROWDED_TURN_S,
    FLOODS,
    HALF_OPEN,
    LINK_BIT_PER_S,
    LOSS,
    QUEUE_BYTES,
    ROUND_TRIP_S,
    SERVERS,
    SERVICE,
    SICK_NAME,
    SLOW_TURN_S,
    SPOOFED_PER_S,
    TURN_S,
    WORKERS,
    Judged,
    Label,
    Said,
    judged,
    rates,
)
from topo.plan.crowd.settings import FRAME_BYTES, Settings
from topo.plan.crowd.trace import read_rows
from topo.plan.requests import write_log
from topo.plan.synthesis import synthesise
from topo.testbed.controller import SluiceRun
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import listening
from topo.testbed.nets import GRPC_PORT, READY_S, SWITCH, Net
from topo.testbed.processes import Process, await_true, run_in

ONSET_S, RAMP_S, END_S = 24.0, 5.0, 84.0
"""Production mode judges after two windows of 4 s. A verdict is looked at for nearly as long as in the simulation:
alarms came up to 28 s after the onset."""
LEAD_S = 1.5
"""The clients need so long to start and to read their logs."""
WEB, PORT = "10.0.0.100", 80
CLIENT = "10.0.1.2"
FAR = "10.96.0.0/11"
POOLS = [f"10.{101 + number}.0.0/16" for number in range(4)]
"""Clients, nearest first."""
NOBODY = "10.120.0.0/16"
NAMES = [f"s{number + 1}" for number in range(SERVERS)]
BACKLOG_LARGE = 4096
NEWS_TRACE, TRACE = "news.csv", "trace.jsonl"
LINK = Settings(k=1.0, link_bit_per_s=LINK_BIT_PER_S, queue_frames=int(QUEUE_BYTES / FRAME_BYTES))


def _mac(kind: int, port: int) -> str:
    return f"02:00:00:00:{kind:02x}:{port:02x}"


def configuration(directory: Path, control: Path) -> Mapping[str, object]:
    """Return the controller's."""
    ports = range(2, 2 + SERVERS)
    return {
        "switch": {"address": f"127.0.0.1:{GRPC_PORT}"},
        "interfaces": [
            {"port": 1, "mac": _mac(0, 1), "address": "10.0.1.1/24"},
            *({"port": port, "mac": _mac(0, port), "address": f"10.0.{9 + port}.1/24"} for port in ports),
        ],
        "routes": [{"to": FAR, "via": CLIENT}],
        "control": str(control),
        "trace_file": str(directory / TRACE),
        "news": {"trace_file": str(directory / NEWS_TRACE)},
        "services": [
            {
                "name": SERVICE,
                "address": WEB,
                "port": PORT,
                "second_look": False,
                "servers": [
                    {"name": name, "address": f"10.0.{11 + number}.2", "port": PORT}
                    for number, name in enumerate(NAMES)
                ],
            }
        ],
    }


class CausesLab(Net):
    """A lab for one run; its servers are those of the label."""

    def __init__(self, label: Label, *, onset_s: float = ONSET_S, end_s: float = END_S) -> None:
        super().__init__("sluice-causes-")
        self.label = label
        self._onset_s, self._end_s = onset_s, end_s

    def build(self) -> None:
        """See Net."""
        self.hosts(("client", SWITCH, *NAMES))
        self.attach("client", 1, _mac(1, 1), CLIENT)
        for number, name in enumerate(NAMES):
            self.attach(name, 2 + number, _mac(1, 2 + number), f"10.0.{11 + number}.2")
        set_bottleneck(self.pid(SWITCH), "port1", LINK)
        self.serve(range(1, 2 + SERVERS))
        near, far = ROUND_TRIP_S
        step = (far - near) / (len(POOLS) - 1)
        self.delay("client", {pool: near + number * step for number, pool in enumerate(POOLS)})
        run_in(self.pid("client"), ["ip", "route", "add", "blackhole", NOBODY])
        self.servers = {name: self._server(number, name) for number, name in enumerate(NAMES)}
        self.controller = SluiceRun(namespace_pid=self.pid(SWITCH), directory=self.directory)
        self.controller.configure(configuration(self.directory, self.controller.control_socket))
        self.stack.callback(self.controller.stop)
        self.controller.start()
        await_true("the neighbours are known", self._know_each_other, READY_S)

    def _know_each_other(self) -> bool:
        return not self.controller.ask(command="status")["neighbours_missing"]

    def _server(self, number: int, name: str) -> Process:
        """Without a turn it answers at once."""
        turn_s, backlog = 0.0, BACKLOG_LARGE
        match self.label:
            case Label.SERVERS:
                turn_s, backlog = CROWDED_TURN_S, BACKLOG
            case Label.SLOW:
                turn_s, backlog = TURN_S, BACKLOG
            case Label.UNANSWERED:
                backlog = HALF_OPEN
            case _:
                pass
        cookies = "0" if self.label is Label.UNANSWERED else "1"
        queue = [f"net.ipv4.tcp_syncookies={cookies}", f"net.ipv4.tcp_max_syn_backlog={backlog}"]
        run_in(self.pid(name), ["sysctl", "-qw", f"net.core.somaxconn={BACKLOG_LARGE}", *queue])
        place = ["--address", f"10.0.{11 + number}.2", "--port", str(PORT), "--backlog", str(backlog)]
        turns = ["--workers", str(WORKERS), "--turn-us", f"{1e6 * turn_s:g}", "--slow-us", f"{1e6 * SLOW_TURN_S:g}"]
        process = self.start(
            name, [sys.executable, "-m", "topo.load.server", *place, *(turns if turn_s else [])], inside=name
        )
        process.await_true("listens", lambda: listening(self.pid(name), PORT), READY_S)
        return process

    # -- a run

    def run(self, seed: int) -> Judged:
        """Quiet time, what goes wrong, and what was said of it. Raises SetupError if anything ends that was not to."""
        start = time.time() + LEAD_S
        self._start_clients(start, seed)
        self._until(start + self._onset_s)
        self._go_wrong(start + self._end_s, seed)
        self._until(start + self._end_s)
        rows = read_rows(self.directory / NEWS_TRACE)
        said = [Said(one.time_s, one.cause, one.servers, limited=one.limit_per_s == one.limit_per_s) for one in rows]
        moves = weight_changes((self.directory / TRACE).read_text().splitlines())
        try:
            return judged(said, moves, start + self._onset_s)
        except ValueError as nothing:
            raise SetupError(f"{nothing}: see its log in a longer run, or on a machine that does less") from nothing

    def _until(self, moment: float) -> None:
        while (now := time.time()) < moment:
            for process in (self.controller.process, *self.servers.values()):
                assert process is not None
                process.require_running()
            time.sleep(min(1.0, moment - now))

    def _start_clients(self, start: float, seed: int) -> None:
        crowd = rates(self.label, onset_s=self._onset_s, ramp_s=RAMP_S, end_s=self._end_s)
        requests = list(synthesise(crowd, SERVICE, seed=seed))
        for number, pool in enumerate(POOLS):
            log = self.directory / f"requests-{number}.csv"
            own = [one for one in requests if one.client % len(POOLS) == number]
            write_log(log, (replace(one, client=one.client // len(POOLS)) for one in own))
            when = [f"--start={start}", f"--seconds={self._end_s}", f"--seed={seed}"]
            output = f"--output={self.directory / f'outcomes-{number}.csv'}"
            replay = [sys.executable, "-m", "topo.load.replay", str(log), f"--pool={pool}", *when, output]
            self.start(f"replay-{number}", [*replay, f"--server={SERVICE}={WEB}:{PORT}"], "client")

    def _go_wrong(self, end: float, seed: int) -> None:
        """A crowd is in its requests already."""
        if self.label in FLOODS:
            flood = [sys.executable, "-m", "topo.load.flood", "--to", f"{WEB}:{PORT}", "--sources", NOBODY]
            how = ["--per-s", str(SPOOFED_PER_S), "--seconds", str(end - time.time()), "--seed", str(seed)]
            self.start("flood", [*flood, *how], "client")
        elif self.label is Label.SLOW:
            os.kill(self.servers[SICK_NAME].pid, signal.SIGUSR1)
        elif self.label is Label.LOSSY:
            chance = ["-m", "statistic", "--mode", "random", "--probability", str(LOSS)]
            run_in(self.pid("client"), ["iptables", "-A", "INPUT", "-i", "eth0", *chance, "-j", "DROP"])
        if self.label in (Label.KILLED, Label.BOTH):
            self._silence(SICK_NAME)

    def _silence(self, server: str) -> None:
        """Nothing leaves it any more, not even the end of its connections; then it ends."""
        for chain in ("INPUT", "OUTPUT"):
            run_in(self.pid(server), ["iptables", "-A", chain, "-j", "DROP"])
        self.servers.pop(server).stop()
