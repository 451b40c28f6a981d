"""BMv2: a stock simple_switch_grpc from PATH, built with Thrift."""

from __future__ import annotations

import shutil
from pathlib import Path

from testbed.errors import SetupError

from . import embedded
from .kind import Endpoints, Kind

PROGRAM = "simple_switch_grpc"


def find() -> Path:
    """The program. Raises SetupError where PATH has none, or the embedded switch under its name."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise SetupError(
            f"{PROGRAM} is not on PATH: install p4lang-bmv2 (https://github.com/p4lang/behavioral-model), or leave"
            " SWITCH=bmv2 out"
        )
    if Path(found).resolve().name == embedded.BINARY.name:
        raise SetupError(f"{found} is the embedded switch: take its folder out of PATH, or put BMv2's in front")
    return Path(found)


def options(endpoints: Endpoints) -> list[str]:
    """Thrift, and a socket for notifications that no other BMv2 has."""
    notifications = f"ipc://{endpoints.folder}/notifications.ipc"
    return ["--thrift-port", str(endpoints.thrift_port), "--notifications-addr", notifications]


BMV2 = Kind("bmv2", PROGRAM, find, options, verbose=("--log-console", "-L", "debug", "--log-flush"), thrift=True)
