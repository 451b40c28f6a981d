"""The forwarders as Mininet switches. Forwarders with sluice's program are instances of the lab's classes (topo/)."""

from __future__ import annotations

import os
from pathlib import Path

from tools.bench.addresses import (
    CLIENT_MAC,
    CLIENTS,
    CLIENTS_HOP,
    INTERFACES,
    PORT,
    ROUTER_MACS,
    SERVER_MAC,
    VIP,
    extra_routes,
    server_addresses,
)
from tools.bench.load import EXAMPLES
from topo.testbed.mininet import Node, Switch
from topo.testbed.nodes import READY_TIMEOUT_S, SWITCHES, ProcessSwitch, turn_offloads_off
from topo.testbed.processes import Process, run_in


class CopyForward(ProcessSwitch):
    """A loop of batched receive and send calls without a pipeline."""

    program = "copy_forward"

    @classmethod
    def executable(cls) -> str:
        """Return the path of the release build of copy_forward, an example in crates/."""
        return str(EXAMPLES / "copy_forward")

    def command(self, executable: str, ports: dict[int, str]) -> list[str]:
        """Return the command line of copy_forward."""
        return [executable, *(ports[number] for number in sorted(ports))]

    def await_serving(self, process: Process) -> None:
        """Return once the process forwards frames."""
        process.await_output("copy_forward: forwarding", READY_TIMEOUT_S)


class KernelDnat(Switch):
    """The kernel as forwarder. Each server has an iptables rule. The rules are tried in order, and a rule matches with
    probability 1/n, where n is the number of servers from its own to the last."""

    def __init__(self, name: str, *, directory: Path, **params: object) -> None:
        super().__init__(name, **{**params, "inNamespace": True, "dpid": "1"})
        self.directory = directory

    def start(self, controllers: list[Node]) -> None:
        """Configure the network namespace as a router."""
        del controllers
        settings = {
            "net.ipv6.conf.all.disable_ipv6": "1",
            "net.ipv4.ip_forward": "1",
            "net.ipv4.conf.all.rp_filter": "0",
            "net.ipv4.conf.default.rp_filter": "0",
            # Let connection tracking accept the data segments of packet_load, which have arbitrary sequence numbers.
            "net.netfilter.nf_conntrack_tcp_be_liberal": "1",
        }
        for port in (1, 2):
            interface = self.intfs[port].name
            turn_offloads_off(self.pid, interface)
            run_in(self.pid, ["sysctl", "-q", "-w", f"net.ipv4.conf.{interface}.rp_filter=0"])
            run_in(self.pid, ["ip", "link", "set", interface, "address", ROUTER_MACS[port - 1]])
            run_in(self.pid, ["ip", "link", "set", interface, "up"])
            run_in(self.pid, ["ip", "address", "add", INTERFACES[port - 1], "dev", interface])
        # By default the kernel forwards a packet on the core that sent it, and the load generator occupies the first
        # core. So receive packet steering distributes the packets over the other cores.
        spread = (
            f"umount --lazy /sys; mount -t sysfs sysfs /sys && echo {rps_mask(os.cpu_count() or 1):x} > /sys/class/net/"
        )
        for port in (1, 2):
            queue = f"{self.intfs[port].name}/queues/rx-0/rps_cpus"
            run_in(self.pid, ["unshare", "--mount", "sh", "-c", spread + queue])
        # The settings of net.netfilter exist only after the nat table has been loaded, here without rules.
        self.restore([])
        run_in(self.pid, ["sysctl", "-q", "-w", *(f"{name}={value}" for name, value in settings.items())])
        hop = ["ip", "neighbour", "replace", CLIENTS_HOP, "lladdr", CLIENT_MAC, "dev", self.intfs[1].name]
        run_in(self.pid, hop)
        run_in(self.pid, ["ip", "route", "add", CLIENTS, "via", CLIENTS_HOP])

    def restore(self, servers: list[str]) -> None:
        """Replace the iptables rules with rules that distribute connections over the servers."""
        lines = ["*nat"]
        for place, server in enumerate(servers):
            share = 1 / (len(servers) - place)
            lines.append(
                f"-A PREROUTING -d {VIP} -p tcp --dport {PORT} -m statistic --mode random"
                f" --probability {share:.10f} -j DNAT --to-destination {server}:{PORT}"
            )
        path = self.directory / "rules"
        path.write_text("\n".join([*lines, "COMMIT", ""]))
        run_in(self.pid, ["iptables-restore", str(path)])

    def program(self, servers: int, entries: int) -> None:
        """Distribute connections over the first `servers` servers, and add `entries` routes."""
        into = self.intfs[2].name
        addresses = server_addresses(servers)
        commands = [f"neighbour replace {address} lladdr {SERVER_MAC} dev {into}" for address in addresses]
        commands += [f"route replace {prefix} via {addresses[0]}" for prefix in extra_routes(entries)]
        path = self.directory / "commands"
        path.write_text("\n".join([*commands, ""]))
        run_in(self.pid, ["ip", "-batch", str(path)], timeout_s=120)
        self.restore(addresses)

    def stop_process(self) -> None:
        """Do nothing: the kernel forwards, and there is no process to stop."""


def rps_mask(cpus: int) -> int:
    """Return the bit mask of the cores for receive packet steering: all except the first; 0 (off) with only one
    core."""
    return (1 << cpus) - 2 if cpus > 1 else 0


def kind_of(who: str) -> type[ProcessSwitch] | type[KernelDnat]:
    """Return the switch class of a forwarder."""
    if who == "copy-forward":
        return CopyForward
    if who == "kernel-dnat":
        return KernelDnat
    return SWITCHES[who]
