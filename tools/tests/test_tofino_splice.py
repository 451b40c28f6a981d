"""Tests which translation of a content connection Tofino's program selects. The program's constant tables are parsed
from the sources in p4src/tna and p4src/tna2.

`Slot` models the stateful units in Python, since no software target executes them.
"""

import re
from dataclasses import dataclass, field

import pytest

from tools.p4_sources import P4SRC, enums

FILES = {
    "turn_1": ("tna2/externs/splice_turns.p4", "SpliceTurn1", "operation"),
    "turn_2": ("tna2/externs/splice_turns.p4", "SpliceTurn2", "operation"),
    "value_1": ("tna2/splice_values.p4", "SpliceValue1", "operation"),
    "value_2": ("tna2/splice_values.p4", "SpliceValue2", "operation"),
    "whose": ("tna2/splice.p4", "Splice", "whose"),
    "unheard": ("tna2/splice.p4", "Unheard", "unheard"),
    "confirm": ("tna2/splice.p4", "Confirm", "confirm"),
    "renew": ("tna2/renew_content.p4", "RenewContent", "renew"),
}
SPLICED = 0x8000
ENUMS = [enums(P4SRC / f"common/{source}.p4") for source in ("constants", "metadata", "ids")]
CONSTANTS = {"GRANTED": 2, "GRANTED_BEFORE": 4, "SAME": 2, "REFUSED": 3, "ONLY_FIRST": 2, "ONLY_SECOND": 4, "BOTH": 8}
LOOKS = {"LOOK_ANY": 0, "LOOK_LIVE": 1, "LOOK_CLAIM": 2}
MEMBERS = {f"{enum}.{each.name}": each.value for enums in ENUMS for enum, members in enums.items() for each in members}
NAMED = MEMBERS | CONSTANTS | LOOKS
AGENT, OTHER_AGENT, SERVER, OTHER_SERVER = 7, 9, 100, 101
DELTA = 0xFFFFFF00


def number(word: str) -> int:
    """Return a word of a table entry as a number."""
    return NAMED[word] if word in NAMED else int(word, 0)


@dataclass(frozen=True)
class Table:
    """A table of constant entries: the names of its key fields, for each entry its (value, mask) pairs and its action,
    and the default action."""

    fields: list[str]
    entries: list[tuple[list[tuple[int, int]], str]]
    default: str

    def apply(self, fields: dict[str, int]) -> str:
        """Return the action of the first matching entry, or the default action if no entry matches."""
        values = [fields[name] for name in self.fields]
        for matches, action in self.entries:
            if all(value & mask == pattern for value, (pattern, mask) in zip(values, matches, strict=True)):
                return action
        return self.default


def table(file: str, control: str, name: str) -> Table:
    """Parse a table of constant entries from the sources."""
    text = re.sub(r" *//.*", "", (P4SRC / file).read_text())
    body = text.partition(f"control {control}(")[2].partition(f"table {name} {{")[2]
    body = body.partition("\n    }\n")[0]
    entries: list[tuple[list[tuple[int, int]], str]] = []
    for key, action in re.findall(r"^ +\((.+?)\) +: (.+?);$", body, re.MULTILINE):
        matches: list[tuple[int, int]] = []
        for word in key.split(", "):
            value, _, mask = word.partition(" &&& ")
            matches.append((0, 0) if value == "_" else (number(value), int(mask or "0xffffffff", 0)))
        entries.append((matches, action.removesuffix("()")))
    default = re.search(r"default_action = (\w+)", body)
    assert default
    return Table(re.findall(r'@name\("(\w+)"\)', body), entries, default[1])


TABLES = {name: table(*where) for name, where in FILES.items()}


@dataclass
class Packet:
    """A packet's properties and the outcome of its processing."""

    path: str
    content: str
    event: str = "ack"
    agent: int = 0
    shift: int = 0
    delta: int = 0
    pinned: int = 1
    passed: str = "first"
    preferred: int = 0
    to: int = 0
    """The number of the server or agent that receives the packet (0: none)."""
    said: list[str] = field(default_factory=list[str])
    """Events during the packet's processing: drops, the status of an order, and requests for another pass."""
    translated: int | None = None
    """The delta by which the sequence number was translated; None: it was not translated."""


@dataclass
class Slot:
    """A slot of the connection table: the register cells that Tofino has for the slot."""

    way: int
    live: bool = False
    server: int = 0
    state: str = "closed"
    turn: int = 0
    value: int = 0

    def take(self, packet: Packet) -> Packet:
        """Process a packet in a single pass; return it with its outcome."""
        syn, order = packet.event == "syn", packet.path == "order"
        claims = syn and not self.live and packet.passed == "claim" and packet.content == "agent"
        lookup = "LOOK_CLAIM" if claims else "LOOK_LIVE" if syn else "LOOK_ANY"
        before, has_slot = self.state, int(self.live or claims)
        if claims:
            self.live, self.server, self.state = True, SERVER, "pending"
        packet.to = self.server if has_slot else 0
        fields = {
            **{"path": NAMED[f"Path.{packet.path}"], "content": NAMED[f"Content.{packet.content}"]},
            **{"event": NAMED[f"Event.{packet.event}"], "pass": NAMED[f"Pass.{packet.passed}"]},
            **{
                "look": NAMED[lookup],
                "result": NAMED["ONLY_SECOND" if claims else "ONLY_FIRST" if has_slot else "BOTH"],
            },
            **{
                "held": has_slot,
                "claimed": int(claims),
                "pinned": int(has_slot and packet.pinned),
                "granted": 0,
                "drop": 0,
            },
            **{"turn": SPLICED | (packet.shift & 31) << 10 | packet.agent if order else 0, "draining": 0},
            **{"refused": 0, "choice": SERVER, "state": NAMED[f"PinState.{before}"], "value": 0},
        }
        if has_slot or self.way == 2:  # way 1 is accessed only if it contains the connection
            self.touch_turn(TABLES[f"turn_{self.way}"].apply(fields), packet.agent, fields)
        fields["difference"] = fields["turn"] ^ packet.agent
        match TABLES["whose"].apply(fields):
            case "to_agent":
                packet.to = fields["turn"]
            case "to_other_agent":
                packet.to = packet.preferred
            case _:
                pass
        if has_slot:
            self.touch_value(TABLES[f"value_{self.way}"].apply(fields), packet, fields)
        packet.said += [action for name in ("unheard", "renew") if (action := TABLES[name].apply(fields)) != "neither"]
        if order:
            packet.said.append(TABLES["confirm"].apply(fields))
        return packet

    def touch_turn(self, action: str, agent: int, fields: dict[str, int]) -> None:
        """Execute the stateful unit of the registers splice_turn_*.

        A value below `SPLICED` is the number of the agent that translates the connection's segments. With a value from
        `SPLICED` on, the switch translates them; the value then also contains the shift of the windows, and the number
        of the agent that ordered the translation.
        """
        if action == "do_read":
            fields["turn"] = self.turn
        elif action == "do_begin":
            self.turn = agent
        elif action == "do_ask":
            fields["granted"] = 2 if self.turn < SPLICED else 1
            self.turn = agent if self.turn < SPLICED else self.turn
        elif action == "do_order":
            fields["granted"] = 1 << ((self.turn == agent) + 2 * (self.turn == fields["turn"]))
            self.turn = fields["turn"] if self.turn == agent else self.turn

    def touch_value(self, action: str, packet: Packet, fields: dict[str, int]) -> None:
        """Execute the stateful unit of the registers splice_value_*, which contain a connection's delta."""
        if action == "do_read":
            packet.translated = self.value
        elif action == "do_detour":
            packet.to = fields["turn"]
        elif action == "do_set_delta":
            self.value = packet.delta
        elif action == "do_compare":
            fields["value"] = 2 if self.value == packet.delta else 1


def agents(event: str, agent: int = AGENT, passed: str = "first") -> Packet:
    return Packet("to_service", "agent", event, agent, passed=passed)


def clients(event: str = "payload", passed: str = "first", preferred: int = 0) -> Packet:
    return Packet("to_service", "client", event, passed=passed, preferred=preferred)


def servers(event: str = "payload", pinned: int = 1) -> Packet:
    return Packet("from_server", "server", event, pinned=pinned)


def order(agent: int = AGENT, delta: int = DELTA, shift: int = 3) -> Packet:
    return Packet("order", "agent", "none", agent, shift, delta)


@pytest.fixture(params=[1, 2], ids=["way 1", "way 2"])
def slot(request: pytest.FixtureRequest) -> Slot:
    return Slot(request.param)


@pytest.fixture
def opened(slot: Slot) -> Slot:
    """Return a slot after both passes of the agent's SYN through the pipeline; its turn register names the agent."""
    assert slot.take(agents("syn")).said == []
    assert slot.take(agents("syn", passed="claim")).said == []
    return slot


@pytest.fixture
def spliced(opened: Slot) -> Slot:
    assert opened.take(order()).said == ["answer(SpliceStatus.applied)"]
    return opened


def test_without_a_slot_only_an_agents_syn_is_accepted(slot: Slot) -> None:
    assert slot.take(agents("payload")).said == ["drop_as(DropReason.no_slot)"]
    assert slot.take(servers()).said == ["drop_as(DropReason.unbound)"]
    assert slot.take(order()).said == ["answer(SpliceStatus.no_connection)"]
    assert slot.take(clients("syn")).said == []
    assert slot.take(clients("syn", passed="claim")).said == []
    assert (slot.live, slot.turn, slot.value) == (False, 0, 0)


def test_in_an_agents_turn_both_sides_go_to_it_and_its_own_to_the_server(opened: Slot) -> None:
    assert opened.take(clients()).to == AGENT
    assert opened.take(clients("syn")).to == AGENT
    assert opened.take(servers()).to == AGENT
    sent = opened.take(agents("payload"))
    assert (sent.to, sent.said, sent.translated) == (SERVER, [], None)
    assert opened.take(servers(pinned=0)).said == ["drop_as(DropReason.unbound)"]


def test_a_client_whose_agent_is_gone_goes_to_another(opened: Slot) -> None:
    assert opened.take(clients(passed="candidate", preferred=OTHER_AGENT)).to == OTHER_AGENT


def test_another_agents_syn_takes_a_connection_over_and_its_other_packets_do_not(opened: Slot) -> None:
    assert opened.take(agents("payload", OTHER_AGENT)).said == ["drop_as(DropReason.spliced)"]
    assert opened.take(agents("syn", OTHER_AGENT)).said == []
    assert opened.take(clients()).to == OTHER_AGENT
    assert opened.take(servers()).to == OTHER_AGENT
    assert opened.take(agents("ack")).said == ["drop_as(DropReason.spliced)"]
    assert opened.take(order()).said == ["answer(SpliceStatus.not_yours)"]


def test_a_spliced_connection_is_translated_and_passes_the_agent_by(spliced: Slot) -> None:
    for packet in (clients(), clients("syn"), clients("fin"), clients("none")):
        taken = spliced.take(packet)
        assert (taken.to, taken.translated, taken.said) == (SERVER, DELTA, [])
    taken = spliced.take(servers())
    assert (taken.to, taken.translated) == (SERVER, DELTA)
    assert spliced.turn == SPLICED | 3 << 10 | AGENT


def test_its_agent_hands_the_request_on_and_no_other(spliced: Slot) -> None:
    assert spliced.take(agents("payload")).said == []
    assert spliced.take(agents("reset")).said == []
    assert spliced.take(agents("payload", OTHER_AGENT)).said == ["drop_as(DropReason.spliced)"]


def test_no_agents_syn_and_no_other_order_undoes_a_splice(spliced: Slot) -> None:
    for agent in (AGENT, OTHER_AGENT):
        for state in ("pending", "established", "closed"):
            spliced.state = state
            assert spliced.take(agents("syn", agent)).said == ["drop_as(DropReason.spliced)"]
    assert spliced.take(order()).said == ["answer(SpliceStatus.applied)"]
    assert spliced.take(order(delta=1)).said == ["answer(SpliceStatus.not_yours)"]
    assert spliced.take(order(shift=-3)).said == ["answer(SpliceStatus.not_yours)"]
    assert spliced.take(order(OTHER_AGENT)).said == ["answer(SpliceStatus.not_yours)"]
    assert (spliced.turn, spliced.value) == (SPLICED | 3 << 10 | AGENT, DELTA)


def test_an_agent_that_has_left_a_server_gets_its_slot_anew(opened: Slot) -> None:
    assert opened.take(agents("syn")).said == [], "a repeated SYN goes where the first went"
    opened.state = "closed"
    assert opened.take(agents("syn")).said == ["again"]
    assert opened.take(agents("syn", passed="renew")).said == []


def test_a_slot_that_was_spliced_begins_in_its_new_agents_turn(spliced: Slot) -> None:
    spliced.live = False
    assert spliced.take(agents("syn", OTHER_AGENT)).said == []
    assert spliced.take(agents("syn", OTHER_AGENT, passed="claim")).said == []
    assert (spliced.turn, spliced.value) == (OTHER_AGENT, DELTA)
    assert spliced.take(clients()).to == OTHER_AGENT
