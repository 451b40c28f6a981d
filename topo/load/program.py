"""Programs of a load: a dataclass each, whose fields are its options and go to a process of its own as JSON.

`command` makes the command line; the module of the program ends with ``if __name__ == "__main__": main(globals())``.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Protocol


class Program(Protocol):
    """A dataclass whose fields are values of JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def run(self) -> None:
        """Run the program to its end, in a process of its own."""
        ...


def command(program: Program) -> list[str]:
    """Return the command line that runs a program with its options."""
    kind = type(program)
    return [sys.executable, "-m", kind.__module__, kind.__name__, json.dumps(asdict(program))]


def main(module: Mapping[str, Any]) -> None:
    """Run the program of a module that the command line names, with as many open files as the system allows."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    kind, options = sys.argv[1:]
    module[kind](**json.loads(options)).run()


def address_port(place: str) -> tuple[str, int]:
    """Read ADDRESS:PORT."""
    address, _, port = place.rpartition(":")
    return address, int(port)
