"""Runs the tests of jafingerhut/p4-guide: every `runptf.sh` that starts simple_switch_grpc, on veth interfaces that the
repository's scripts create."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from . import ptf
from .errors import SuiteError
from .place import ORIGINAL, Place
from .report import Result

MODULES = ("p4runtime_sh.shell", "google.rpc.code_pb2", "scapy.all", "ptf")
SCRIPT = "runptf.sh"
VETHS = "bin/veth_setup.sh"


def scripts(folder: Path) -> list[str]:
    """Return the folders whose script starts simple_switch_grpc; the other scripts are for DPDK."""
    paths = (path for path in folder.rglob(SCRIPT) if ORIGINAL in path.read_text(errors="replace"))
    return sorted(str(path.parent.relative_to(folder)) for path in paths)


def run(place: Place, names: Sequence[str]) -> Iterator[Result]:
    """Yield the results of the scripts' tests, script by script. Raises SuiteError if no script can run."""
    known = scripts(place.folder)
    if not known:
        raise SuiteError(f"no {SCRIPT} in this folder starts {ORIGINAL}: is it a clone of jafingerhut/p4-guide?")
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SuiteError(f"there is no {SCRIPT} in {', '.join(unknown)}, only in {', '.join(known)}")
    place.require(ptf.COMMANDS, MODULES)
    for name in names or known:
        yield from ptf.run(place, name, place.folder / name, f"{place.folder / VETHS} && ./{SCRIPT}")
