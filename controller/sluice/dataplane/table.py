"""The connection table: two ways (hash tables) of slots with fingerprint, state, stamp and server; and servers'
loads."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.names import CONNECTION_SLOTS, PinState, Register

from .connection import Place
from .memory import Memory
from .pins import ANSWER, ANSWERED, CLOSED, ESTABLISHED, HANDSHAKES, PENDING, RENEWING, REQUEST, Event, Pin, is_open

LOADS = (Register.LOAD_FIRST, Register.LOAD_OTHER, Register.LOAD_THIRD, Register.LOAD_FOURTH)
STALE = (Register.STALE_FIRST, Register.STALE_OTHER, Register.STALE_THIRD, Register.STALE_FOURTH)
"""Registers with each server's number of connections that have not ended in the switch's view (LOADS), and of those
among them that have ended unseen by the switch (STALE). For a new connection the switch compares up to four servers,
each by its own copy of the two registers, in this order. The queues of idle servers have
another copy of the stale counts."""
REFUSING = (Register.REFUSING_OTHER, Register.REFUSING_THIRD, Register.REFUSING_FOURTH)
"""Registers that state whether a server's last answer to a SYN was an RST. For a new connection the switch compares up
to four servers; each of them except the first has its own copy."""

STAMP_BITS, STATE_BITS = 32, 4
"""Widths of a key's fields, starting at the lowest bit; the bits above them contain the fingerprint."""
STATE_SHIFT, FINGERPRINT_SHIFT = STAMP_BITS, STAMP_BITS + STATE_BITS
WRAP = 1 << STAMP_BITS
_HALF = 1 << 31
_STATES = tuple(PinState)


def later(a: int, b: int) -> bool:
    """Return whether 32-bit time ``a`` is later than ``b``, compared as serial numbers (RFC 1982)."""
    return 0 < (a - b) % WRAP < _HALF


def open_connections(load: int, stale: int) -> int:
    """Return a server's number of open connections: the difference of the cells ``load`` and ``stale``, which both
    wrap. It can be negative for a moment, because the cells do not change at the same time."""
    return (load - stale + _HALF) % WRAP - _HALF


class _Way:
    def __init__(self, memory: Memory, key: Register, server: Register) -> None:
        self.keys, self.servers = memory.of(key), memory.of(server)


class ConnectionTable:
    """The two ways (hash tables) of the table. Times are 32-bit tick counts that start at TICK_BASE."""

    def __init__(self, memory: Memory, lifetimes: Mapping[PinState, int]) -> None:
        """``lifetimes``: for each state, the ticks after which a slot expires."""
        self.lifetimes = lifetimes
        self._ways = (
            _Way(memory, Register.PIN_KEY_1, Register.PIN_SERVER_1),
            _Way(memory, Register.PIN_KEY_2, Register.PIN_SERVER_2),
        )
        self._loads = [memory.of(register) for register in LOADS]
        self._evicted = memory.of(Register.LOAD_EVICTED)

    def syn(self, now: int, place: Place) -> Pin | int:
        """Handle a client's SYN. Returns the connection's live pin (its entry), else the way (1 or 2) with a free slot,
        else 0."""
        vacant = 0
        for number in (2, 1):
            way, slot = self._ways[number - 1], place[number - 1]
            key = way.keys[slot]
            match, state = key >> FINGERPRINT_SHIFT == place.fingerprint, _state(key)
            if later(now - self.lifetimes[state], key) or (match and state >= CLOSED):
                vacant = number
            elif match:
                return self._step(way, slot, REQUEST[Event.SYN].get(state, state))
        return vacant

    def claim(self, now: int, place: Place, number: int, server: int) -> int | None:
        """Occupy the connection's slot in way ``number``, which ``syn`` returned. An open connection that thereby loses
        the slot is counted as evicted.

        Returns the slot's former server if the slot belonged to the same connection, in an incomplete handshake; else
        None.
        """
        way, slot = self._ways[number - 1], place[number - 1]
        key, evicted = way.keys[slot], way.servers[slot]
        is_same = evicted and key >> FINGERPRINT_SHIFT == place.fingerprint and _state(key) in HANDSHAKES
        if evicted and is_open(_state(way.keys[slot])):
            self._evicted[evicted] = (self._evicted[evicted] + 1) % WRAP
        way.keys[slot], way.servers[slot] = _key(place, PENDING, now), server
        self._add(server, 1)
        return evicted if is_same else None

    def request(self, now: int, place: Place, event: Event) -> Pin | None:
        """Handle a client's packet other than a SYN. Returns the connection's pin (its entry); None if it has none."""
        position = self._find(place)
        if position is None:
            return None
        state = _state(position[0].keys[position[1]])
        after = REQUEST[event].get(state, state) if event in REQUEST else state
        return self._step(*position, after, now if state in RENEWING.get(event, ()) else None)

    def answer(self, now: int, place: Place, event: Event, server: int) -> Pin | None:
        """Handle a server's packet. It changes nothing unless the connection's entry names the server. Returns the
        entry, if any."""
        if event is Event.SYN or (position := self._find(place)) is None:
            return None
        way, slot = position
        state = _state(way.keys[slot])
        if way.servers[slot] != server or event not in ANSWER:
            return Pin(way.servers[slot], state, state)
        return self._step(way, slot, ANSWER[event].get(state, state), now)

    def move(self, now: int, place: Place, server: int) -> Pin | None:
        """Change the server of the connection's entry to the server that has answered the client's new SYN. Returns the
        new entry; None if the connection has no entry."""
        position = self._find(place)
        if position is None:
            return None
        way, slot = position
        if is_open(_state(way.keys[slot])):
            self._add(way.servers[slot], -1)
        way.keys[slot], way.servers[slot] = _key(place, ESTABLISHED, now), server
        self._add(server, 1)
        return Pin(server, ANSWERED, ESTABLISHED)

    def number(self, place: Place) -> int | None:
        """Return the number of the connection's slot, where the slots of way 2 follow those of way 1; None if the
        connection has no slot."""
        if (position := self._find(place)) is None:
            return None
        way, slot = position
        return slot if way is self._ways[0] else CONNECTION_SLOTS + slot

    def _find(self, place: Place) -> tuple[_Way, int] | None:
        slot_1, slot_2, fingerprint = place
        way_1, way_2 = self._ways
        if way_1.keys[slot_1] >> FINGERPRINT_SHIFT == fingerprint:
            return way_1, slot_1
        if way_2.keys[slot_2] >> FINGERPRINT_SHIFT == fingerprint:
            return way_2, slot_2
        return None

    def _step(self, way: _Way, slot: int, after: PinState, stamp: int | None = None) -> Pin:
        """Set a slot's state, and its stamp if one is given; adjust the server's load. Returns the transition."""
        key, server = way.keys[slot], way.servers[slot]
        before = _state(key)
        if after is before and stamp is None:
            return Pin(server, before, after)
        if is_open(after) != is_open(before):
            self._add(server, 1 if is_open(after) else -1)
        new_stamp = key % WRAP if stamp is None else stamp % WRAP
        way.keys[slot] = key >> FINGERPRINT_SHIFT << FINGERPRINT_SHIFT | after << STATE_SHIFT | new_stamp
        return Pin(server, before, after)

    def _add(self, server: int, change: int) -> None:
        for cells in self._loads:
            cells[server] = (cells[server] + change) % WRAP


def _state(key: int) -> PinState:
    return _STATES[key >> STATE_SHIFT & 0xF]


def _key(place: Place, state: PinState, now: int) -> int:
    return place.fingerprint << FINGERPRINT_SHIFT | state << STATE_SHIFT | now % WRAP
