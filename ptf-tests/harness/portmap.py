"""Read from a file which port of the switch is connected to which interface of this host, for Tofino's model or a real
switch.

The file has lines of this form:

# port of the switch, interface here; the first four are the router's ports of plan.py, in this order
128  veth1
129  veth3
"""

from __future__ import annotations

from pathlib import Path

from . import plan

NEEDED = plan.SPARE_PLACE + 1


class PortMapError(Exception):
    """The file is not a port map (the message contains the number of the faulty line), or it has too few ports."""


def read(path: Path) -> list[tuple[int, str]]:
    """Return port numbers and interfaces, in the order of the file; raise PortMapError or OSError."""
    ports: list[tuple[int, str]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or not words[0].isdecimal():
            raise PortMapError(f"{path}, line {number}: {line.strip()!r} is not a port number and an interface")
        port, interface = int(words[0]), words[1]
        if any(port == other or interface == name for other, name in ports):
            raise PortMapError(f"{path}, line {number}: port {port} or {interface} is there twice")
        ports.append((port, interface))
    if len(ports) < NEEDED:
        raise PortMapError(f"{path}: the tests need {NEEDED} ports, and {len(ports)} are there")
    return ports
