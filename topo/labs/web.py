"""The lab as one thing: network, switch, controller and servers, built in order and taken down in reverse."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from topo.labs.apache import BACKLOG, PAGE, WORKERS, request_locally, start_apache, write_files
from topo.labs.stress import start_stress
from topo.measure.capture import Capture
from topo.measure.counts import Observation, PacketCounts, packet_counts, quiet_counts, read_status, weight_changes
from topo.measure.handshakes import Handshakes
from topo.measure.httperf import Httperf
from topo.plan.content import content_config
from topo.plan.load import Load
from topo.plan.network import (
    LOAD_CLIENT,
    PLAIN_HOST,
    SERVICE,
    THREE,
    VIP,
    WEB_PORT,
    Balance,
    HostPlan,
    PoolPlan,
    controller_config,
)
from topo.testbed import cgroups
from topo.testbed.controller import SluiceRun
from topo.testbed.errors import SetupError
from topo.testbed.mininet import Mininet
from topo.testbed.namespaces import interface_packets
from topo.testbed.network import SWITCH_NAME, Ground
from topo.testbed.processes import POLL_S, Process, run_in

SERVED_TIMEOUT_S = 30.0
MEETING_TIMEOUT_S = 10
DYING_S = 1.0


class Controller(SluiceRun):
    """The controller of the demo's network, or, with agents' control addresses, of a lab of content switching, whose
    configuration `content` makes."""

    def __init__(
        self,
        balance: Balance,
        *,
        namespace_pid: int,
        directory: Path,
        thrift: bool,
        pool: PoolPlan = THREE,
        agents: Mapping[str, str] | None = None,
        content: Callable[..., Mapping[str, object]] = content_config,
    ) -> None:
        super().__init__(namespace_pid=namespace_pid, directory=directory)
        self.trace = directory / "trace.jsonl"
        files = {"control_socket": str(self.control_socket), "trace_file": str(self.trace)}
        if agents is None:
            self.configure(controller_config(balance, **files, thrift=thrift, pool=pool))
        else:
            self.configure(content(balance, **files, thrift=thrift, controls=agents))

    def observe(self) -> Observation:
        """Return what the controller sees now."""
        return read_status(self.ask(command="status"), time.time())

    def set_mode(self, mode: str) -> None:
        """Have another algorithm decide the ratios from now on."""
        self.ask(command="mode", service=SERVICE, mode=mode)

    def drain(self, server: str, *, drain: bool) -> None:
        """Give a server no new connections, or its share again."""
        self.ask(command="drain" if drain else "undrain", server=server)

    def weight_changes(self) -> Sequence[float]:
        """Return when the weights were changed (seconds, time.time()), from the controller's trace."""
        return weight_changes(self.trace.read_text().splitlines())


class Lab(Ground):
    """A context manager; everything it started is gone when it ends, however it ends."""

    target = VIP
    """Where the load goes."""
    load_interface = f"{LOAD_CLIENT.name}-eth0"
    """By which it goes there."""
    apache_directives = "KeepAlive Off"
    """What Apache is told besides."""
    content: Callable[..., Mapping[str, object]] = staticmethod(content_config)
    """Makes the controller's configuration where there are agents."""

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
        """Where the files are that the servers serve."""
        return self.directory / "files"

    def break_server(self, name: str) -> None:
        """Load a server with `stress`; does nothing if it is loaded already."""
        if name not in self._stressed:
            self._stressed[name] = process = start_stress(
                name,
                namespace_pid=self.pid(name),
                cgroup_procs=self._groups[name].procs,
                cores=self._cores.servers,
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

    def server_pid(self, name: str) -> int:
        """The process id of a server's Apache, whose children are its workers."""
        return self._apaches[name].pid

    def capture(self, handshakes: Handshakes) -> Capture:
        """Capture the handshakes of the load client's connections until the lab ends, or the capture is stopped."""
        capture = Capture(
            namespace_pid=self.pid(LOAD_CLIENT.name),
            interface=self.load_interface,
            service=self.target,
            port=WEB_PORT,
            deliver=handshakes.add,
        )
        self.at_end(capture.close)
        return capture

    def start_load(self, load: Load, *paths: str) -> Httperf:
        """Start httperf on the load client; the lab ends it if the caller does not.  Several paths are asked for in
        turn, over and over."""
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
        self._stack.callback(httperf.stop)
        return httperf

    def observe(self) -> Observation:
        """Return what the controller sees; raise SetupError naming what has ended if that is why it sees nothing."""
        try:
            return self.controller.observe()
        except SetupError:
            # A process that dies closes its connections a moment before it has ended.
            deadline = time.monotonic() + DYING_S
            while time.monotonic() < deadline:
                self.require_running()
                time.sleep(POLL_S)
            raise

    def require_running(self) -> None:
        """Raise SetupError if the switch, the controller or a server has ended."""
        for process in (self.switch.process, self.controller.process, *self._servers):
            if process is not None:
                process.require_running()

    def await_served(self) -> None:
        """Return once every server has served its accept queue, which is first come, first served."""
        for server in self.pool.servers:
            if server.name not in self._apaches:
                continue
            request_locally(self.pid(server.name), str(server.address), SERVED_TIMEOUT_S, self.files / PAGE)

    def server_pids(self, name: str) -> list[int]:
        """Return the processes of a server, what loads it included."""
        return self._groups[name].pids()

    def request_cost_s(self, name: str, path: str, times: int) -> float:
        """Return the seconds of CPU that a server takes for a request without any other load: a mean of `times`."""
        address = next(str(server.address) for server in self.pool.servers if server.name == name)
        before = self._groups[name].used_s()
        for _ in range(times):
            request_locally(self.pid(name), address, SERVED_TIMEOUT_S, self.files / path)
        return (self._groups[name].used_s() - before) / times

    def used_s(self) -> float:
        """Return the seconds of CPU that the servers have taken, all together and what loads them included."""
        return sum(group.used_s() for group in self._groups.values())

    def quiet_packet_counts(self) -> PacketCounts:
        """Return what the switch has counted, once nothing is on its way (two readings are equal)."""
        return quiet_counts(self._packet_counts)

    def _packet_counts(self) -> PacketCounts:
        verdicts = self.observe()
        ports = {interface.name for interface in self.switch.intfs.values()}
        interfaces = {
            name: counts for name, counts in interface_packets(self.pid(SWITCH_NAME)).items() if name in ports
        }
        return packet_counts(interfaces, asdict(verdicts))

    def build(self) -> None:
        """Network, servers, controller; the hosts know each other at the end."""
        self._prepare()
        parted = self.switch_class().parted_from_servers
        self._cores = self._stack.enter_context(cgroups.parted() if parted else cgroups.together())
        self.directory.chmod(0o755)  # Apache's workers are not root
        write_files(self.files, self.switch_class().size_share)
        self._build_network(self.pool.hosts, self._before_start)
        self._say(f"network up: {len(self.pool.hosts)} hosts around {self.switch.program}")
        self._start_servers()
        self._start_balancer()
        self._meet_everyone()

    def _before_start(self, net: Mininet) -> None:
        """For labs that have something to add: the hosts and the switch are there, and nothing runs yet."""

    def _start_servers(self) -> None:
        cpus = [share * self.switch.server_share for share in self.pool.cpus]
        for server, share in zip(self.pool.servers, cpus, strict=True):
            self._groups[server.name] = group = cgroups.Group(self._hierarchies, server.name, share)
            process = start_apache(
                server.name,
                str(server.address),
                namespace_pid=self.pid(server.name),
                cgroup_procs=group.procs,
                cores=self._cores.servers,
                backlog=self.backlog,
                directory=self.directory / server.name,
                files=self.files,
                more=self.apache_directives,
            )
            self._apaches[server.name] = process
            self._servers.append(process)
            self._stack.callback(process.stop)
        self._say(
            f"Apache on {', '.join(self.pool.names)}: {WORKERS} workers, "
            f"listen backlog {self.backlog}, {_parts(cpus)} of a CPU each{_alone(self._cores)}"
        )

    def _start_balancer(self) -> None:
        self.controller = Controller(
            self.balance,
            namespace_pid=self.pid(SWITCH_NAME),
            directory=self.directory,
            thrift=self.switch.thrift,
            pool=self.pool,
            agents=self._agents(),
            content=self.content,
        )
        self._stack.callback(self.controller.stop)
        self._before_controller()
        self.controller.start()
        self._say("controller ready")

    def _before_controller(self) -> None:
        """For labs that configure the controller otherwise: it is there, and does not run yet."""

    def _meet_everyone(self) -> None:
        """Return once the switch knows every host's MAC address: an echo has come back from each."""
        for host in self._hosts_to_meet():
            echo = ["ping", "-q", "-c", "1", "-i", "0.2", "-w", str(MEETING_TIMEOUT_S), str(host.address)]
            run_in(self.pid(PLAIN_HOST.name), echo)

    def _agents(self) -> Mapping[str, str] | None:
        """Start agents, if the lab has any, and return where each listens for the controller."""
        return None

    def _hosts_to_meet(self) -> list[HostPlan]:
        """Return who answers an echo."""
        return [host for host in self.pool.hosts if host is not PLAIN_HOST]


def _parts(cpus: Sequence[float]) -> str:
    return " or ".join(f"{one:g}" for one in sorted(set(cpus)))


def _alone(parts: cgroups.Cores) -> str:
    if parts.servers & parts.others:
        return ""
    return f", on processor {', '.join(map(str, parts.servers))}, which all else of the lab keeps off"
