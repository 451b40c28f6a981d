"""The lab as one thing: network, switch, controller and servers, built in order and taken down in reverse."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from sluice.names import PuntReason

from topo import cgroups
from topo.apache import ApacheLimits, request_locally, start_apache, write_files
from topo.conservation import PacketCounts
from topo.controller import Controller
from topo.errors import LabError
from topo.ground import SWITCH_NAME, Ground
from topo.httperf import Httperf, Load
from topo.netns import interface_packets
from topo.observation import Observation
from topo.plan import (
    HOSTS,
    LOAD_CLIENT,
    PLAIN_HOST,
    SERVERS,
    VIP,
    WEB_PORT,
    Balance,
)
from topo.processes import POLL_S, Process, await_true, run_in
from topo.stress import start_stress

SERVER_CPUS = 0.1
"""CPUs of each server.  A healthy one needs 0.3 ms per page; sharing with `stress` it answers some 20 pages/s."""

SERVED_TIMEOUT_S = 30.0
QUIET_TIMEOUT_S = 10.0
MEETING_TIMEOUT_S = 10
DYING_S = 1.0


class Lab(Ground):
    """A context manager; everything it started is gone when it ends, however it ends."""

    def __init__(
        self,
        kind: str,
        balance: Balance,
        *,
        say: Callable[[str], None] = print,
        limits: ApacheLimits | None = None,
    ) -> None:
        super().__init__(kind)
        self.balance = balance
        self._say = say
        self._limits = limits or ApacheLimits()
        self._stressed: dict[str, Process] = {}
        self._apaches: dict[str, Process] = {}
        self._groups: dict[str, cgroups.CpuGroup] = {}
        self._loads = 0

    @property
    def files(self) -> Path:
        """Where the files are that the servers serve."""
        return self.directory / "files"

    def break_server(self, name: str) -> None:
        """Load a server with `stress`; does nothing if it is loaded already."""
        if name not in self._stressed:
            self._stressed[name] = process = start_stress(
                name,
                namespace_pid=self.pid(name),
                cgroup_procs=self._groups[name].procs,
                directory=self.directory,
            )
            self._stack.callback(process.stop)

    def mend_server(self, name: str) -> None:
        """Take the load off a server again."""
        process = self._stressed.pop(name, None)
        if process is not None:
            process.stop()

    def kill_server(self, name: str) -> None:
        """End a server's Apache: from then on its kernel refuses connections."""
        process = self._apaches.pop(name)
        self._servers.remove(process)
        process.stop()

    def start_load(self, load: Load, path: str) -> Httperf:
        """Start httperf on the load client; the lab ends it if the caller does not."""
        self._loads += 1
        httperf = Httperf(
            load,
            address=str(VIP),
            port=WEB_PORT,
            path=path,
            namespace_pid=self.pid(LOAD_CLIENT.name),
            directory=self.directory,
            name=str(self._loads),
        )
        self._stack.callback(httperf.stop)
        return httperf

    def observe(self) -> Observation:
        """Return what the controller sees; raise LabError naming what has ended if that is why it sees nothing."""
        try:
            return self.controller.observe()
        except LabError:
            # A process that dies closes its connections a moment before it has ended.
            deadline = time.monotonic() + DYING_S
            while time.monotonic() < deadline:
                self.require_running()
                time.sleep(POLL_S)
            raise

    def require_running(self) -> None:
        """Raise LabError if the switch, the controller or a server has ended."""
        for process in (self.switch.process, self.controller.process, *self._servers):
            if process is not None:
                process.require_running()

    def await_served(self) -> None:
        """Return once every server has served its accept queue, which is first come, first served."""
        for server in SERVERS:
            if server.name not in self._apaches:
                continue
            request_locally(self.pid(server.name), str(server.address), SERVED_TIMEOUT_S)

    def quiet_packet_counts(self) -> PacketCounts:
        """Return what the switch has counted, once nothing is on its way (two readings are equal)."""
        readings = [self._packet_counts(), self._packet_counts()]

        def quiet() -> bool:
            readings.append(self._packet_counts())
            return readings[-1] == readings[-2]

        await_true("no packets at the switch", quiet, QUIET_TIMEOUT_S)
        return readings[-1]

    def _packet_counts(self) -> PacketCounts:
        verdicts = self.observe()
        interfaces = [packets for name, packets in interface_packets(self.pid(SWITCH_NAME)).items() if name != "lo"]
        return PacketCounts(
            received=sum(received for received, _, _ in interfaces),
            sent=sum(sent for _, sent, _ in interfaces),
            forwarded=verdicts.forwarded,
            dropped=sum(verdicts.drops.values()),
            punted=verdicts.punts.get(PuntReason.ARP.name.lower(), 0),
        )

    def at_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when the lab ends, before what was started earlier is stopped."""
        self._stack.callback(callback)

    def build(self) -> None:
        """Network, servers, controller; the hosts know each other at the end."""
        self._prepare()
        self.directory.chmod(0o755)  # Apache's workers are not root
        write_files(self.files)
        self._build_network(HOSTS)
        self._say(f"network up: {len(HOSTS)} hosts around {self.switch.program}")
        self._start_servers()
        self._start_balancer()
        self._meet_everyone()

    def _start_servers(self) -> None:
        cpus = SERVER_CPUS * self.switch.load_share
        for server in SERVERS:
            self._groups[server.name] = group = cgroups.CpuGroup(self._hierarchy, server.name, cpus)
            process = start_apache(
                server.name,
                str(server.address),
                namespace_pid=self.pid(server.name),
                cgroup_procs=group.procs,
                directory=self.directory / server.name,
                files=self.files,
                limits=self._limits,
            )
            self._apaches[server.name] = process
            self._servers.append(process)
            self._stack.callback(process.stop)
        self._say(
            f"Apache on {', '.join(server.name for server in SERVERS)}: {self._limits.workers} workers, "
            f"listen backlog {self._limits.backlog}, {cpus:.0%} of a CPU each"
        )

    def _start_balancer(self) -> None:
        self.controller = Controller(
            self.balance,
            namespace_pid=self.pid(SWITCH_NAME),
            directory=self.directory,
            thrift=self.switch.thrift,
        )
        self._stack.callback(self.controller.stop)
        self.controller.start()
        self._say("controller ready")

    def _meet_everyone(self) -> None:
        """Return once the switch knows every host's MAC address: an echo has come back from each."""
        for host in HOSTS:
            if host is not PLAIN_HOST:
                echo = ["ping", "-q", "-c", "1", "-i", "0.2", "-w", str(MEETING_TIMEOUT_S), str(host.address)]
                run_in(self.pid(PLAIN_HOST.name), echo)
