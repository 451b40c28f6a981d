"""Executes the commands of simple_switch_CLI that packet tests use, over P4Runtime.

The commands are `table_add`, `table_set_default`, and those of `tools.stf.statements.COMMANDS`. Values are printed in
BMv2's format.
"""

from __future__ import annotations

import re
import threading
from cmd import Cmd
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TextIO

from finsy.proto import p4i

from tools.stf.control import Control
from tools.stf.entries import find
from tools.stf.statements import COMMANDS, Add, Call, Command, SetDefault, StfError
from topo.testbed.p4runtime import Refused

_LAST_PRIORITY = (1 << 31) - 2
"""The number that is added to a negated BMv2 priority. In BMv2 small numbers have precedence; in STF and P4Runtime
large numbers of up to 31 bits have precedence."""
_ETHERNET = re.compile(r"[0-9a-f]{1,2}(:[0-9a-f]{1,2}){5}", re.IGNORECASE)
_SEPARATOR = re.compile(r"(&&&|->|/)")
_PRIORITISED = {p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL}


class Session(Cmd):
    """A session of simple_switch_CLI. The session answers `Error: ...` to a line that it cannot execute.

    All sessions of a switch share its control plane, and execute one command at a time.
    """

    prompt = "RuntimeCmd: "
    intro = "Control utility for runtime P4 table manipulation"
    use_rawinput = False
    _one_command = threading.Lock()

    def __init__(self, control: Control, p4info: p4i.P4Info, commands: TextIO, replies: TextIO) -> None:
        super().__init__(stdin=commands, stdout=replies)
        self._control, self._p4info = control, p4info

    def onecmd(self, line: str) -> bool:
        try:
            with self._one_command:
                return super().onecmd(line)
        except (StfError, Refused, ValueError, OverflowError) as error:
            self._say(f"Error: {error}")
            return False

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def emptyline(self) -> bool:
        return False

    def do_EOF(self, _line: str) -> bool:
        """End the session."""
        self._say("")
        return True

    def do_table_add(self, line: str) -> None:
        """table_add TABLE ACTION MATCH... => ARGUMENT... [PRIORITY]"""
        head, arrow, tail = line.partition("=>")
        (name, action, *keys), arguments = _words(head, 2), _words(tail, 0)
        table = self._table(name)
        fields = table.match_fields
        if not arrow or len(keys) != len(fields):
            raise StfError(f"table {table.preamble.name} takes {len(fields)} fields of a key, and => behind them")
        priority = None
        if any(field.match_type in _PRIORITISED for field in fields):
            if not arguments:
                raise StfError(f"entries of table {table.preamble.name} need a priority")
            priority = _LAST_PRIORITY - int(arguments.pop())
        given = zip((field.name for field in fields), keys, strict=True)
        call = self._call(table, action, arguments)
        self._control.carry_out(Add(0, table.preamble.name, priority, tuple(given), call))

    def do_table_set_default(self, line: str) -> None:
        """table_set_default TABLE ACTION ARGUMENT..."""
        name, action, *arguments = _words(line, 2)
        table = self._table(name)
        self._control.carry_out(SetDefault(0, table.preamble.name, self._call(table, action, arguments)))

    def default(self, line: str) -> None:
        name, *words = line.split()
        if name not in COMMANDS:
            super().default(line)
            return
        reply = self._control.carry_out(Command(0, name, tuple(words)))
        if reply:
            self._say(reply)

    def _table(self, name: str) -> p4i.Table:
        return find("table", name, self._p4info.tables, lambda table: table.preamble.name)

    def _call(self, table: p4i.Table, name: str, arguments: Sequence[str]) -> Call:
        ids = {reference.id for reference in table.action_refs}
        actions = (action for action in self._p4info.actions if action.preamble.id in ids)
        action = find(f"action of {table.preamble.name}", name, actions, lambda action: action.preamble.name)
        if len(arguments) != len(action.params):
            raise StfError(f"action {action.preamble.name} takes {len(action.params)} arguments")
        named = zip((param.name for param in action.params), arguments, strict=True)
        return Call(action.preamble.name, dict(named))


def _words(text: str, least: int) -> list[str]:
    """Return the words of a line, with addresses converted to numbers. Raises StfError for fewer than `least` words."""
    words = text.split()
    if len(words) < least:
        raise StfError(f"{least} words or more are expected, not {text.strip()!r}")
    return ["".join(map(_plain, _SEPARATOR.split(word))) for word in words]


def _plain(text: str) -> str:
    """Return an Ethernet, IPv4 or IPv6 address as a number, and any other text unchanged."""
    if _ETHERNET.fullmatch(text):
        return hex(int("".join(f"{int(octet, 16):02x}" for octet in text.split(":")), 16))
    try:
        return hex(int(ip_address(text)))
    except ValueError:
        return text
