"""Compares what a control plane can name on v1model and on Tofino: the same, but for a short list, itself checked.

From the sources always; from both P4Infos and Tofino's bfrt.json once it has been compiled into p4src/build/tofino. A
difference that is not allowed is an error, and so is an allowed one that is not there any more. So are externs whose
parameters are not the same: no stage is to know its target. (Both include the stages by one list.)
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tools import p4_objects
from tools.p4_objects import P4SRC, Object, ObjectsError, Shapes

V1MODEL_P4INFO = P4SRC / "build/sluice.p4info.txtpb"
TOFINO_P4INFO = P4SRC / "build/tofino/sluice.p4info.txtpb"
TOFINO_BFRT = P4SRC / "build/tofino/bfrt.json"

ONLY_TOFINO = {
    ("register", "admitted_stamps"): "a stateful unit has two inputs; v1model's admitted_clients holds both",
    ("register", "rate_last"): "a stateful unit has one output; v1model's rate_flow gives its time as well",
    ("register", "pin_state_1"): "a stateful unit has two inputs; v1model's keys hold the states",
    ("register", "pin_state_2"): "as pin_state_1",
}
"""What Tofino has and v1model does not, with the reason."""

ONLY_V1MODEL = {
    ("register", "draw_point"): "Tofino draws by hashes: see tna/externs/choice.p4. No controller names it",
    ("register", "candidate_key"): "Tofino has no stage left for candidates. No controller names it",
    ("register", "candidate_pin"): "as candidate_key",
    ("table", "agents"): "content switching finds no room beside the rest of Tofino's program",
    ("register", "splice_cells"): "as agents",
    ("register", "remembered_clients"): "as agents",
    **{("action", name): "as agents" for name in ("to_content", "to_group", "from_content", "set_agent", "no_agent")},
    ("table", "resources"): "rewriting windows needs variable shifts and serial comparison, which no stage has left",
    **{("action", name): "as resources" for name in ("manage", "unmanaged")},
    **{
        ("register", f"transfer_{what}"): "as resources"
        for what in (
            "owner",
            "edge",
            "acked",
            "activity",
            "probe",
            "least",
            "rtt",
            "recovery",
            "losses",
            "sent",
            "flight",
        )
    },
    **{
        ("register", name): "as resources"
        for name in (
            *("cap_agreed", "cap_client", "cap_server", "cap_offered_server", "cap_offered_client"),
            *("send_cap", "receive_cap"),
        )
    },
    **{
        ("register", f"closing_{name}"): "as resources"
        for name in ("server_next", "client_next", "state", "peer", "hint", "taken", "taken_back", "raced")
    },
}
"""The other way round."""

NOT_IN_SOURCES = {("register", "clock_turns"): "Tofino's own clock: no controller names it, and it has no @id"}
"""What only the compiled program of Tofino has besides, with the reason."""

OWN_IDS = {"register", "counter", "meter", "action profile"}
"""Kinds whose @id p4c's Tofino back end passes over (1.2.5.16): their ids are its own, and are looked up by name."""

OTHER_SIZE = {
    **{
        ("register", f"pin_{what}_{way}"): "a register lies in one stage of Tofino, with its 48 map RAMs"
        for what in ("key", "server")
        for way in (1, 2)
    },
    ("action profile", "others_by_ratio"): "its members lie beside its selector, in the 80 SRAM blocks of one stage",
}
"""What has another size on Tofino, with the reason."""

INSTANCE = re.compile(r"^    (\w+)\(\) \w+;", re.MULTILINE)
CONTROL = re.compile(r"^control (\w+)\((.*?)\) \{", re.MULTILINE | re.DOTALL)

Objects = Mapping[tuple[str, str], Object]


def differences(v1model: Objects, tofino: Objects) -> list[str]:
    """Differences that are not allowed, and allowances that are not needed, a line each."""
    said: list[str] = []
    for one, others, allowed, target, other_target, of in (
        (v1model, tofino, ONLY_V1MODEL, "v1model", "Tofino", "ONLY_V1MODEL"),
        (tofino, v1model, ONLY_TOFINO, "Tofino", "v1model", "ONLY_TOFINO"),
    ):
        said += [
            f"{kind} {name}: not on {other_target}"
            for kind, name in sorted(one.keys() - others.keys() - allowed.keys())
        ]
        said += [
            f"{kind} {name}: allowed to be on {target} only, and is not: take it from {of}"
            for kind, name in sorted(allowed)
            if (kind, name) not in one or (kind, name) in others
        ]
    for where in sorted(v1model.keys() & tofino.keys()):
        one, other = v1model[where], tofino[where]
        said += [
            f"{one.kind} {one.name}: {what} {ours} on v1model, {theirs} on Tofino"
            for what, ours, theirs in (
                ("@id", hex(one.number), hex(other.number)),
                ("size", one.size, other.size),
                ("key", one.key, other.key),
            )
            if ours != theirs and (what != "size" or where not in OTHER_SIZE)
        ]
        if where in OTHER_SIZE and one.size == other.size:
            said.append(f"{one.kind} {one.name}: allowed another size on Tofino, and has none: take it from OTHER_SIZE")
    return said


def compiled_differences(v1model: Objects, tofino: Objects) -> list[str]:
    """As differences, of two P4Infos: with the allowances that only a compiled program needs, each of them needed."""
    said = [
        f"{kind} {name}: allowed in Tofino's P4Info, and is not there: take it from NOT_IN_SOURCES"
        for kind, name in sorted(NOT_IN_SOURCES.keys() - tofino.keys())
    ]
    both = v1model.keys() & tofino.keys()
    for kind in sorted(OWN_IDS):
        if all(v1model[where].number == tofino[where].number for where in both if where[0] == kind):
            said.append(f"every {kind} has its @id: take the kind from OWN_IDS")
    like = {
        where: replace(each, number=v1model[where].number) if each.kind in OWN_IDS and where in both else each
        for where, each in tofino.items()
        if where not in NOT_IN_SOURCES
    }
    return said + differences(v1model, like)


def shape_differences(v1model: Shapes, tofino: Shapes, bfrt: Shapes) -> list[str]:
    """Keys and parameters, with their widths, that are not the same on both; all that BF Runtime is told otherwise."""
    said = [
        f"{name}: {v1model[name]} on v1model, {tofino.get(name)} on Tofino"
        for name in sorted(v1model)
        if name.rsplit(" ", 1)[0] in ("table", "action", "digest")
        and v1model[name] != tofino.get(name)
        and (name.rsplit(" ", 1)[0], name.rsplit(".", 1)[-1]) not in ONLY_V1MODEL
    ]
    return said + [
        f"{name}: {tofino.get(name)} in Tofino's P4Info, {bfrt.get(name)} in its bfrt.json"
        for name in sorted(tofino.keys() | bfrt.keys())
        if tofino.get(name) != bfrt.get(name)
    ]


def controls(folder: Path) -> dict[str, str]:
    """Parameters of every control in a folder's files, by the control's name."""
    text = "".join(path.read_text() for path in sorted(folder.glob("*.p4")))
    return {name: " ".join(parameters.split()) for name, parameters in CONTROL.findall(text)}


def unlike(p4src: Path = P4SRC) -> list[str]:
    """Externs of the stages that have other parameters on one target, which a stage would notice."""
    ours, theirs = (controls(p4src / target / "externs") for target in ("v1model", "tna"))
    named = {name for path in (p4src / "stages").glob("*.p4") for name in INSTANCE.findall(path.read_text())}
    return [
        f"control {name}: ({ours.get(name)}) on v1model, ({theirs.get(name)}) on Tofino"
        for name in sorted(named & (ours.keys() | theirs.keys()))
        if ours.get(name) != theirs.get(name)
    ]


def main() -> int:
    """Compares; returns the exit status."""
    compiled = TOFINO_P4INFO.exists()
    try:
        v1model, tofino = (p4_objects.of_sources(target) for target in ("v1model", "tna"))
        said = differences(v1model, tofino) + unlike()
        if compiled:
            of_p4info = (p4_objects.of_p4info(path) for path in (V1MODEL_P4INFO, TOFINO_P4INFO))
            said += [f"compiled: {line}" for line in compiled_differences(*of_p4info)]
            missing = p4_objects.full_names(V1MODEL_P4INFO) - p4_objects.full_names(TOFINO_P4INFO)
            own = {name for _, name in ONLY_V1MODEL}
            said += [
                f"compiled: {name}: no such name on Tofino"
                for name in sorted(missing)
                if name.rpartition(".")[2] not in own
            ]
            ours, theirs = (p4_objects.shapes_of_p4info(path) for path in (V1MODEL_P4INFO, TOFINO_P4INFO))
            told = shape_differences(ours, theirs, p4_objects.shapes_of_bfrt(TOFINO_BFRT))
            said += [f"compiled: {line}" for line in told]
    except ObjectsError as error:
        print(f"target-contract: {error}", file=sys.stderr)
        return 1
    for line in said:
        print(f"target-contract: {line}", file=sys.stderr)
    if not said:
        how = "sources, P4Info and bfrt.json" if compiled else "sources (Tofino's program is not compiled)"
        print(
            f"target-contract: {len(v1model)} objects, {len(ONLY_V1MODEL)} of them on v1model only, {len(ONLY_TOFINO)} "
            f"more and {len(OTHER_SIZE)} of another size on Tofino, by {how}"
        )
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
