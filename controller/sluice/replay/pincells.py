"""What stages connections and second_look keep: each connection's server, state and stamp, and how many are open.

In step with p4src/stages/connections.p4 and second_look.p4. Here every connection has a slot of its own: none loses it
to another one, and there is room for all.
"""

from __future__ import annotations

from sluice.config import ConnectionsConfig
from sluice.names import TICK_BASE, TICK_US, PinState, Register

from .memory import Memory

Connection = tuple[int, int, int, int]
"""The client's address and port, the service's address and port."""

_WRAP = 1 << 32
_FINGERPRINT = 1 << 32
"""Any will do: nobody looks for a connection by it."""


class PinCells:
    """The registers, kept up to date by what comes out of the switch to servers and into it from them."""

    def __init__(self, memory: Memory, times: ConnectionsConfig) -> None:
        ticks = memory.units.ticks
        self._idle = ticks(times.idle_s)
        self._pending, self._answered, self._linger = (
            self._idle - ticks(one) for one in (times.pending_s, times.answered_s, times.linger_s)
        )
        self._keys, self._servers, self._states = (
            memory.of(one) for one in (Register.PIN_KEY_1, Register.PIN_SERVER_1, Register.PIN_STATE_1)
        )
        self._open, self._evicted = memory.of(Register.LOAD_FIRST), memory.of(Register.LOAD_EVICTED)
        self._slots: dict[Connection, int] = {}

    def syn(self, now_s: float, connection: Connection, server: int) -> None:
        """A client's SYN: it keeps its live pin, or makes one, as that of an ejected server's connection does."""
        now, slot = _ticks(now_s), self._slots.get(connection)
        if slot is None:
            slot = self._new(connection)
        else:
            before, state = self._servers[slot], self._states[slot]
            live = (now - self._keys[slot]) % _WRAP <= self._idle
            if live and before == server:
                if state == PinState.CLOSING:
                    _add(self._open, server, 1)
                if state != PinState.ANSWERED:
                    self._states[slot] = PinState.PENDING
                return
            if live and state != PinState.CLOSING:
                _add(self._open, before, -1)
            elif state != PinState.CLOSING:
                _add(self._evicted, before, 1)
        self._keys[slot] = _key(now - self._pending)
        self._servers[slot], self._states[slot] = server, PinState.PENDING
        _add(self._open, server, 1)

    def syn_ack(self, now_s: float, connection: Connection, server: int) -> bool:
        """A server's SYN-ACK; whether it counts as the connection's first. One without a pin does."""
        slot = self._touched(connection, _ticks(now_s) - self._answered)
        if slot is None or self._servers[slot] != server:
            return True
        first = self._states[slot] == PinState.PENDING
        if first:
            self._states[slot] = PinState.ANSWERED
        return first

    def ack(self, now_s: float, connection: Connection, server: int, payload: int) -> bool:
        """A client's segment that is no SYN, FIN or RST, with bytes of payload; whether it completes a handshake."""
        slot = self._touched(connection, _ticks(now_s)) if payload else self._slots.get(connection)
        if slot is None or self._servers[slot] != server or self._states[slot] != PinState.ANSWERED:
            return False
        self._states[slot] = PinState.ESTABLISHED
        return True

    def data(self, now_s: float, connection: Connection) -> None:
        """A server's segment with payload."""
        self._touched(connection, _ticks(now_s))

    def end(self, now_s: float, connection: Connection, server: int) -> None:
        """FIN or RST, of either."""
        slot = self._slots.get(connection)
        if slot is None:
            return
        self._keys[slot] = _key(_ticks(now_s) - self._linger)
        if self._servers[slot] == server and self._states[slot] != PinState.CLOSING:
            _add(self._open, server, -1)
            self._states[slot] = PinState.CLOSING

    def _new(self, connection: Connection) -> int:
        slot = self._slots[connection] = len(self._slots)
        if slot == len(self._keys):
            for cells in (self._keys, self._servers, self._states):
                cells.append(0)
        return slot

    def _touched(self, connection: Connection, stamp: int) -> int | None:
        """The connection's slot, with the later of its stamp and this one."""
        slot = self._slots.get(connection)
        if slot is not None and (stamp - self._keys[slot]) % _WRAP < _WRAP // 2:
            self._keys[slot] = _key(stamp)
        return slot


def _ticks(now_s: float) -> int:
    return TICK_BASE + int(now_s * 1e6) // TICK_US


def _key(stamp: int) -> int:
    return _FINGERPRINT | stamp % _WRAP


def _add(cells: list[int], index: int, change: int) -> None:
    cells[index] = (cells[index] + change) % _WRAP
