"""TCP ports that nobody has."""

from __future__ import annotations

import socket


def free_port(wanted: int = 0, host: str = "127.0.0.1") -> int:
    """The port wanted, or another where somebody has it (0: any). Raises OSError when none is to be had."""
    if wanted:
        try:
            with socket.create_server((host, wanted)):
                return wanted
        except OSError:
            pass
    with socket.create_server((host, 0)) as listener:
        return int(listener.getsockname()[1])
