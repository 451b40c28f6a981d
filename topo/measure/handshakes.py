"""Times of each connection, from a capture at the client: first SYN to first SYN-ACK, and first SYN to the server's
FIN. The module does no I/O."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from topo.plan.statistics import percentile

SEQUENCE_SPACE = 1 << 32

Connection = tuple[str, int, int]
"""A connection: client address, client port, initial sequence number. The sequence number distinguishes connections
that use the same port within a run."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A SYN, SYN-ACK, FIN or RST, as captured at the client."""

    time: float
    """Time of the capture in seconds, on the clock of time.time()."""
    client: str
    client_port: int
    to_server: bool
    syn: bool
    ack: bool
    rst: bool
    sequence: int
    acknowledgement: int
    fin: bool = False


@dataclass(slots=True)
class Handshake:
    """The capture times of one connection's segments, in seconds on the clock of time.time(); None: not captured."""

    first_syn: float
    first_synack: float | None = None
    ended: float | None = None
    """Time of the service's FIN, which follows its last data."""


@dataclass(frozen=True, slots=True)
class ConnectTimes:
    """Times of a set of connections: from the first SYN to the first SYN-ACK, or to the service's FIN.

    ``begun`` is the number of all connections of the set, also of those without a time.
    """

    begun: int
    seconds: Sequence[float]
    """The times, in seconds, of the connections whose SYN-ACK (or FIN) was captured."""

    def mean_ms(self) -> float:
        """Return the mean connect time in milliseconds; NaN if no connection was answered."""
        return 1000 * statistics.fmean(self.seconds) if self.seconds else math.nan

    def median_ms(self) -> float:
        """Return the median connect time in milliseconds; NaN if no connection was answered."""
        return 1000 * statistics.median(self.seconds) if self.seconds else math.nan

    def percentile_ms(self, share: float) -> float:
        """Return the connect time, in milliseconds, that a share `share` (0 to 1) of the connect times do not exceed.
        It is NaN if no connection was answered."""
        return 1000 * percentile(self.seconds, share)


@dataclass(slots=True)
class Handshakes:
    """All handshakes captured so far; segments must be added in the order of the capture."""

    by_connection: dict[Connection, Handshake] = field(default_factory=dict[Connection, Handshake])
    resets_by_service: int = 0
    _latest: dict[tuple[str, int], Handshake] = field(default_factory=dict[tuple[str, int], Handshake])

    def add(self, segment: Segment) -> None:
        """Store the time of a SYN, SYN-ACK or service's FIN with its connection, if it is the connection's first
        segment of this kind. Ignore a SYN-ACK or FIN of a connection without a captured SYN. Count the service's RSTs.
        """
        if segment.rst:
            self.resets_by_service += not segment.to_server
        elif segment.syn and segment.to_server:
            self._syn(segment)
        elif segment.syn and segment.ack:
            self._synack(segment)
        elif segment.fin and not segment.to_server:
            self._fin(segment)

    def between(self, start: float, end: float) -> ConnectTimes:
        """Return the connect times of the connections whose first SYN was sent in [start, end)."""
        begun = [handshake for handshake in list(self.by_connection.values()) if start <= handshake.first_syn < end]
        answered = [
            handshake.first_synack - handshake.first_syn for handshake in begun if handshake.first_synack is not None
        ]
        return ConnectTimes(len(begun), answered)

    def transfers_between(self, start: float, end: float) -> ConnectTimes:
        """Return the times from first SYN to the service's FIN, for connections whose first SYN was sent in [start,
        end)."""
        begun = [handshake for handshake in list(self.by_connection.values()) if start <= handshake.first_syn < end]
        times = [handshake.ended - handshake.first_syn for handshake in begun if handshake.ended is not None]
        return ConnectTimes(len(begun), times)

    def answered_between(self, start: float, end: float) -> ConnectTimes:
        """Return the connect times of the connections whose first SYN-ACK came in [start, end)."""
        times = [
            handshake.first_synack - handshake.first_syn
            for handshake in list(self.by_connection.values())
            if handshake.first_synack is not None and start <= handshake.first_synack < end
        ]
        return ConnectTimes(len(times), times)

    def _syn(self, segment: Segment) -> None:
        key = (segment.client, segment.client_port, segment.sequence)
        if key not in self.by_connection:
            self.by_connection[key] = self._latest[segment.client, segment.client_port] = Handshake(segment.time)

    def _synack(self, segment: Segment) -> None:
        key = (segment.client, segment.client_port, (segment.acknowledgement - 1) % SEQUENCE_SPACE)
        known = self.by_connection.get(key)
        if known is not None and known.first_synack is None:
            known.first_synack = segment.time

    def _fin(self, segment: Segment) -> None:
        known = self._latest.get((segment.client, segment.client_port))
        if known is not None and known.ended is None:
            known.ended = segment.time
