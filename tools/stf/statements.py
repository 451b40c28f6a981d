"""The statements of an STF file, and their parser; each line contains one statement.

The grammar is that of p4c (its files `tools/stf/stf_parser.py` and `backends/bmv2/bmv2stf.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field


class StfError(Exception):
    """A line cannot be parsed or executed, or packets remain unprocessed; the message is the reason. If it is about a
    line, `parse` and the runner put the line's number before it."""


@dataclass(frozen=True)
class Call:
    """An action with its arguments by name, as written in the test."""

    action: str
    arguments: dict[str, str]


@dataclass(frozen=True)
class Add:
    """A table entry; among matching entries, the one with the largest priority number applies."""

    line: int
    table: str
    priority: int | None
    keys: tuple[tuple[str, str], ...]
    call: Call
    label: str | None = field(default=None, compare=False)
    """The entry's name in later statements (`$label`); it is not written to the switch."""


@dataclass(frozen=True)
class SetDefault:
    """A table's default action."""

    line: int
    table: str
    call: Call


@dataclass(frozen=True)
class Packet:
    """A packet that is sent into a port."""

    line: int
    port: int
    data: bytes


@dataclass(frozen=True)
class Expect:
    """A packet expected from a port. The pattern has hexadecimal digits, `*` for any digit, `$` for the end of the
    packet; None: any packet."""

    line: int
    port: int
    pattern: str | None


@dataclass(frozen=True)
class CheckCounter:
    """A counter's expected value after the preceding packets; `index` is the number of a cell, or an entry's
    `$label`."""

    line: int
    counter: str
    index: str
    unit: str
    relation: str
    number: int


@dataclass(frozen=True)
class Command:
    """A command of simple_switch_CLI, as written in the test."""

    line: int
    name: str
    words: tuple[str, ...]


Statement = Add | SetDefault | Packet | Expect | CheckCounter | Command

COMMANDS = {
    "mirroring_add": 2,
    "mirroring_add_mc": 2,
    "mirroring_delete": 1,
    "mirroring_get": 1,
    "mc_mgrp_create": 1,
    "mc_node_create": 1,
    "mc_node_update": 1,
    "mc_node_associate": 2,
    "counter_read": 2,
    "counter_write": 4,
    "register_read": 2,
    "register_write": 3,
    "register_reset": 1,
    "meter_get_rates": 2,
    "meter_set_rates": 3,
    "meter_array_set_rates": 2,
}
"""Commands of simple_switch_CLI that a test may contain, each with the least number of words required after it."""

_CALL = re.compile(r"(?P<head>.*?)(?P<name>\S+)\s*\((?P<arguments>[^()]*)\)\s*(=\s*(?P<label>\S+)\s*)?$")
_COUNTER = re.compile(
    r"(?P<name>[^\s(]+)\s*\(\s*(?P<index>[^\s)]+)\s*\)"
    r"(\s*(?P<unit>packets|bytes)\s*(?P<relation>==|!=|<=|<|>=|>)\s*(?P<number>\S+))?$",
    re.IGNORECASE,
)


def number(text: str) -> int:
    """Parse a number in one of STF's notations. Raises ValueError."""
    return int(text, 10) if text.isdecimal() else int(text, 0)


def parse(text: str) -> list[Statement]:
    """Parse the statements of a file. Raises StfError, which names the line."""
    statements: list[Statement] = []
    for line, content in enumerate(text.splitlines(), 1):
        words = content.partition("#")[0].split()
        if not words:
            continue
        keyword, rest = words[0].lower(), words[1:]
        try:
            if keyword in _STATEMENTS:
                statements.append(_STATEMENTS[keyword](line, rest))
            elif keyword in COMMANDS:
                statements.append(_command(line, keyword, rest))
            elif keyword not in ("wait", "no_packet"):  # ignored: waits and checks for no packets always occur
                raise ValueError(f"{words[0]!r} is no statement of STF")
        except ValueError as error:
            raise StfError(f"line {line}: {error}: {content.strip()}") from None
    return statements


def _packet(line: int, words: list[str]) -> Packet:
    if not words:
        raise ValueError("a port is missing")
    return Packet(line, number(words[0]), bytes.fromhex("".join(words[1:])))


def _expect(line: int, words: list[str]) -> Expect:
    if not words:
        raise ValueError("a port is missing")
    pattern = "".join(words[1:]).lower()
    if not re.fullmatch(r"[0-9a-f*]*\$?", pattern):
        raise ValueError("a pattern has hexadecimal digits, '*', and '$' at its end")
    return Expect(line, number(words[0]), pattern or None)


def _call(words: list[str]) -> tuple[list[str], Call, str | None]:
    match = _CALL.match(" ".join(words))
    if not match:
        raise ValueError("an action call is missing")
    arguments: dict[str, str] = {}
    for argument in filter(None, (argument.strip() for argument in match["arguments"].split(","))):
        name, colon, value = (text.strip() for text in argument.partition(":"))
        if not colon:
            raise ValueError(f"an argument is NAME:VALUE, not {argument!r}")
        arguments[name] = value
    return match["head"].split(), Call(match["name"], arguments), match["label"]


def _add(line: int, words: list[str]) -> Add:
    head, call, label = _call(words)
    if not head:
        raise ValueError("a table is missing")
    priority: int | None = None
    keys: list[tuple[str, str]] = []
    # Blanks around a colon are removed.
    for word in re.sub(r"\s*:\s*", ":", " ".join(head[1:])).split():
        name, colon, value = word.partition(":")
        if colon:
            keys.append((name, value))
        elif priority is None and not keys:
            priority = number(name)
        else:
            raise ValueError(f"a key is NAME:VALUE, not {word!r}")
    return Add(line, head[0], priority, tuple(keys), call, label)


def _setdefault(line: int, words: list[str]) -> SetDefault:
    head, call, _ = _call(words)
    if len(head) != 1:
        raise ValueError("one table is expected")
    return SetDefault(line, head[0], call)


def _check_counter(line: int, words: list[str]) -> CheckCounter:
    match = _COUNTER.match(" ".join(words))
    if not match:
        raise ValueError("COUNTER(INDEX) [packets|bytes RELATION NUMBER] is expected")
    unit = (match["unit"] or "packets").lower()
    relation, wanted = match["relation"] or "==", number(match["number"] or "0")
    return CheckCounter(line, match["name"], match["index"], unit, relation, wanted)


def _command(line: int, name: str, words: list[str]) -> Command:
    if len(words) < COMMANDS[name]:
        raise ValueError(f"{name} takes {COMMANDS[name]} words or more")
    return Command(line, name, tuple(words))


_STATEMENTS: dict[str, Callable[[int, list[str]], Statement]] = {
    "packet": _packet,
    "expect": _expect,
    "add": _add,
    "setdefault": _setdefault,
    "check_counter": _check_counter,
}
