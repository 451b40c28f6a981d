"""A network namespace without a name: it ends with the last process in it, so nothing can be left behind."""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000
"""unshare(2): a network namespace of one's own (include/uapi/linux/sched.h)."""

OFFLOADS = ("tx", "rx", "tso", "gso", "gro", "sg", "txvlan", "rxvlan")
"""Off on both ends: a frame must be on the wire as the test made it, its checksums and its tag included."""


class NetworkError(Exception):
    """The namespace or its interfaces could not be made; the text says what to do."""


@dataclass(frozen=True)
class Cable:
    """A veth pair: one end is the switch's, the other the test's."""

    port: int
    switch_end: str
    test_end: str


def enter_new_namespace() -> None:
    """Move this process, and its children to come, into a new network namespace. Raises NetworkError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise NetworkError(f"cannot make a network namespace: {os.strerror(code)}; run as root (sudo)")
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():  # a kernel without IPv6 sends no router solicitations either
            setting.write_text("1")
    _run("ip", "link", "set", "lo", "up")


def lay(ports: list[int]) -> list[Cable]:
    """One cable for each port number, up, with offloads off and nothing of the kernel's own on it."""
    cables = [Cable(port, f"sw{port}", f"pt{port}") for port in ports]
    for cable in cables:
        _run("ip", "link", "add", cable.switch_end, "type", "veth", "peer", "name", cable.test_end)
        for end in (cable.switch_end, cable.test_end):
            _run("ip", "link", "set", end, "arp", "off", "mtu", "9000", "up")
            for offload in OFFLOADS:
                _run("ethtool", "-K", end, offload, "off", may_fail=offload.endswith("vlan"))
    return cables


def _run(*command: str, may_fail: bool = False) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except FileNotFoundError:
        package = {"ip": "iproute2"}.get(command[0], command[0])
        raise NetworkError(f"{command[0]} is missing: apt-get install {package}") from None
    if done.returncode and not may_fail:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
