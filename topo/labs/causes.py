"""The lab of labelled runs (`topo.plan.causes`): four web servers, and failures made on the real network.

```
 10.101.0.0/16 .. 10.104.0.0/16 --- 10.0.1.1 client --- 1 sluice 2 --- 10.0.11.1 s1     web = 10.0.0.100:80
   delays the packets it sends by their network's distance       ..
 10.120.0.0/16: no hosts                    bottleneck           5 --- 10.0.14.1 s4
```
In every run the controller has its default configuration, except that the switch does not draw a second server for a
SYN to compare both servers' open connections; nor does the simulation. With that comparison a slow server would receive
only as many connections as it can serve. It would lose no SYN, so the run would show no failure.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from topo.labs.crowds.links import set_bottleneck
from topo.load.client import ReplayClients
from topo.load.flood import Flood
from topo.load.server import SizedServer
from topo.plan import causes
from topo.plan.causes import Decision, Judged, Label, judged, rates
from topo.plan.crowd.readings import read_rows
from topo.plan.crowd.scenarios import FRAME_BYTES, Settings
from topo.plan.network import CLIENT, FAR, VIP, WEB_PORT, HostPlan, servers_behind, service, switch_config
from topo.plan.requests import write_log
from topo.plan.synthesis import synthesise
from topo.testbed.controller import TRACE
from topo.testbed.errors import SetupError
from topo.testbed.network import SWITCH, NamespaceNetwork
from topo.testbed.processes import Process

ONSET_S, RAMP_S, END_S = 24.0, 5.0, 84.0
"""Time of the failure's onset, duration of the crowd's rise, and end of the run, in seconds. Before the
onset, production mode needs two windows of 4 s for its first decision. After the onset, alarms came up to 28 s later,
so the run lasts nearly as long as in the simulation."""
LEAD_S = 1.5
"""Seconds that the clients need to start and to read their request logs."""
WEB = f"{VIP}:{WEB_PORT}"
POOLS = [f"10.{101 + number}.0.0/16" for number in range(4)]
"""Networks of the clients, nearest first."""
NO_HOSTS = "10.120.0.0/16"
SERVERS = servers_behind(causes.SERVERS)
BACKLOG_LARGE = 4096
NEWS_TRACE = "news.csv"
LINK = Settings(k=1.0, link_bit_per_s=causes.LINK_BIT_PER_S, queue_frames=int(causes.QUEUE_BYTES / FRAME_BYTES))


class CausesLab(NamespaceNetwork):
    """The lab for one labelled run; the label selects the failure, and the servers' answer times and backlogs."""

    def __init__(self, label: Label, *, onset_s: float = ONSET_S, end_s: float = END_S) -> None:
        super().__init__()
        self.label = label
        self._onset_s, self._end_s = onset_s, end_s

    def build(self) -> None:
        """Build the network with its bottleneck and distances, the servers and the controller."""
        hosts = (CLIENT, *SERVERS)
        self.hosts((SWITCH, *(host.name for host in hosts)))
        for host in hosts:
            self.attach(host)
        set_bottleneck(self.pid(SWITCH), f"port{CLIENT.port}", LINK)
        self.serve(host.port for host in hosts)
        near, far = causes.ROUND_TRIP_S
        step = (far - near) / (len(POOLS) - 1)
        self.delay(CLIENT.name, {pool: near + number * step for number, pool in enumerate(POOLS)})
        self.call(CLIENT.name, "ip", "route", "add", "blackhole", NO_HOSTS)
        self.servers = {server.name: self._start_server(server) for server in SERVERS}
        self._servers += self.servers.values()
        web = service(causes.SERVICE, VIP, SERVERS, second_look=False)
        more = {
            "routes": [{"to": FAR, "via": str(CLIENT.address)}],
            "trace_file": str(self.directory / TRACE),
            "news": {"trace_file": str(self.directory / NEWS_TRACE)},
        }
        self.start_controller({**switch_config(hosts, [web]), **more})
        self.await_neighbours()

    def _start_server(self, server: HostPlan) -> Process:
        """Start a server; a server whose turns (blocks of an answer) cost no time answers at once."""
        turn_s, backlog = {
            Label.SERVERS: (causes.CROWDED_TURN_S, causes.BACKLOG),
            Label.SLOW: (causes.TURN_S, causes.BACKLOG),
            Label.UNANSWERED: (0.0, causes.HALF_OPEN),
        }.get(self.label, (0.0, BACKLOG_LARGE))
        cookies = "0" if self.label is Label.UNANSWERED else "1"
        queue = (f"net.ipv4.tcp_syncookies={cookies}", f"net.ipv4.tcp_max_syn_backlog={backlog}")
        self.call(server.name, "sysctl", "-qw", f"net.core.somaxconn={BACKLOG_LARGE}", *queue)
        program = SizedServer(str(server.address), WEB_PORT, backlog=backlog)
        if turn_s:
            slow_us = 1e6 * causes.SLOW_TURN_S
            program = replace(program, workers=causes.WORKERS, turn_us=1e6 * turn_s, slow_us=slow_us)
        return self.await_listening(self.start_program(program, server.name), server.name, WEB_PORT)

    # -- a run

    def run(self, seed: int) -> Judged:
        """Run the quiet time and then the failure; return a summary of the controller's decisions.

        Raises SetupError if a program ends early, or if there are no decisions to judge.
        """
        start = time.time() + LEAD_S
        self._start_clients(start, seed)
        self._until(start + self._onset_s)
        self._go_wrong(start + self._end_s, seed)
        self._until(start + self._end_s)
        rows = read_rows(self.directory / NEWS_TRACE)
        decisions = [
            Decision(row.time_s, row.cause, row.servers, limited=row.limit_per_s == row.limit_per_s) for row in rows
        ]
        moves = self.controller.weight_changes()
        try:
            return judged(decisions, moves, start + self._onset_s)
        except ValueError as nothing:
            raise SetupError(f"{nothing}: see its log in a longer run, or on a machine that does less") from nothing

    def _until(self, moment: float) -> None:
        while (now := time.time()) < moment:
            self.require_running()
            time.sleep(min(1.0, moment - now))

    def _start_clients(self, start: float, seed: int) -> None:
        crowd = rates(self.label, onset_s=self._onset_s, ramp_s=RAMP_S, end_s=self._end_s)
        requests = list(synthesise(crowd, causes.SERVICE, seed=seed))
        for number, pool in enumerate(POOLS):
            log, output = (str(self.directory / f"{name}-{number}.csv") for name in ("requests", "outcomes"))
            own = [request for request in requests if request.client % len(POOLS) == number]
            write_log(Path(log), (replace(request, client=request.client // len(POOLS)) for request in own))
            servers = {causes.SERVICE: WEB}
            clients = ReplayClients(log, pool, servers, start, self._end_s, output, seed=seed)
            self.start_program(clients, CLIENT.name)

    def _go_wrong(self, end: float, seed: int) -> None:
        """Cause the failure that the label names. A crowd needs no action, because the request log contains it."""
        if self.label in causes.FLOODS:
            flood = Flood(WEB, NO_HOSTS, causes.SPOOFED_PER_S, end - time.time(), seed)
            self.start_program(flood, CLIENT.name)
        elif self.label is Label.SLOW:
            os.kill(self.servers[causes.SICK_NAME].pid, signal.SIGUSR1)
        elif self.label is Label.LOSSY:
            chance = ("-m", "statistic", "--mode", "random", "--probability", str(causes.LOSS))
            self.call(CLIENT.name, "iptables", "-A", "INPUT", "-i", "eth0", *chance, "-j", "DROP")
        if self.label in (Label.KILLED, Label.BOTH):
            self._silence(causes.SICK_NAME)

    def _silence(self, server: str) -> None:
        """Drop all packets to and from the server, so that its connections do not close, and then end the server's
        process."""
        for chain in ("INPUT", "OUTPUT"):
            self.call(server, "iptables", "-A", chain, "-j", "DROP")
        process = self.servers.pop(server)
        self._servers.remove(process)
        process.stop()
