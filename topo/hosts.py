"""Mininet hosts as the lab needs them: no offloads, no IPv6, a TCP that is said and not guessed."""

from __future__ import annotations

from pathlib import Path

from testbed.processes import run_in
from topo.mn import Node

OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro")
"""With these on, a sender leaves checksums and segmentation to a device that the pipeline does not have."""
SYN_RETRIES, SYN_LINEAR_TIMEOUTS = "net.ipv4.tcp_syn_retries", "net.ipv4.tcp_syn_linear_timeouts"


def congestion_control() -> str:
    """Return the TCP congestion control of the lab's hosts: CUBIC, or Reno where the kernel offers no CUBIC.

    A namespace may only choose among what the first namespace allows.
    """
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return "cubic" if "cubic" in allowed else "reno"


def syn_sysctls(pid: int) -> tuple[int, int]:
    """Return tcp_syn_retries and tcp_syn_linear_timeouts in the namespace of process `pid`: each has its own.

    Kernels before 6.5 have no tcp_syn_linear_timeouts, which is as 0.
    """
    text = run_in(pid, ["sysctl", "-e", SYN_RETRIES, SYN_LINEAR_TIMEOUTS])
    found = dict(line.split(" = ") for line in text.splitlines())
    return int(found[SYN_RETRIES]), int(found.get(SYN_LINEAR_TIMEOUTS, 0))


def syn_retransmission(pid: int) -> str:
    """Say when a host retransmits SYNs: that decides what a lost SYN costs.

    Kernels from 6.5 on retransmit the first few at steady intervals (tcp_syn_linear_timeouts), older ones double each.
    """
    _, steady = syn_sysctls(pid)
    return f"SYNs retransmitted after 1 s, {f'{steady} times steadily, then doubling' if steady else 'doubling'}"


def turn_offloads_off(pid: int, interface: str) -> None:
    """Turn off what would put unfinished packets on the wire, in the namespace of process `pid`."""
    switches = [word for offload in OFFLOADS for word in (offload, "off")]
    run_in(pid, ["ethtool", "-K", interface, *switches])


class LabHost(Node):
    """A host with one interface, prepared before its first connection."""

    def config(self, **params: object) -> dict[str, object]:
        """Configure address and route as Mininet does, after offloads and IPv6 are off."""
        settings = {
            "net.ipv6.conf.all.disable_ipv6": "1",
            "net.ipv6.conf.default.disable_ipv6": "1",
            "net.ipv4.tcp_congestion_control": congestion_control(),
        }
        run_in(self.pid, ["sysctl", "-q", "-w", *(f"{name}={value}" for name, value in settings.items())])
        for interface in self.intfs.values():
            turn_offloads_off(self.pid, interface.name)
        return super().config(**params)
