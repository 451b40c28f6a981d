"""Candidates: the servers to which SYNs go if the client's address and port still have a pin (an entry in the
connection table) to another server, which accepts no new connections."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.names import CANDIDATES, PinState, Register

from .connection import Place
from .memory import Memory
from .table import WRAP, later

_FINGERPRINT_SHIFT = 32
"""Lowest bit of a key's fingerprint; the bits below it contain the time at which the cell expires."""
_ANSWERED, _SERVER_SHIFT, _SERVER = 1 << 48, 32, 0xFFFF
"""Bit fields of the cell that stores a candidate: the flag that the candidate has sent a SYN-ACK, and the candidate's
server number. The bits below this number contain the acknowledgement number that the client's ACK must have."""


class Candidates:
    """The cells of candidates. The low bits of a connection's slot in way 1 of the connection table select the cell."""

    def __init__(self, memory: Memory, lifetimes: Mapping[PinState, int]) -> None:
        """``lifetimes``: for each state, the ticks after which it expires. A candidate's cell is in state PENDING until
        the candidate's SYN-ACK, and then in state ANSWERED."""
        self._lifetimes = lifetimes
        self._keys, self._pins = memory.of(Register.CANDIDATE_KEY), memory.of(Register.CANDIDATE_PIN)

    def of(self, now: int, place: Place) -> int | None:
        """Return the candidate server to which a connection's SYNs go; None if the connection has no candidate."""
        return self._server(place.slot_1 % CANDIDATES) if self._holds(now, place) else None

    def syn(self, now: int, place: Place, choice: int) -> int | None:
        """Handle a client's SYN. Returns the server to which the SYN goes: the connection's candidate, or ``choice``,
        which becomes the candidate; None if another connection occupies the cell."""
        cell = place.slot_1 % CANDIDATES
        if self._holds(now, place):
            return self._server(cell)
        if not later(now, self._keys[cell]):
            return None
        self._keep(now, place, PinState.PENDING)
        self._pins[cell] = choice << _SERVER_SHIFT
        return choice

    def syn_ack(self, now: int, place: Place, server: int, sequence: int) -> bool:
        """Handle a SYN-ACK from a server other than the one in the connection's entry. Returns whether it repeats the
        candidate's SYN-ACK."""
        cell = place.slot_1 % CANDIDATES
        if not self._holds(now, place) or self._server(cell) != server:
            return False
        answered = _ANSWERED | server << _SERVER_SHIFT | (sequence + 1) % WRAP
        is_repeat = self._pins[cell] == answered
        self._pins[cell] = answered
        self._keep(now, place, PinState.ANSWERED)
        return is_repeat

    def ack(self, now: int, place: Place, number: int) -> int | None:
        """Handle a client's ACK. If the ACK completes the handshake with the candidate, return the candidate, to which
        the connection moves; otherwise return None."""
        cell = place.slot_1 % CANDIDATES
        pin = self._pins[cell]
        if not self._holds(now, place) or not pin & _ANSWERED or pin % WRAP != number:
            return None
        self._keys[cell] = 0
        return self._server(cell)

    def _holds(self, now: int, place: Place) -> bool:
        key = self._keys[place.slot_1 % CANDIDATES]
        return key >> _FINGERPRINT_SHIFT == place.fingerprint and not later(now, key)

    def _server(self, cell: int) -> int:
        return self._pins[cell] >> _SERVER_SHIFT & _SERVER

    def _keep(self, now: int, place: Place, state: PinState) -> None:
        until = (now + self._lifetimes[state]) % WRAP
        self._keys[place.slot_1 % CANDIDATES] = place.fingerprint << _FINGERPRINT_SHIFT | until
