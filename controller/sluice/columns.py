"""One list of columns for each kind of object that is counted, such as servers and services.

Register reads, ``sluice status``, its JSON, the Prometheus endpoint and docs/reference/metrics.md follow from these
lists. A new count needs a stage in P4 that counts, and one line in this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluice.names import Counter, Register


@dataclass(frozen=True, slots=True)
class Column:
    """A value that is reported for every object of a kind, such as every server."""

    name: str
    """The key in JSON, and the last part of the metric's name, except for the unit."""
    meaning: str
    """The text for Prometheus and the reference. It states the unit, unless the value counts packets or connections."""
    cell: Counter | Register | None = None
    """The counter or register in which the switch counts the value, indexed by the object's number; None: the
    controller computes the value."""
    title: str = ""
    """The column's heading in the tables of ``sluice status``; empty: the tables do not show the column."""
    is_level: bool = False
    """Whether the value is a level, which may fall, instead of a cumulative count."""
    unit: str = ""
    """The suffix of the metric's name, such as ``bytes``."""

    @property
    def metric(self) -> str:
        """The end of the metric's name, with the unit."""
        return f"{self.name}_{self.unit}" if self.unit else self.name


def level(name: str, meaning: str, unit: str = "") -> Column:
    """Return a column of a level that the controller computes."""
    return Column(name, meaning, is_level=True, unit=unit)


PACKETS = (
    Column("drops", "Packets dropped, by reason", Counter.VERDICTS),
    Column("punts", "Packets for the controller, by reason", Counter.PUNTS),
    Column("punts_limited", "Packets for the controller dropped above the limit, by reason", Counter.PUNTS_LIMITED),
)
"""Counts of the switch's packets, each by reason."""
SERVICE = (
    Column("offered", "SYNs to the service", Counter.OFFERED),
    Column("refused", "SYNs refused by admission", Counter.REFUSED),
    Column("pinned", "Connections pinned", Counter.CLAIMED),
    Column("unpinned_new", "SYNs that found no free slot", Counter.UNPINNED_NEW),
    Column("unpinned_mid", "Other packets without a pin", Counter.UNPINNED_MID),
    Column("moved", "Connections whose repeated SYN went to another server than before", Counter.MOVED),
    Column("disowned", "Resets of servers for connections that are not pinned to them", Counter.DISOWNED),
    Column("weight_changes", "Writes of changed weights"),
)
"""Columns of each service."""
LEDGER = (
    Column("syn", "SYNs forwarded to the server", Register.LEDGER_SYN, "SYN"),
    Column("synack", "First SYN-ACKs of the server", Register.LEDGER_SYNACK, "SYN-ACK"),
    Column("synack_again", "Repeated SYN-ACKs of the server", Register.LEDGER_SYNACK_AGAIN, "again"),
    Column("completed", "Handshakes completed", Register.LEDGER_COMPLETED, "done"),
    Column("reset", "Resets sent by the server", Register.LEDGER_RESET, "RST"),
)
"""Counts of each server that the balancing algorithms use, in the order of the fields of ``balance.Counts``."""
SERVER = (*LEDGER,)
"""All counts of each server that users see. The table of ``sluice status`` shows those with a title."""
SERVER_LEVELS = (
    level("ratio", "Share of new connections"),
    level("r", "R over the window (no evidence: NaN)"),
    level("open", "Open connections"),
    level("max_connections", "The cap on open connections (no cap: NaN)"),
)
"""Levels of each server."""
DESTINATION = (
    Column("offered", "SYNs towards the destination", Register.REQUESTS_OFFERED, "offered"),
    Column("admitted", "Connections that admission let pass", Register.REQUESTS_ADMITTED, "admitted"),
    Column("refused", "SYNs that admission refused", Register.REQUESTS_REFUSED, "refused"),
    Column(
        "returning", "SYNs that passed because their client is remembered", Register.REQUESTS_RETURNING, "returning"
    ),
)
"""Counts of each destination (the address to which clients send SYNs, before translation), in the order of the fields
of ``news.Requests``."""
CLOSINGS = (
    Column("closed", "Idle connections that the switch closed", Register.CLOSING_TAKEN),
    Column("taken_back", "Probes that payload of either side ended: the connection stays", Register.CLOSING_TAKEN_BACK),
    Column(
        "raced",
        "Closed connections whose client sent a request before the FIN reached it, and got a reset",
        Register.CLOSING_RACED,
    ),
)
"""Outcomes of probes of idle connections, in the order of the fields of ``switch.closing.Closings``."""
CONNECTIONS = (
    level("limit", "Connections that the server can have (not known: NaN)"),
    level("open", "Connections that the server has open"),
    level("idle", "Idle connections that could be closed"),
    Column("asked", "Probes of idle connections, since the controller started"),
    Column("lapsed", "Probes of idle connections that the server did not answer"),
    *CLOSINGS,
)
"""Columns of each server whose idle connections are closed."""
BUFFERS = (
    level("budget", "Bytes of buffers that the server has for all connections", "bytes"),
    level("flight", "Largest number of bytes in flight in the last second, of measured transfers", "bytes"),
    level("need", "Bytes that measured transfers could use", "bytes"),
    level("share", "Bytes that measured transfers are given", "bytes"),
    level("transfers", "Measured transfers, above 64 KB and active"),
    level("capped", "Measured transfers that are given less than they need"),
    level("default_cap", "Bytes that each other connection can have", "bytes"),
)
"""Columns of each server whose buffers the controller divides among its connections, for send and for receive buffers.
For receive buffers, how much the transfers could use is unknown."""
GROUP = (
    Column("opened", "Connections opened to a group"),
    Column("failed", "Connections that no server took"),
)
"""Columns of each group of servers of a content service."""
AGENT = (
    level("answers", "1 while the agent answers"),
    level("connections", "Connections that the agent holds"),
    level("waiting", "Requests that are not complete"),
    level("memory", "Bytes that the connections take", "bytes"),
)
"""Columns of each agent."""


def counters(columns: Iterable[Column]) -> dict[str, Counter]:
    """Return the switch's counters that the columns refer to, by the column's name."""
    return {column.name: column.cell for column in columns if isinstance(column.cell, Counter)}


def registers(columns: Iterable[Column]) -> dict[str, Register]:
    """Return the switch's registers that the columns refer to, by the column's name."""
    return {column.name: column.cell for column in columns if isinstance(column.cell, Register)}
