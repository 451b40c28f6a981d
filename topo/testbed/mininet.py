"""The only module that imports Mininet, and the types of the parts of Mininet that the lab uses.

Debian ships Mininet for the system's Python. The folder of the system's packages is appended at the END of sys.path, so
that packages of the virtual environment precede Debian's packages.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"

if TYPE_CHECKING:
    import cmd
    from typing import ClassVar

    class Intf:
        """The type of mininet.link.Intf."""

        name: str
        mac: str | None

    class Node:
        """The type of mininet.node.Node."""

        name: str
        pid: int
        intfs: dict[int, Intf]

        def __init__(self, name: str, **params: object) -> None: ...
        def waitOutput(self, verbose: bool = False, findPid: bool = True) -> str: ...
        def config(self, **params: object) -> dict[str, object]: ...
        def terminate(self) -> None: ...

    class Switch(Node):
        """The type of mininet.node.Switch."""

        def start(self, controllers: list[Node]) -> None: ...
        def stop(self, deleteIntfs: bool = True) -> None: ...

    class Mininet:
        """The type of mininet.net.Mininet."""

        inited: ClassVar[bool]
        hosts: list[Node]

        def __init__(self, **params: object) -> None: ...
        def addHost(self, name: str, cls: type[Node], **params: object) -> Node: ...
        def addSwitch(self, name: str, cls: type[Switch], **params: object) -> Switch: ...
        def addLink(self, node1: Node, node2: Node, **params: object) -> object: ...
        def build(self) -> None: ...
        def start(self) -> None: ...
        def stop(self) -> None: ...

    class CLI(cmd.Cmd):
        """The type of mininet.cli.CLI."""

        def __init__(self, mininet: Mininet) -> None: ...

    def setLogLevel(levelName: str) -> None: ...

else:
    if DEBIAN_PACKAGES not in sys.path:
        sys.path.append(DEBIAN_PACKAGES)
    try:
        from mininet.cli import CLI
        from mininet.link import Intf
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.node import Node, Switch
    except ImportError as missing:
        sys.exit(f"sluice lab: Mininet cannot be imported ({missing}): apt-get install mininet")

__all__ = ["CLI", "Intf", "Mininet", "Node", "Switch", "setLogLevel"]
