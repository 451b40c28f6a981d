"""Compares what a control plane can name on v1model and on Tofino: the same, but for a short list, itself checked.

From the sources always; from both P4Infos once there is one for Tofino in p4src/build/tofino. A difference that is not
allowed is an error, and so is an allowed one that is not there any more. So are stages that one target leaves out, and
externs whose parameters are not the same: no stage is to know its target.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tools import p4_objects
from tools.p4_objects import P4SRC, Object, ObjectsError

V1MODEL_P4INFO = P4SRC / "build/sluice.p4info.txtpb"
TOFINO_P4INFO = P4SRC / "build/tofino/sluice.p4info.txtpb"

ONLY_TOFINO = {
    ("register", "admitted_stamps"): "a stateful unit has two inputs; v1model's admitted_clients holds both",
    ("register", "rate_last"): "a stateful unit has one output; v1model's rate_flow gives its time as well",
}
"""What Tofino has and v1model does not, with the reason. Nothing is the other way round."""

ONLY_TOFINO_CONTROLS = {"Logarithm"}
"""Controls of p4src/tna/externs that no stage calls."""

CONTROL = re.compile(r"^control (\w+)\((.*?)\) \{", re.MULTILINE | re.DOTALL)
STAGE = re.compile(r'^#include "../stages/(\w+)\.p4"$', re.MULTILINE)

Objects = Mapping[tuple[str, str], Object]


def differences(v1model: Objects, tofino: Objects) -> list[str]:
    """Differences that are not allowed, and allowances that are not needed, a line each."""
    said: list[str] = []
    for kind, name in sorted(v1model.keys() - tofino.keys()):
        said.append(f"{kind} {name}: not on Tofino")
    for kind, name in sorted(tofino.keys() - v1model.keys() - ONLY_TOFINO.keys()):
        said.append(f"{kind} {name}: not on v1model")
    for kind, name in sorted(ONLY_TOFINO):
        if (kind, name) not in tofino or (kind, name) in v1model:
            said.append(f"{kind} {name}: allowed to be on Tofino only, and is not: take it from ONLY_TOFINO")
    for where in sorted(v1model.keys() & tofino.keys()):
        one, other = v1model[where], tofino[where]
        said += [
            f"{one.kind} {one.name}: {what} {ours} on v1model, {theirs} on Tofino"
            for what, ours, theirs in (
                ("@id", hex(one.number), hex(other.number)),
                ("size", one.size, other.size),
                ("key", one.key, other.key),
            )
            if ours != theirs
        ]
    return said


def controls(folder: Path) -> dict[str, str]:
    """Parameters of every control in a folder's files, by the control's name."""
    text = "".join(path.read_text() for path in sorted(folder.glob("*.p4")))
    return {name: " ".join(parameters.split()) for name, parameters in CONTROL.findall(text)}


def unlike(p4src: Path = P4SRC) -> list[str]:
    """What the stages would notice: stages that one target leaves out, externs with other parameters."""
    mains = [(p4src / target / "main.p4").read_text() for target in ("v1model", "tna")]
    v1model, tofino = (STAGE.findall(main) for main in mains)
    said = [] if v1model == tofino else [f"main.p4 includes the stages {v1model} on v1model, {tofino} on Tofino"]
    ours, theirs = (controls(p4src / target / "externs") for target in ("v1model", "tna"))
    for name in sorted(ours.keys() | (theirs.keys() - ONLY_TOFINO_CONTROLS)):
        if ours.get(name) != theirs.get(name):
            said.append(f"control {name}: ({ours.get(name)}) on v1model, ({theirs.get(name)}) on Tofino")
    return said


def main() -> int:
    """Compares; returns the exit status."""
    compiled = TOFINO_P4INFO.exists()
    try:
        v1model, tofino = (p4_objects.of_sources(target) for target in ("v1model", "tna"))
        said = differences(v1model, tofino) + unlike()
        if compiled:
            of_p4info = (p4_objects.of_p4info(path) for path in (V1MODEL_P4INFO, TOFINO_P4INFO))
            said += [f"compiled: {line}" for line in differences(*of_p4info)]
    except ObjectsError as error:
        print(f"target-contract: {error}", file=sys.stderr)
        return 1
    for line in said:
        print(f"target-contract: {line}", file=sys.stderr)
    if not said:
        how = "sources and P4Info" if compiled else "sources (Tofino's program is not compiled)"
        print(f"target-contract: {len(v1model)} objects, {len(ONLY_TOFINO)} more on Tofino, by {how}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
