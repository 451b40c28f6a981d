"""The programs and rights that the lab needs, and the remedy if something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from topo.testbed.errors import SetupError

APACHE = "/usr/sbin/apache2"
PACKAGE_OF = {
    APACHE: "apache2-bin",
    "mnexec": "mininet",
    "httperf": "httperf",
    "stress": "stress",
    "ethtool": "ethtool",
    "iptables": "iptables",
    "ip": "iproute2",
    "ping": "iputils-ping",
    "curl": "curl",
    "sysctl": "procps",
    "setpriv": "util-linux",
    "chrt": "util-linux",
    "taskset": "util-linux",
}
"""Debian package that contains each program that the lab needs."""


def require_prerequisites() -> None:
    """Raise SetupError with a one-line message if the lab cannot run on this machine."""
    if os.geteuid() != 0:
        raise SetupError("the lab makes network namespaces and needs root: run it with sudo")
    missing = sorted(
        {package for program, package in PACKAGE_OF.items() if not (Path(program).exists() or shutil.which(program))}
    )
    if missing:
        raise SetupError(f"not installed: {', '.join(missing)}; get them by: apt-get install {' '.join(missing)}")

    # Test whether a namespace can be created, because Mininet would wait without end for a host without namespace.
    trial = subprocess.run(["mnexec", "-n", "true"], capture_output=True, text=True, check=False)
    if trial.returncode != 0:
        raise SetupError(
            f"no network namespace can be made here (mnexec -n: {trial.stderr.strip()}); in a container the lab needs "
            "the right to mount and to administer the network, and a root directory that is a mount point"
        )
