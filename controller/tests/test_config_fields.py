"""Tests of every field of the configuration; the fields are derived from the configuration's types.

An invalid value is reported with line, field and remedy, even if YAML, Python or pydantic would convert it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import yaml
from pydantic import BaseModel
from sluice.config import types
from sluice.config.load import ConfigError, parse
from sluice.config.model import Config
from sluice.config.yamllines import Path, dotted

DOCUMENT: dict[str, Any] = {
    "switch": {"address": "127.0.0.1:9559"},
    "interfaces": [{"port": 1, "mac": "02:00:00:00:00:01", "address": "10.0.1.1/24"}],
    "routes": [{"to": "10.9.0.0/16", "via": "10.0.1.9"}],
    "services": [
        {
            "name": "web",
            "address": "10.0.0.100",
            "port": 80,
            "admission": {"rate_per_s": 500, "burst": 100},
            "servers": [{"name": "s1", "address": "10.0.1.2", "port": 80}],
            "resources": {
                "send": {"budget": "1MB"},
                "receive": {"budget": "1MB", "size": "64KiB"},
                "idle": {"limit": 100},
            },
        },
        {
            "name": "shop",
            "address": "10.0.0.101",
            "port": 80,
            "content": {
                "protocol": "http",
                "agents": [{"name": "a1", "address": "10.0.1.4", "control": "unix:///run/a1.sock"}],
                "default": {"to": "pool"},
                "rules": [{"name": "r", "to": "pool", "else": {"to": "pool"}}],
                "offer": ["8BITMIME"],
            },
        },
        {
            "name": "pool",
            "address": "10.9.0.1",
            "port": 80,
            "servers": [{"name": "x1", "address": "10.0.1.5", "port": 80}],
        },
    ],
    "news": {"hosts": [{"name": "files", "address": "10.0.1.3", "limit": {"rate_per_s": 1, "burst": 1}}]},
    "metrics": {"address": "127.0.0.1:9464"},
    "page": {"address": "127.0.0.1:8080", "names": ["status.example"]},
}
"""A configuration with an item in every list, but without some keys that have a default."""


@dataclass(frozen=True)
class Leaf:
    """A field of the configuration that contains a value, not a section or a list."""

    path: Path
    kinds: frozenset[object]
    """The types of the field's value; text types are given by their names in the module `types`."""
    optional: bool

    def __str__(self) -> str:
        return dotted(self.path)


TEXT = {
    name: getattr(types, name)
    for name in ("HostPort", "HostName", "MacAddress", "Name", "FilePath", "SocketPath", "Control", "Extension")
}
NAMED = TEXT | {name: getattr(types, name) for name in ("Size", "Refusal", "Match")}


def leaves(hint: Any, path: Path = (), optional: bool = False) -> Iterator[Leaf]:
    """Yield every field below a type; `path` is the path of the type's section, and `optional` allows null."""
    arms = [hint]
    while any(get_origin(arm) in (Annotated, Union, UnionType) and arm not in NAMED.values() for arm in arms):
        arms = [alternative for arm in arms for alternative in _parts(arm)]
    optional = optional or NoneType in arms
    arms = [arm for arm in arms if arm is not NoneType]
    sections = [arm for arm in arms if isinstance(arm, type) and (issubclass(arm, BaseModel) or is_dataclass(arm))]
    if sections:
        (section,) = sections
        hints = get_type_hints(section, include_extras=True)
        for name in list(section.model_fields) if issubclass(section, BaseModel) else [f.name for f in fields(section)]:
            key = section.model_fields[name].alias or name if issubclass(section, BaseModel) else name
            # In DOCUMENT only the second service has content.
            at = ("services", 1) if (path, key) == (("services", 0), "content") else path
            yield from leaves(hints[name], (*at, key))
    elif get_origin(arms[0]) is tuple:
        yield from leaves(get_args(arms[0])[0], (*path, 0))
    else:
        yield Leaf(path, frozenset(_kind(arm) for arm in arms), optional)


def _parts(hint: Any) -> list[Any]:
    if hint in NAMED.values():
        return [hint]
    if get_origin(hint) is Annotated:
        return [get_args(hint)[0]]
    return list(get_args(hint)) if get_origin(hint) in (Union, UnionType) else [hint]


def _kind(hint: Any) -> object:
    for name, kind in NAMED.items():
        if hint == kind:
            return name
    return Literal if get_origin(hint) is Literal else Enum if issubclass(hint, Enum) else hint


LEAVES = tuple(leaves(Config))
NUMBERS = [leaf for leaf in LEAVES if leaf.kinds & {int, float}]
INTEGERS = [leaf for leaf in LEAVES if int in leaf.kinds]
BOOLEANS = [leaf for leaf in LEAVES if bool in leaf.kinds]
WORDS = [leaf for leaf in LEAVES if leaf.kinds & {Literal, Enum}]
ADDRESSES = [leaf for leaf in LEAVES if leaf.kinds & {IPv4Address, IPv4Interface, IPv4Network}]


def of_kind(*kinds: str) -> list[Leaf]:
    """Return the fields whose values are text of one of these kinds."""
    return [leaf for leaf in LEAVES if leaf.kinds & set(kinds)]


def test_the_walk_finds_fields_at_every_depth_and_of_each_kind() -> None:
    leaves = {str(leaf): leaf for leaf in LEAVES}
    for name, kind in {
        "switch.device_id": int,
        "switch.thrift": "HostPort",
        "page.names[0]": "HostName",
        "interfaces[0].mac": "MacAddress",
        "interfaces[0].vlan": int,
        "services[0].servers[0].drain": bool,
        "services[0].balance.production.slow_factor": float,
        "services[0].admission.burst": int,
        "news.hosts[0].limit.rate_per_s": int,
        "news.production.window_s": float,
        "control": "SocketPath",
        "services[1].content.limits.head": "Size",
        "services[1].content.rules[0].else.refuse": "Refusal",
    }.items():
        assert kind in leaves[name].kinds
    checked = [*NUMBERS, *BOOLEANS, *WORDS, *ADDRESSES, *of_kind(*NAMED)]
    assert {leaf for leaf in LEAVES if leaf not in checked} == set(), "give it a kind, of types if it is text"


def complaints(bad: str, of: list[Leaf]) -> dict[str, str]:
    """Write the value `bad` into all fields in `of`; return the error message about each field.

    The line number in each message is also checked.
    """
    document = copy.deepcopy(DOCUMENT)
    for number, leaf in enumerate(of):
        section: Any = document
        for name in leaf.path[:-1]:
            section = section.setdefault(name, {}) if isinstance(section, dict) else section[name]
        section[leaf.path[-1]] = f"<{number}>"
    text = yaml.safe_dump(document, default_flow_style=False, sort_keys=False, allow_unicode=True)
    lines = {
        str(of[int(match[1])]): number
        for number, line in enumerate(text.splitlines(), 1)
        if (match := re.search(r"<(\d+)>", line))
    }
    try:
        parse(re.sub(r"<\d+>", lambda _: bad, text))
    except ConfigError as error:
        said: dict[str, str] = {}
        for line in str(error).splitlines():
            place = re.match(r"sluice\.yaml:(\d+): ([\w.\[\]]+): ", line)
            assert place, line
            assert lines.get(place[2], int(place[1])) == int(place[1]), line
            said[place[2]] = line
        return said
    return {}


def refused(bad: str, of: list[Leaf], remedy: str) -> None:
    """Assert that the value `bad` is refused in every field in `of`, with a message that matches `remedy`."""
    said = complaints(bad, of)
    assert [str(leaf) for leaf in of if not re.search(remedy, said.get(str(leaf), ""))] == []


NO_NUMBERS = [
    *("yes", "no", "on", "off", "true", "True", "FALSE", '"80"', "'1'", '" 1"', "''", "eighty"),
    *(
        "010",
        "00",
        "0o17",
        "0b1",
        "1_000",
        '"1_000"',
        "22:30",
        "1:30:00",
        "1,5",
        "1 000",
        "10s",
        "5%",
        "1e",
        "0x",
        "--1",
    ),
    *("٣", "۸۰", "８０", "²", "1٣", '"٣"', "2024-01-01", "2024-01-01T10:00:00Z"),
    *("[1]", "{a: 1}"),
]
DIGITS = "; (write digits 0 to 9|write keep, strip, or an id from 1 to 4094 without quotes)"


@pytest.mark.parametrize("bad", NO_NUMBERS)
def test_no_number(bad: str) -> None:
    refused(bad, NUMBERS, DIGITS)


@pytest.mark.parametrize("bad", ["1.0", "1.5", "1.", "1e3", "1E+3", ".5", "1e400", ".inf", ".nan", "1e90"])
def test_no_integer(bad: str) -> None:
    refused(bad, INTEGERS, DIGITS)


@pytest.mark.parametrize("bad", [".inf", "-.inf", ".NaN", "1e400", "-1e400", "9" * 5000])
def test_no_finite_number(bad: str) -> None:
    refused(
        bad, [leaf for leaf in NUMBERS if float in leaf.kinds], r"must be a finite number \(got .*; write it in digits"
    )


@pytest.mark.parametrize(("integer", "other"), [("9" * 90, "1e90"), ("-" + "9" * 90, "-1e90"), ("-1", "-0.1")])
def test_every_number_has_two_bounds(integer: str, other: str) -> None:
    bound = "greater" if integer[0] == "-" else "less"
    for bad, of in ((integer, INTEGERS), (other, [leaf for leaf in NUMBERS if float in leaf.kinds])):
        refused(bad, of, rf"(must be {bound} than .* \(got {bad[0]}.*\)$|write keep, strip, or an id from 1 to 4094)")


@pytest.mark.parametrize(
    "bad",
    [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "Yes",
        "NO",
        "On",
        "OFF",
        "tRUE",
        "t",
        "1",
        "0",
        "1.0",
        '"true"',
        "'no'",
        "[true]",
    ],
)
def test_no_boolean(bad: str) -> None:
    refused(bad, BOOLEANS, "; write true or false without quotes")


@pytest.mark.parametrize("good", ["true", "True", "TRUE", "false", "False"])
def test_a_boolean_in_every_spelling_that_all_of_yaml_has(good: str) -> None:
    said = complaints(good, [leaf for leaf in BOOLEANS if leaf.path[-1] != "drain"])
    assert said == {}


@pytest.mark.parametrize("bad", ["true", "0", "1.5", "٣", "[a]", "Ｆixed", "Fixed"])
def test_no_choice(bad: str) -> None:
    refused(bad, WORDS, "must be '|; write (keep, strip, or an id|tcp)")


@pytest.mark.parametrize(
    "bad",
    [
        *(
            "true",
            "1",
            "167772417",
            "0x0a000001",
            "10.0",
            "[10, 0, 0, 1]",
            "{a: b}",
            "example",
            "''",
            "::1",
            '"10.0.0.1 "',
        ),
        *(
            "10.0.0.256",
            "010.0.0.1",
            "10.0.1",
            "1٠.0.0.1",
            "10.0.0.٣",
            "１０.0.0.1",
            "10.0.0.1/٨",
            "10.0.0.1/33",
            "10.0.0.0/08",
        ),
    ],
)
def test_no_address(bad: str) -> None:
    refused(bad, ADDRESSES, "; write (four numbers|them as|its first address|it as|it too)")


@pytest.mark.parametrize("bad", ["true", "80", "1.5", "0x10", "1e3", ".inf"])
def test_no_text(bad: str) -> None:
    refused(bad, of_kind(*TEXT), r"must be a valid string \(got .*\); put it in quotes")


@pytest.mark.parametrize("bad", ["[a]", "{a: b}"])
def test_a_list_or_mapping_is_no_text(bad: str) -> None:
    refused(bad, of_kind(*TEXT), "must be a valid string")


def test_nothing_is_a_value_of_optional_fields_only() -> None:
    for nothing in ("", "~", "null", "NULL"):
        said = complaints(nothing, list(LEAVES))
        assert {leaf for leaf in LEAVES if str(leaf) in said} == {leaf for leaf in LEAVES if not leaf.optional}
        assert all("; write " in message or "must be '" in message for message in said.values())


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        *(("Name", bad) for bad in ('"a b"', "a/b", '"a\\nb"', "''", '"a\\0"', "22:30")),
        *(
            ("MacAddress", bad)
            for bad in ("02:00:00:00:00", "٠2:00:00:00:00:01", "0２:00:00:00:00:01", "g2:00:00:00:00:01")
        ),
        ("FilePath", '"a\\0b"'),
        ("SocketPath", '"a\\0b"'),
        *(("Extension", bad) for bad in ("starttls", '"A/B"', "''", "22:30")),
        *(("Control", bad) for bad in ("unix:a", "localhost", '"unix:///a\\0b"', "unix://run")),
        *(("Size", bad) for bad in ("16K", "0", "1.5", "true", "[1]", '"80"', "9" * 20)),
        *(("Refusal", bad) for bad in ("false", "99", "600", "no", '"403"', "[403]")),
        *(("Match", bad) for bad in ("a", "1", "true", "[]", "{}", "[a]", "[{}]")),
    ],
)
def test_text_of_another_form(kind: str, bad: str) -> None:
    refused(bad, of_kind(kind), r"(\)|no match|not a (size|refusal)); (write|leave it out)")


def with_value(path: Path, written: str) -> Config:
    """Parse DOCUMENT with the value at a path replaced by the text `written`."""
    document = copy.deepcopy(DOCUMENT)
    section: Any = document
    for name in path[:-1]:
        section = section[name]
    section[path[-1]] = "<0>"
    return parse(yaml.safe_dump(document, sort_keys=False).replace("<0>", written))


@pytest.mark.parametrize("name", ["no", "NO", "off", "010", "1_000", "2024-01-01", "0o17", "１", "é"])
def test_a_name_is_what_is_written(name: str) -> None:
    assert with_value(("services", 0, "name"), name).services[0].name == name


def test_a_mac_address_of_digits_only_is_no_number_to_the_base_of_60() -> None:
    assert with_value(("interfaces", 0, "mac"), "52:54:00:12:34:56").interfaces[0].mac == "52:54:00:12:34:56"


@pytest.mark.parametrize(("written", "port"), [("80", 80), ("+80", 80), ("0x50", 80), ("65535", 65535)])
def test_a_port(written: str, port: int) -> None:
    assert with_value(("services", 0, "port"), written).services[0].port == port


@pytest.mark.parametrize(("written", "seconds"), [("2", 2), ("2.5", 2.5), ("2.", 2), ("25e-1", 2.5), ("0.1E+2", 10)])
def test_seconds(written: str, seconds: float) -> None:
    config = with_value(("neighbours",), f"{{refresh_s: {written}}}")
    assert config.neighbours.refresh_s == seconds


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("https://127.0.0.1:9559", "a URL is not supported, and neither is TLS"),
        ("http://localhost:9559/", "a URL is not supported, and neither is TLS"),
        ("dns:///switch:9559", "a URL is not supported, and neither is TLS"),
        ("unix:/run/switch.sock", "a Unix socket is not supported"),
        ("unix:///run/switch.sock", "a Unix socket is not supported"),
        ("ipv4:127.0.0.1:9559", "has no valid host"),
        ("localhost", "has no port"),
        ("127.0.0.1", "has no port"),
        ('"[::1]"', "has no port"),
        ("'127.0.0.1:'", "has no valid port"),
        ("127.0.0.1:0", "has no valid port"),
        ("127.0.0.1:65536", "has no valid port"),
        ("127.0.0.1:-1", "has no valid port"),
        ("127.0.0.1:+80", "has no valid port"),
        ("127.0.0.1:080", "has no valid port"),
        ("127.0.0.1:8_0", "has no valid port"),
        ("127.0.0.1:٩٥٥٩", "has no valid port"),
        ("127.0.0.1:²", "has no valid port"),
        ("127.0.0.1:http", "has no valid port"),
        ("127.0.0.1:9559/path", "has no valid port"),
        ('" 127.0.0.1:9559"', "has no valid host"),
        ('"127.0.0.1:9559 "', "has no valid port"),
        ('"127.0.0.1: 9559"', "has no valid port"),
        ('"127.0.0.1:9559\\n"', "has no valid port"),
        (":9559", "has no valid host"),
        ("'::1:9559'", "has no valid host"),
        ("'fe80::1:9559'", "has no valid host"),
        ("'::1'", "has no valid host"),
        ('"[::g]:9559"', "has no valid host"),
        ('"[fe80::1%eth0]:9559"', "has no valid host"),
        ('"[127.0.0.1]:9559"', "has no valid host"),
        ('"[::1:9559"', "has no valid host"),
        ("127.0.0.1:80:9559", "has no valid host"),
        ("127.1:9559", "has no valid host"),
        ("127.0.0.300:9559", "has no valid host"),
        ("127.0.0.01:9559", "has no valid host"),
        ("0x7f000001:9559", "has no valid host"),
        ("2130706433:9559", "has no valid host"),
        ("127.0.0.١:9559", "has no valid host"),
        ("１２７.0.0.1:9559", "has no valid host"),
        ("user@host:9559", "has no valid host"),
        ("-host:9559", "has no valid host"),
        ("a..b:9559", "has no valid host"),
        (f"{'a' * 64}:9559", "has no valid host"),
        ("'*:9559'", "has no valid host"),
        ("''", "has no port"),
    ],
)
def test_no_place_to_connect_to(bad: str, says: str) -> None:
    refused(bad, of_kind("HostPort"), rf"{says} \(got .*\); write ")


@pytest.mark.parametrize(
    "good",
    [
        "127.0.0.1:1",
        "localhost:65535",
        "switch-1.lab.example.:9559",
        "p4_switch:9559",
        '"[::1]:9559"',
        '"[::]:1"',
    ],
)
def test_a_place_to_connect_to(good: str) -> None:
    for place in of_kind("HostPort"):  # one field at a time, because two programs cannot listen on the same port
        assert complaints(good, [place]) == {}


@pytest.mark.parametrize(
    "bad",
    ["''", "https://status.example", "status.example/", "status.example:0", "'*.example'", "статус.example", "a b"],
)
def test_no_name_of_a_host(bad: str) -> None:
    refused(bad, of_kind("HostName"), r"not the name of a host \(got .*\); write one such as status.example, ")


@pytest.mark.parametrize(
    "good", ["status.example", "status.example:8443", "xn--80a1acny.example.", "10.0.1.1", "'[::1]'"]
)
def test_a_name_of_a_host(good: str) -> None:
    assert complaints(good, of_kind("HostName")) == {}
