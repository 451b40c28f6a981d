"""Lists the objects of a P4 program that a control plane can name: tables, actions, registers, counters, meters and
action profiles.

For a compiled program, the objects are read from P4Info; otherwise from the sources, in which every object of `p4src/`
has an `@id` with a name of common/ids.p4. Only properties that are comparable between targets are kept: the kind, the
number below the kind's prefix, the size, and for tables the key. P4Info contains full names, but sources contain only
their last component; so only the last component is kept.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from tools import p4, p4_sources
from tools.p4_sources import P4SRC

LOW = 0xFFFFFF
"""The bits of an id below the prefix, which states the object's kind. The prefix is not compared, because TNA's own
externs have other prefixes than P4Runtime's objects."""


class ObjectsError(Exception):
    """A source cannot be parsed; the message states the problem."""


@dataclass(frozen=True)
class Object:
    """A named object. `key` lists the fields of a table's key as `name:kind`. Fields of a selector are left out, as in
    P4Info."""

    kind: str
    number: int
    name: str
    size: int = 0
    key: tuple[str, ...] = ()


KINDS = {
    "action": "action",
    "table": "table",
    "register": "register",
    "Register": "register",
    "counter": "counter",
    "Counter": "counter",
    "meter": "meter",
    "Meter": "meter",
    "action_selector": "action profile",
    "ActionProfile": "action profile",
}

DECLARATION = re.compile(
    r"@id\((\w+)\)\s*(?:@\w+\s*)*(?P<kind>" + "|".join(KINDS) + r")\b\s*"
    r"(?:<[^()]*>)?\s*(?:\((?P<arguments>[^)]*)\)\s*)?(?P<name>\w+)"
)
COUNTS = re.compile(r"^ +COUNT_REGISTER\((\w+), \w+, (\w+), (\w+)\)", re.MULTILINE)
KEY_FIELD = re.compile(r':\s*(\w+)\s+@name\("(\w+)"\)')


def in_source(text: str, sizes: dict[str, int]) -> Iterator[Object]:
    """Yield the objects that a source declares. Raises ObjectsError for an unknown id or size."""
    for declaration in DECLARATION.finditer(text):
        kind, name = KINDS[declaration["kind"]], declaration["name"]
        number = numbered(declaration[1], name)
        if kind == "action":
            yield Object(kind, number, name)
        elif kind == "table":
            body = text[declaration.end() : text.index("\n    }\n", declaration.end())]
            key = tuple(f"{field}:{match}" for match, field in KEY_FIELD.findall(body))
            size = re.search(r"size = (\w+);", body)
            yield Object(kind, number, name, sized(size[1] if size else "", name, sizes), key)
        else:
            words = [word.strip() for word in (declaration["arguments"] or "").split(",")]
            named = [word for word in words if word in sizes or word.isdigit()]
            yield Object(kind, number, name, sized(named[0] if named else "", name, sizes))
    for number, size, name in COUNTS.findall(text):
        yield Object("register", numbered(number, name), name, sized(size, name, sizes))


def numbered(word: str, name: str) -> int:
    """Return the number of an id, by the id's name in ids.p4. Raises ObjectsError for an unknown name."""
    if number := p4_sources.ids().get(word):
        return number.value
    raise ObjectsError(f"{name} has the id {word!r}: write a name of p4src/common/ids.p4")


def sized(word: str, name: str, sizes: dict[str, int]) -> int:
    """Return a size as a number: from its name in `sizes` or its digits. Raises ObjectsError for an unknown name."""
    if word.isdigit():
        return int(word)
    if word in sizes:
        return sizes[word]
    raise ObjectsError(f"{name} has the size {word!r}: write a number, or a constant of p4src/common/sizes.p4")


def of_sources(target: str, p4src: Path = P4SRC) -> dict[tuple[str, str], Object]:
    """Return the objects of a target's program by kind and name: those of the shared stages and the target's own
    ones."""
    defined = "TOFINO" if target == "tna" else "CONTENT"
    sizes = p4_sources.sizes(defined)
    paths = [path for folder in ("stages", target) for path in sorted((p4src / folder).rglob("*.p4"))]
    texts = ["\n".join(p4_sources.lines_for(path, defined)) for path in paths]
    objects = [each for text in texts for each in in_source(text, sizes)]
    return by_name(objects)


INSTANCE = re.compile(r"^    (\w+)\(\) \w+;", re.MULTILINE)


def of_program(build: p4.Build) -> dict[tuple[str, str], Object]:
    """Return a program's objects by kind and name, from all controls that its ingress and egress instantiate, at any
    depth."""
    defined = [flag.removeprefix("-D") for flag in build.flags]
    sizes = p4_sources.sizes(*defined)
    texts = {path: "\n".join(p4_sources.lines_for(path, *defined)) for path in p4.files(build, p4.ROOT / build.main)}
    bodies: dict[str, str] = {}
    for text in texts.values():
        bodies |= {
            section.partition("(")[0].split()[1]: section
            for section in re.split(r"^(?=control \w+\()", text, flags=re.MULTILINE)[1:]
        }
    taken: set[str] = set()
    waiting = {"SluiceIngress", "SluiceEgress"}
    while waiting:
        name = waiting.pop()
        taken.add(name)
        waiting |= set(INSTANCE.findall(bodies[name])) & bodies.keys() - taken
    return by_name([each for name in sorted(taken) for each in in_source(bodies[name], sizes)])


def full_names(path: Path) -> set[str]:
    """Return the full names by which a controller finds a compiled program's objects and its digests. Digests have no
    @id."""
    info = text_format.Parse(path.read_text(), p4i.P4Info())
    lists = (
        *(info.tables, info.actions, info.registers, info.counters, info.meters, info.action_profiles),
        info.digests,
    )
    return {each.preamble.name for objects in lists for each in objects}


def arrays(info: p4i.P4Info) -> Iterator[tuple[str, p4i.Register | p4i.Counter | p4i.Meter | p4i.ActionProfile]]:
    """Yield the objects that have a size but no key, each preceded by its kind."""
    yield from (("register", each) for each in info.registers)
    yield from (("counter", each) for each in info.counters)
    yield from (("meter", each) for each in info.meters)
    yield from (("action profile", each) for each in info.action_profiles)


def of_p4info(path: Path) -> dict[tuple[str, str], Object]:
    """Return the objects of a compiled program by kind and name."""
    info = text_format.Parse(path.read_text(), p4i.P4Info())
    objects = [Object("action", each.preamble.id & LOW, last(each.preamble.name)) for each in info.actions]
    for table in info.tables:
        match = p4i.MatchField.MatchType
        key = tuple(f"{field.name}:{match.Name(field.match_type).lower()}" for field in table.match_fields)
        objects.append(Object("table", table.preamble.id & LOW, last(table.preamble.name), table.size, key))
    for kind, each in arrays(info):
        objects.append(Object(kind, each.preamble.id & LOW, last(each.preamble.name), each.size))
    return by_name([each for each in objects if each.name != "NoAction"])


Shapes = dict[str, tuple[str, ...]]
"""Shapes by kind and full name: a table's key fields (name, kind, bits), an action's parameters (name, bits),
a digest's fields (name, bits), and the size of every other object."""


def shapes_of_p4info(path: Path) -> Shapes:
    """Return the shapes of a compiled program that its P4Info describes."""
    info = text_format.Parse(path.read_text(), p4i.P4Info())
    match = p4i.MatchField.MatchType
    shapes: Shapes = {}
    for each in info.tables:
        key = [f"{field.name} {match.Name(field.match_type).lower()} {field.bitwidth}" for field in each.match_fields]
        shapes[f"table {each.preamble.name}"] = (*key, f"size {each.size}")
    for each in info.actions:
        if each.preamble.name != "NoAction":
            shapes[f"action {each.preamble.name}"] = tuple(
                f"{parameter.name} {parameter.bitwidth}" for parameter in each.params
            )
    for kind, each in arrays(info):
        shapes[f"{kind} {each.preamble.name}"] = (f"size {each.size}",)
    for digest in info.digests:
        members = info.type_info.structs[digest.type_spec.struct.name].members
        fields = (f"{member.name} {member.type_spec.bitstring.bit.bitwidth}" for member in members)
        shapes[f"digest {digest.preamble.name}"] = tuple(fields)
    return shapes


BFRT_KINDS = {"Register": "register", "Counter": "counter", "Meter": "meter", "Action": "action profile"}


def shapes_of_bfrt(path: Path) -> Shapes:
    """Return the shapes in a Tofino program's bfrt.json, without fields and tables that BF Runtime adds (named
    `$...`)."""
    shapes: Shapes = {}
    bfrt = json.loads(path.read_text())
    for digest in bfrt.get("learn_filters", ()):
        fields = (f"{field['name']} {field['type']['width']}" for field in digest["fields"])
        shapes[f"digest {digest['name'].removeprefix('pipe.')}"] = tuple(fields)
    for table in bfrt["tables"]:
        name, kind = table["name"].removeprefix("pipe."), table["table_type"]
        if kind.startswith("MatchAction"):
            key = (field for field in table["key"] if not field["name"].startswith("$"))
            fields = (f"{field['name']} {field['match_type'].lower()} {field['type']['width']}" for field in key)
            shapes[f"table {name}"] = (*fields, f"size {table['size']}")
        elif kind in BFRT_KINDS:
            shapes[f"{BFRT_KINDS[kind]} {name}"] = (f"size {table['size']}",)
        for action in table.get("action_specs", ()) if kind.startswith(("MatchAction", "Action")) else ():
            parameters = (parameter for parameter in action["data"] if not parameter["name"].startswith("$"))
            if action["name"] != "NoAction":
                shapes[f"action {action['name']}"] = tuple(
                    f"{parameter['name']} {parameter['type'].get('width', 1)}" for parameter in parameters
                )
    return shapes


def by_name(declared: list[Object]) -> dict[tuple[str, str], Object]:
    """Return the objects by kind and name. Raises ObjectsError if two objects have the same kind and name."""
    objects = {(each.kind, each.name): each for each in declared}
    if len(objects) != len(declared):
        twice = sorted(each.name for each in declared if objects[each.kind, each.name] is not each)
        raise ObjectsError(f"declared twice: {', '.join(twice)}")
    return objects


def last(name: str) -> str:
    """Return the last component of a name."""
    return name.rsplit(".", 1)[-1]
