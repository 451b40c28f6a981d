"""What stages connections and second_look keep: each connection's server, state and stamp, and how many are open.

States and times are those of docs/reference/pipeline.md, "The life of a pin". Here every connection has its own slot:
none loses it to another one, and there is room for all.
"""

from __future__ import annotations

from sluice.config import ConnectionsConfig
from sluice.names import TICK_BASE, TICK_US, PinState, Register
from sluice.switch.connections import lifetime_s

from .memory import Memory

Connection = tuple[int, int, int, int]
"""The client's address and port, the service's address and port."""

_WRAP = 1 << 32
_FINGERPRINT = 1 << 36
"""Any will do: nobody looks for a connection by it."""

_UNANSWERED = (PinState.PENDING, PinState.REOPENING, PinState.CLIENT_RESET, PinState.RESET)
"""What the server's next packet, unless it ends the connection, says that there is a connection behind."""


class PinCells:
    """The registers, kept up to date by what comes out of the switch to servers and into it from them."""

    def __init__(self, memory: Memory, times: ConnectionsConfig) -> None:
        self._lifetimes = {state: memory.units.ticks(lifetime_s(state, times, times.idle_s)) for state in PinState}
        self._keys, self._servers = memory.of(Register.PIN_KEY_1), memory.of(Register.PIN_SERVER_1)
        self._open, self._evicted = memory.of(Register.LOAD_FIRST), memory.of(Register.LOAD_EVICTED)
        self._slots: dict[Connection, int] = {}
        self._candidates: dict[Connection, bool] = {}
        """Connections with a SYN at another server than their pin's, and whether that one has answered."""

    def syn(self, now_s: float, connection: Connection, server: int) -> None:
        """A client's SYN: it keeps its live pin, or makes one.

        It goes to another server than its live pin's where that one takes no new connections: the ACK moves the pin.
        """
        now, slot = _ticks(now_s), self._slots.get(connection)
        if slot is None:
            slot = self._new(connection)
        else:
            state = self._state(slot)
            live = (now - self._keys[slot]) % _WRAP <= self._lifetimes[state] and state < PinState.CLOSED
            if live:
                if state > PinState.ANSWERED:
                    self._step(slot, PinState.REOPENING)
                if self._servers[slot] != server:
                    self._candidates.setdefault(connection, False)
                return
            if _is_open(state):
                _add(self._evicted, self._servers[slot], 1)
        self._keys[slot], self._servers[slot] = _key(PinState.PENDING, now), server
        _add(self._open, server, 1)

    def syn_ack(self, now_s: float, connection: Connection, server: int) -> bool:
        """A server's SYN-ACK; whether it counts as the connection's first. One without a pin does."""
        slot = self._own(connection, server)
        if slot is None:
            again = self._candidates.get(connection, False)
            if connection in self._candidates:
                self._candidates[connection] = True
            return not again
        first = self._state(slot) in _UNANSWERED
        self._step(slot, PinState.ANSWERED if first else self._state(slot), _ticks(now_s))
        return first

    def ack(self, now_s: float, connection: Connection, server: int) -> bool:
        """A client's segment that is no SYN, FIN or RST; whether it completes a handshake. One to another server than
        the pin's has moved the pin."""
        slot = self._slots.get(connection)
        if slot is None:
            return False
        if self._servers[slot] != server:
            self._candidates.pop(connection, None)
            if _is_open(self._state(slot)):
                _add(self._open, self._servers[slot], -1)
            self._keys[slot], self._servers[slot] = _key(PinState.ESTABLISHED, _ticks(now_s)), server
            _add(self._open, server, 1)
            return True
        if self._state(slot) != PinState.ANSWERED:
            return False
        self._step(slot, PinState.ESTABLISHED, _ticks(now_s))
        return True

    def answer(self, now_s: float, connection: Connection, server: int) -> None:
        """A server's segment that is no SYN-ACK, FIN or RST."""
        slot = self._own(connection, server)
        if slot is not None:
            state = self._state(slot)
            self._step(slot, PinState.ESTABLISHED if state in _UNANSWERED else state, _ticks(now_s))

    def client_fin(self, now_s: float, connection: Connection) -> None:
        """A client's FIN: it shortens nothing."""
        slot = self._slots.get(connection)
        if slot is None:
            return
        match self._state(slot):
            case PinState.SERVER_CLOSING:
                self._step(slot, PinState.CLOSED, _ticks(now_s))
            case PinState.ANSWERED | PinState.ESTABLISHED:
                self._step(slot, PinState.CLIENT_CLOSING)
            case _:
                pass

    def client_reset(self, now_s: float, connection: Connection) -> None:
        """A client's RST."""
        slot = self._slots.get(connection)
        if slot is None:
            return
        state = self._state(slot)
        if state == PinState.SERVER_CLOSING:
            self._step(slot, PinState.CLOSED, _ticks(now_s))
        elif _is_open(state):
            self._step(slot, PinState.CLIENT_RESET, _ticks(now_s))

    def server_fin(self, now_s: float, connection: Connection, server: int) -> None:
        """A server's FIN."""
        slot = self._own(connection, server)
        if slot is not None:
            state = self._state(slot)
            closing = state <= PinState.REOPENING or state == PinState.SERVER_CLOSING
            self._step(slot, PinState.SERVER_CLOSING if closing else PinState.CLOSED, _ticks(now_s))

    def server_reset(self, now_s: float, connection: Connection, server: int) -> None:
        """A server's RST."""
        slot = self._own(connection, server)
        if slot is not None:
            self._step(slot, PinState.RESET, _ticks(now_s))

    def _own(self, connection: Connection, server: int) -> int | None:
        """The connection's slot, if it names this server."""
        slot = self._slots.get(connection)
        return slot if slot is not None and self._servers[slot] == server else None

    def _new(self, connection: Connection) -> int:
        slot = self._slots[connection] = len(self._slots)
        if slot == len(self._keys):
            for cells in (self._keys, self._servers):
                cells.append(0)
        return slot

    def _state(self, slot: int) -> PinState:
        return PinState(self._keys[slot] >> 32 & 0xF)

    def _step(self, slot: int, state: PinState, stamp: int | None = None) -> None:
        """The next state, stamped or with the stamp that the slot has; the load is the number of open ones."""
        change = _is_open(state) - _is_open(self._state(slot))
        if change:
            _add(self._open, self._servers[slot], change)
        self._keys[slot] = _key(state, self._keys[slot] if stamp is None else stamp)


def _is_open(state: PinState) -> bool:
    return state < PinState.SERVER_CLOSING


def _ticks(now_s: float) -> int:
    return TICK_BASE + int(now_s * 1e6) // TICK_US


def _key(state: PinState, stamp: int) -> int:
    return _FINGERPRINT | state << 32 | stamp % _WRAP


def _add(cells: list[int], index: int, change: int) -> None:
    cells[index] = (cells[index] + change) % _WRAP
