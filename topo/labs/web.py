"""The web lab: network, switch, controller and Apache servers, built in order and taken down in reverse."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from topo.labs.webservers import (
    BACKLOG,
    COMPRESSING,
    LONG,
    PAGE,
    STRESS,
    WORKERS,
    apache_command,
    apache_configuration,
    request_locally,
    write_files,
)
from topo.measure.capture import Capture
from topo.measure.counts import Observation, PacketCounts, packet_counts, quiet_counts, read_status
from topo.measure.downloads import RECEIVE_BUFFER_BYTES, Downloads
from topo.measure.handshakes import Handshakes
from topo.measure.httperf import Httperf
from topo.plan.load import Load
from topo.plan.network import (
    DOWNLOAD_CLIENT,
    LOAD_CLIENT,
    PLAIN_HOST,
    THREE,
    VIP,
    WEB_PORT,
    Balance,
    HostPlan,
    PoolPlan,
    controller_config,
)
from topo.testbed import cgroups
from topo.testbed.controller import TRACE
from topo.testbed.errors import SetupError
from topo.testbed.mininet import Mininet
from topo.testbed.namespaces import interface_packets
from topo.testbed.network import SWITCH, MininetNetwork
from topo.testbed.processes import POLL_S, Process, await_true

SERVED_TIMEOUT_S = DOWNLOADING_TIMEOUT_S = 30.0
MEETING_TIMEOUT_S = 10
DYING_S = 1.0


class Lab(MininetNetwork):
    """The lab: the switch, and around it the pool's servers, two clients (for the load and for long downloads), and a
    host that is neither client nor server."""

    target = VIP
    """The IP address to which the load client sends its requests."""
    load_interface = f"{LOAD_CLIENT.name}-eth0"
    """The load client's interface towards the switch."""
    apache_directives = "KeepAlive Off"
    """Further directives in Apache's configuration; ``{name}`` stands for the server's name."""

    def __init__(
        self,
        kind: str,
        balance: Balance,
        *,
        say: Callable[[str], None] = print,
        pool: PoolPlan = THREE,
        backlog: int = BACKLOG,
    ) -> None:
        super().__init__(kind)
        self.pool = pool
        self.backlog = backlog
        self.balance = balance
        self._say = say
        self._stressed: dict[str, Process] = {}
        self._apaches: dict[str, Process] = {}
        self._groups: dict[str, cgroups.Group] = {}
        self._loads = 0

    @property
    def files(self) -> Path:
        """The directory of the files that the servers serve."""
        return self.directory / "files"

    def break_server(self, name: str) -> None:
        """Load a server with `stress`; do nothing if it is loaded already."""
        if name not in self._stressed:
            procs, cores = self._groups[name].procs, self._cores.servers
            self._stressed[name] = self.start(f"stress on {name}", STRESS, name, procs=procs, cores=cores)

    def mend_server(self, name: str) -> None:
        """End the `stress` of a server."""
        process = self._stressed.pop(name, None)
        if process is not None:
            process.stop()

    def kill_server(self, name: str) -> None:
        """End a server's Apache: from then on its kernel refuses connections."""
        process = self._apaches.pop(name)
        self._servers.remove(process)
        process.stop()

    def server_pid(self, name: str) -> int:
        """The process id of a server's Apache, whose children are its workers."""
        return self._apaches[name].pid

    def capture(self, handshakes: Handshakes) -> Capture:
        """Capture the handshakes of the load client's connections until the lab ends, or the capture is stopped."""
        client = self.pid(LOAD_CLIENT.name)
        capture = Capture(client, self.load_interface, self.target, WEB_PORT, handshakes.add)
        self.at_end(capture.close)
        return capture

    def start_load(self, load: Load, *paths: str) -> Httperf:
        """Start httperf on the load client; the lab ends httperf if the caller does not. httperf requests several paths
        in turn, repeatedly."""
        self._loads += 1
        httperf = Httperf(
            load,
            address=str(self.target),
            port=WEB_PORT,
            paths=paths,
            namespace_pid=self.pid(LOAD_CLIENT.name),
            directory=self.directory,
            name=str(self._loads),
        )
        self.at_end(httperf.stop)
        return httperf

    def start_downloads(
        self, readers: int, rate_bytes_per_s: float, receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES
    ) -> Downloads:
        """Start ``readers`` slow downloads of the long file at the second client, and return as soon as all downloads
        have begun. They end with the lab at the latest."""
        downloads = Downloads(
            namespace_pid=self.pid(DOWNLOAD_CLIENT.name),
            address=str(VIP),
            port=WEB_PORT,
            path=LONG,
            original=(self.files / LONG).read_bytes(),
            readers=readers,
            rate_bytes_per_s=rate_bytes_per_s,
            receive_buffer_bytes=receive_buffer_bytes,
        )
        self.at_end(downloads.abort)
        await_true("all long downloads run", lambda: len(downloads.established()) == readers, DOWNLOADING_TIMEOUT_S)
        return downloads

    def observe(self) -> Observation:
        """Return an observation from the controller's status. If a program of the lab has ended, raise SetupError with
        the program's name."""
        try:
            return read_status(self.controller.ask(command="status"), time.time())
        except SetupError:
            # A dying process closes its connections shortly before its end is visible, so wait for the end.
            deadline = time.monotonic() + DYING_S
            while time.monotonic() < deadline:
                self.require_running()
                time.sleep(POLL_S)
            raise

    def await_served(self) -> None:
        """Send a last request to each server, and return once all are answered: the servers' accept queues are then
        empty."""
        for server in (host for host in self.pool.servers if host.name in self._apaches):
            request_locally(self.pid(server.name), str(server.address), SERVED_TIMEOUT_S, self.files / PAGE)

    def server_pids(self, name: str) -> list[int]:
        """Return the process ids of a server, including those of its `stress`."""
        return self._groups[name].pids()

    def request_cost_s(self, name: str, path: str, times: int) -> float:
        """Return the mean CPU time, in seconds, of a request to an idle server, over `times` requests."""
        address = next(str(server.address) for server in self.pool.servers if server.name == name)
        before = self._groups[name].used_s()
        for _ in range(times):
            request_locally(self.pid(name), address, SERVED_TIMEOUT_S, self.files / path)
        return (self._groups[name].used_s() - before) / times

    def used_s(self) -> float:
        """Return the CPU time, in seconds, that all servers have used, including their `stress`."""
        return sum(group.used_s() for group in self._groups.values())

    def quiet_packet_counts(self) -> PacketCounts:
        """Return the switch's packet counters as soon as no packet is in transit (two readings are equal)."""
        return quiet_counts(self._packet_counts)

    def _packet_counts(self) -> PacketCounts:
        verdicts = self.observe()
        ports = {interface.name for interface in self.switch.intfs.values()}
        interfaces = {name: counts for name, counts in interface_packets(self.pid(SWITCH)).items() if name in ports}
        return packet_counts(interfaces, asdict(verdicts))

    def build(self) -> None:
        """Start network, servers and controller; on return the switch has the hosts' MAC addresses."""
        parted = self.switch_class().parted_from_servers
        self._cores = self.stack.enter_context(cgroups.parted() if parted else cgroups.together())
        write_files(self.files, self.switch_class().size_share)
        self._build_network(self.pool.hosts, self._before_start)
        self._say(f"network up: {len(self.pool.hosts)} hosts around {self.switch.program}")
        self._start_servers()
        self._start_balancer()
        self._meet_everyone()

    def _before_start(self, net: Mininet) -> None:
        """Hook for subclasses that add parts to the lab, after hosts and switch are created and before any server
        starts."""

    def _start_servers(self) -> None:
        cpus = [share * self.switch.server_share for share in self.pool.cpus]
        for server, share in zip(self.pool.servers, cpus, strict=True):
            self._groups[server.name] = group = cgroups.Group(self._hierarchies, server.name, share)
            self._apaches[server.name] = self._start_apache(server, group.procs)
            self._servers.append(self._apaches[server.name])
        self._say(
            f"Apache on {', '.join(self.pool.names)}: {WORKERS} workers, "
            f"listen backlog {self.backlog}, {_parts(cpus)} of a CPU each{_alone(self._cores)}"
        )

    def _start_apache(self, server: HostPlan, procs: Sequence[Path]) -> Process:
        directory, directives = self.directory / server.name, self.apache_directives.format(name=server.name)
        directory.mkdir()
        address, configuration = str(server.address), directory / "apache.conf"
        configuration.write_text(
            apache_configuration(
                directory, server.name, address, self.files, COMPRESSING, directives, backlog=self.backlog
            )
        )
        command, cores = apache_command(configuration), self._cores.servers
        process = self.start(f"apache of {server.name}", command, server.name, procs=procs, cores=cores)
        return self.await_listening(process, server.name, WEB_PORT)

    def _start_balancer(self) -> None:
        self.start_controller({**self.configuration(), "trace_file": str(self.directory / TRACE)})
        self._say("controller ready")

    def configuration(self) -> dict[str, object]:
        """Return the controller's configuration; the caller adds the paths of the controller's files."""
        return controller_config(self.balance, thrift=self.switch.thrift, pool=self.pool)

    def _meet_everyone(self) -> None:
        """Send an echo request to each host; return once all have answered and the switch therefore has the hosts' MAC
        addresses."""
        for host in self._hosts_to_meet():
            echo = ("ping", "-q", "-c", "1", "-i", "0.2", "-w", str(MEETING_TIMEOUT_S), str(host.address))
            self.call(PLAIN_HOST.name, *echo)

    def _hosts_to_meet(self) -> list[HostPlan]:
        """Return the hosts to which echo requests are sent: all except the sender."""
        return [host for host in self.pool.hosts if host is not PLAIN_HOST]


def _parts(cpus: Sequence[float]) -> str:
    return " or ".join(f"{cpu:g}" for cpu in sorted(set(cpus)))


def _alone(parts: cgroups.Cores) -> str:
    if parts.servers & parts.others:
        return ""
    return f", on processor {', '.join(map(str, parts.servers))}, which all else of the lab keeps off"
