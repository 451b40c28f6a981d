"""Compares the objects that a control plane can name on v1model and on Tofino. They must be the same, except those in
short lists.

Each program for Tofino has a contract of its own (tools/p4_tofino.py names the programs). The sources are always
compared; the P4Infos of v1model and Tofino and Tofino's bfrt.json are compared once a program for Tofino has been
compiled into p4src/build. A difference that is not allowed is an error, and so is an allowance for a difference that no
longer exists. Externs whose parameters differ between the targets are errors, too, because a stage must not depend on
its target. (The programs of all targets include the stages by the same list.)
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tools import p4, p4_objects
from tools.p4_objects import P4SRC, Object, ObjectsError, Shapes

V1MODEL_P4INFO = P4SRC / "build/sluice.p4info.txtpb"

Where = tuple[str, str]
"""The kind and the name of an object."""


def named(kind: str, reason: str, names: str, prefix: str = "") -> dict[Where, str]:
    """Return the same reason for several objects of a kind; the names are separated by spaces."""
    return {(kind, f"{prefix}{name}"): reason for name in names.split()}


ONLY_TOFINO = {
    ("register", "admitted_stamps"): "a stateful unit has two inputs; v1model's admitted_clients holds both",
    ("register", "rate_last"): "a stateful unit has one output; v1model's rate_flow gives its time as well",
    ("register", "pin_state_1"): "a stateful unit has two inputs; v1model's keys hold the states",
    ("register", "pin_state_2"): "as pin_state_1",
}
"""Objects that only the programs for Tofino have, with the reason."""

LOOKS = "as choose_other_servers"
NEVER_ON_TOFINO = {
    ("register", "draw_point"): "Tofino draws by hashes: see tna/externs/choice.p4. No controller names it",
    ("register", "candidate_key"): "Tofino has no stage left for candidates. No controller names it",
    ("register", "candidate_pin"): "as candidate_key",
    ("counter", "moved"): "counts what only candidates do. The controller does without it",
    ("counter", "disowned"): "as moved",
    ("action", "choose_other_servers"): "Tofino looks at two servers: a register lies in one stage, and none is left",
    **named("register", LOOKS, "load_third load_fourth stale_third stale_fourth refusing_third refusing_fourth"),
    **named("table", LOOKS, "idle_members"),
    **named("action", LOOKS, "seek_idle seek_nobody"),
    **named("register", LOOKS, "idle_ends idle_queue idle_ticket_first idle_ticket_head stale_idle"),
    **named(
        "register",
        "a stateful unit has two inputs; splice_turn_* and splice_value_* hold it where content is switched",
        "splice_cells",
    ),
    ("register", "remembered_clients"): "remembering takes a SYN's options apart, and a third pass",
}
"""Objects that v1model's program has but no program for Tofino has, with the reason."""

CAPS = "cap_agreed cap_server cap_offered_server cap_offered_client send_cap receive_cap"
SAMPLES = "owner edge acked activity probe least rtt recovery flight hole"
NO_RESOURCES = {
    ("table", "resources"): "rewriting windows needs variable shifts and serial comparison, which no stage has left",
    **named("action", "as resources", "manage unmanaged"),
    **named("register", "as resources", f"{SAMPLES} losses sent", "transfer_"),
    **named("register", "as resources", f"{CAPS} cap_client"),
    **named(
        "register",
        "as resources",
        "server_next client_next state peer hint taken taken_back raced pauses",
        "closing_",
    ),
}
"""Further objects that v1model's program has but the program for Tofino 1 lacks, with the reason."""

ONLY_V1MODEL = {
    **NEVER_ON_TOFINO,
    **NO_RESOURCES,
    ("table", "agents"): "content switching finds no room beside the rest of Tofino's program",
    ("table", "agent_hops"): "as agents",
    **named("action", "as agents", "to_content to_group from_content set_agent no_agent set_agent_hop no_agent_hop"),
}
"""All objects that v1model's program has but the program for Tofino 1 lacks, with the reason."""

TWO_WORDS = "a slot of both ways has one word of 32 bits in half a stage, and v1model's {} has more"
MORE_CELLS = {
    ("register", "cap_asked"): TWO_WORDS.format("cap_agreed"),
    **{("register", f"cap_acked_{side}"): TWO_WORDS.format(f"cap_{side}") for side in ("client", "server")},
    **{("register", f"cap_effect_{side}"): TWO_WORDS.format(f"cap_offered_{side}") for side in ("client", "server")},
    ("register", "closing_order"): "the idle time to end; on v1model the tickle itself passes ingress",
}
"""Objects for servers' resources that the program for Tofino 2 has but v1model's lacks, with the reason."""

NO_RESOURCES_ON_TOFINO_2 = {
    ("register", "cap_client"): "what is sent in a client's name moves no number on Tofino 2; the server's are taken",
    **named(
        "register", "the numbers and times of a sample find no containers of 32 bits beside caps", SAMPLES, "transfer_"
    ),
    ("register", "closing_server_next"): "caps follow this number on Tofino 2, in cap_server",
    ("register", "closing_client_next"): "caps follow this number on Tofino 2, in cap_acked_server",
    ("register", "closing_hint"): "on Tofino 2 the controller reads closing_state, two bytes a connection",
    ("register", "closing_taken_back"): "on Tofino 2 closing_state shows it: another time than closing_order",
    ("register", "closing_raced"): "closing_state of Tofino 2 does not tell the first refused payload",
    ("register", "closing_pauses"): "closing_state of Tofino 2 keeps no length of a pause",
}
"""Objects for servers' resources that v1model's program has but the program for Tofino 2 lacks, with the reason."""

NOT_IN_SOURCES = {("register", "clock_turns"): "Tofino's own clock: no controller names it, and it has no @id"}
"""Objects that appear only in Tofino's compiled program, not in the sources, with the reason."""

OWN_IDS = {"register", "counter", "meter", "action profile"}
"""Kinds of objects whose @id the Tofino back end of p4c 1.2.5.16 ignores; the controller finds ids by name."""

OTHER_SIZE = {
    **named(
        "register",
        "a register lies in one stage of Tofino, with its 48 map RAMs",
        "key_1 key_2 server_1 server_2",
        "pin_",
    ),
    ("action profile", "others_by_ratio"): "its members lie beside its selector, in the 80 SRAM blocks of one stage",
}
"""Objects that have another size on Tofino, with the reason."""
SMALLER_SELECTORS = named(
    "action profile",
    "on Tofino 2 members lie in their selector's half of a stage, which has 40 SRAM blocks",
    "ratios capacities",
)
CELLS_OF_SLOTS = {
    **named(
        "register",
        "a cell for each slot, and a way of Tofino 2 has 2^15 slots",
        f"{CAPS} closing_state closing_peer",
    ),
    **named(
        "register",
        "counts of each slot, not of a sample; Tofino 2 has no other cells of a transfer",
        "transfer_sent transfer_losses",
    ),
}


@dataclass(frozen=True)
class Contract:
    """The allowed differences between a program for Tofino and v1model's program, with the reasons."""

    only_tofino: Mapping[Where, str]
    only_v1model: Mapping[Where, str]
    other_size: Mapping[Where, str]


SPLICES = {
    ("register", "splice_turn_1"): "a stateful unit has two inputs; v1model's splice_cells holds turn and value",
    **named("register", "as splice_turn_1", "turn_2 value_1 value_2", "splice_"),
}

TOFINO = Contract(ONLY_TOFINO, ONLY_V1MODEL, OTHER_SIZE)
CONTRACTS = {
    "tofino": TOFINO,
    "tofino2": Contract(
        {**ONLY_TOFINO, **SPLICES, **MORE_CELLS},
        {**NEVER_ON_TOFINO, **NO_RESOURCES_ON_TOFINO_2},
        {**OTHER_SIZE, **SMALLER_SELECTORS, **CELLS_OF_SLOTS},
    ),
}
"""The contracts by the program's name (tools/p4_tofino.py)."""

INSTANCE = re.compile(r"^    (\w+)\(\) \w+;", re.MULTILINE)
CONTROL = re.compile(r"^control (\w+)\((.*?)\) \{", re.MULTILINE | re.DOTALL)

Objects = Mapping[Where, Object]


def differences(v1model: Objects, tofino: Objects, contract: Contract = TOFINO) -> list[str]:
    """Return a message for each difference that is not allowed, and for each allowance that is not needed."""
    said: list[str] = []
    for own, others, allowed, target, other_target, of in (
        (v1model, tofino, contract.only_v1model, "v1model", "Tofino", "ONLY_V1MODEL"),
        (tofino, v1model, contract.only_tofino, "Tofino", "v1model", "ONLY_TOFINO"),
    ):
        said += [
            f"{kind} {name}: not on {other_target}"
            for kind, name in sorted(own.keys() - others.keys() - allowed.keys())
        ]
        said += [
            f"{kind} {name}: allowed to be on {target} only, and is not: take it from {of}"
            for kind, name in sorted(allowed)
            if (kind, name) not in own or (kind, name) in others
        ]
    for where in sorted(v1model.keys() & tofino.keys()):
        ours, theirs = v1model[where], tofino[where]
        said += [
            f"{ours.kind} {ours.name}: {what} {on_v1model} on v1model, {on_tofino} on Tofino"
            for what, on_v1model, on_tofino in (
                ("@id", hex(ours.number), hex(theirs.number)),
                ("size", ours.size, theirs.size),
                ("key", ours.key, theirs.key),
            )
            if on_v1model != on_tofino and (what != "size" or where not in contract.other_size)
        ]
        if where in contract.other_size and ours.size == theirs.size:
            said.append(
                f"{ours.kind} {ours.name}: allowed another size on Tofino, and has none: take it from OTHER_SIZE"
            )
    return said


def compiled_differences(v1model: Objects, tofino: Objects, contract: Contract = TOFINO) -> list[str]:
    """Return the messages of `differences` for two P4Infos, with the allowances that only compiled programs need."""
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
    return said + differences(v1model, like, contract)


def shape_differences(v1model: Shapes, tofino: Shapes, bfrt: Shapes, contract: Contract = TOFINO) -> list[str]:
    """Return messages about keys, parameters and widths that differ between the targets, or between P4Info and
    bfrt.json."""
    said = [
        f"{name}: {v1model[name]} on v1model, {tofino.get(name)} on Tofino"
        for name in sorted(v1model)
        if name.rsplit(" ", 1)[0] in ("table", "action", "digest")
        and v1model[name] != tofino.get(name)
        and (name.rsplit(" ", 1)[0], name.rsplit(".", 1)[-1]) not in contract.only_v1model
    ]
    return said + [
        f"{name}: {tofino.get(name)} in Tofino's P4Info, {bfrt.get(name)} in its bfrt.json"
        for name in sorted(tofino.keys() | bfrt.keys())
        if tofino.get(name) != bfrt.get(name)
    ]


def controls(folder: Path) -> dict[str, str]:
    """Return the parameters of every control in a folder's files, by the control's name."""
    text = "".join(path.read_text() for path in sorted(folder.glob("*.p4")))
    return {name: " ".join(parameters.split()) for name, parameters in CONTROL.findall(text)}


def unlike(p4src: Path = P4SRC) -> list[str]:
    """Return messages about externs in the stages whose parameters differ between the targets."""
    ours, theirs = (controls(p4src / target / "externs") for target in ("v1model", "tna"))
    named = {name for path in (p4src / "stages").glob("*.p4") for name in INSTANCE.findall(path.read_text())}
    return [
        f"control {name}: ({ours.get(name)}) on v1model, ({theirs.get(name)}) on Tofino"
        for name in sorted(named & (ours.keys() | theirs.keys()))
        if ours.get(name) != theirs.get(name)
    ]


def of_compiled(folder: Path, contract: Contract) -> list[str]:
    """Return a message for each difference between a compiled program for Tofino and v1model's."""
    p4info = folder / "sluice.p4info.txtpb"
    said = compiled_differences(p4_objects.of_p4info(V1MODEL_P4INFO), p4_objects.of_p4info(p4info), contract)
    missing = p4_objects.full_names(V1MODEL_P4INFO) - p4_objects.full_names(p4info)
    own = {name for _, name in contract.only_v1model}
    said += [f"{name}: no such name on Tofino" for name in sorted(missing) if name.rpartition(".")[2] not in own]
    ours, theirs = (p4_objects.shapes_of_p4info(path) for path in (V1MODEL_P4INFO, p4info))
    return said + shape_differences(ours, theirs, p4_objects.shapes_of_bfrt(folder / "bfrt.json"), contract)


def main() -> int:
    """Compare each program for Tofino with v1model's; print the differences, and return 1 if there are any, else 0."""
    said = [f"target-contract: {line}" for line in unlike()]
    notes: list[str] = []
    try:
        v1model = p4_objects.of_sources("v1model")
        for name, contract in CONTRACTS.items():
            folder = P4SRC / "build" / name
            lines = differences(v1model, p4_objects.of_program(p4.TOFINO_BUILDS[name]), contract)
            compiled = (folder / "sluice.p4info.txtpb").exists()
            if compiled:
                lines += [f"compiled: {line}" for line in of_compiled(folder, contract)]
            said += [f"target-contract: {name}: {line}" for line in lines]
            how = "sources, P4Info and bfrt.json" if compiled else "sources (the program is not compiled)"
            notes.append(
                f"target-contract: {name}: {len(v1model)} objects, {len(contract.only_v1model)} of them on v1model "
                f"only, {len(contract.only_tofino)} more and {len(contract.other_size)} of another size, by {how}"
            )
    except ObjectsError as error:
        print(f"target-contract: {error}", file=sys.stderr)
        return 1
    print("\n".join(said or notes), file=sys.stderr if said else sys.stdout)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
