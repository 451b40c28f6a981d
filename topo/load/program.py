"""Programs of a load. A program is a dataclass whose fields are its options; a separate process receives the options as
JSON on its command line.

`command` returns the command line. A module with programs ends with ``if __name__ == "__main__": main(globals())``.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Protocol


class Program(Protocol):
    """A program: a dataclass whose fields can be written as JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def run(self) -> None:
        """Execute the program until it ends."""
        ...


def command(program: Program) -> list[str]:
    """Return the command line that runs a program with its options."""
    kind = type(program)
    return [sys.executable, "-m", kind.__module__, kind.__name__, json.dumps(asdict(program))]


def main(module: Mapping[str, Any]) -> None:
    """Run the program that the command line names, from the globals of its module. The process's limit of open files is
    raised to its hard limit (getrlimit(2))."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    kind, options = sys.argv[1:]
    module[kind](**json.loads(options)).run()


def address_port(place: str) -> tuple[str, int]:
    """Parse ADDRESS:PORT into address and port."""
    address, _, port = place.rpartition(":")
    return address, int(port)
