"""One list of columns for each kind of object that is counted.

Reads of the switch, ``sluice status``, its JSON, the Prometheus endpoint and docs/reference/metrics.md follow from
these lists: a new count takes its stage in P4 and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluice.names import Counter, Register


@dataclass(frozen=True, slots=True)
class Column:
    """A value that is reported for every object of a kind, such as every server."""

    name: str
    """The key in JSON, and the end of the metric's name."""
    meaning: str
    """The text for Prometheus and the reference; with the unit, unless it is a number of packets or connections."""
    cell: Counter | Register | None = None
    """The counter or register in which the switch counts it, by the object's number; None: the controller counts it."""
    title: str = ""
    """The column's head in the tables of ``sluice status``; empty: not in a table."""
    is_level: bool = False
    """Whether it is a level, which may fall, instead of a cumulative count."""
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
"""Packets of the switch, by reason."""
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
"""Columns of a service."""
LEDGER = (
    Column("syn", "SYNs forwarded to the server", Register.LEDGER_SYN, "SYN"),
    Column("synack", "First SYN-ACKs of the server", Register.LEDGER_SYNACK, "SYN-ACK"),
    Column("synack_again", "Repeated SYN-ACKs of the server", Register.LEDGER_SYNACK_AGAIN, "again"),
    Column("completed", "Handshakes completed", Register.LEDGER_COMPLETED, "done"),
    Column("reset", "Resets sent by the server", Register.LEDGER_RESET, "RST"),
)
"""Counts of a server that the algorithms use, in the order of ``balance.Counts``."""
SERVER = (*LEDGER,)
"""All counts of a server that users see. A column without a title is not in the table of ``sluice status``."""
SERVER_LEVELS = (
    level("ratio", "Share of new connections"),
    level("r", "R over the window (no evidence: NaN)"),
    level("open", "Open connections"),
    level("max_connections", "The cap on open connections (no cap: NaN)"),
)
"""Levels of a server."""
DESTINATION = (
    Column("offered", "SYNs towards the destination", Register.REQUESTS_OFFERED, "offered"),
    Column("admitted", "Connections that admission let pass", Register.REQUESTS_ADMITTED, "admitted"),
    Column("refused", "SYNs that admission refused", Register.REQUESTS_REFUSED, "refused"),
    Column(
        "returning", "SYNs that passed because their client is remembered", Register.REQUESTS_RETURNING, "returning"
    ),
)
"""Counts of a destination, in the order of ``news.Requests``."""
CLOSINGS = (
    Column("closed", "Idle connections that the switch closed", Register.CLOSING_TAKEN),
    Column("taken_back", "Probes that payload of either side ended: the connection stays", Register.CLOSING_TAKEN_BACK),
    Column(
        "raced",
        "Closed connections whose client sent a request before the FIN reached it, and got a reset",
        Register.CLOSING_RACED,
    ),
)
"""Outcomes of probes of idle connections, in the order of ``switch.closing.Closings``."""
CONNECTIONS = (
    level("limit", "Connections that the server can have (not known: NaN)"),
    level("open", "Connections that the server has open"),
    level("idle", "Idle connections that could be closed"),
    Column("asked", "Probes of idle connections, since the controller started"),
    Column("lapsed", "Probes of idle connections that the server did not answer"),
    *CLOSINGS,
)
"""Columns of a server whose idle connections are closed."""
BUFFERS = (
    level("budget", "Bytes of buffers that the server has for all connections", "bytes"),
    level("flight", "Largest number of bytes in flight in the last second, of measured transfers", "bytes"),
    level("need", "Bytes that measured transfers could use", "bytes"),
    level("share", "Bytes that measured transfers are given", "bytes"),
    level("transfers", "Measured transfers, above 64 KB and active"),
    level("capped", "Measured transfers that are given less than they need"),
    level("default_cap", "Bytes that each other connection can have", "bytes"),
)
"""Columns of a server whose buffers are shared. For receive buffers the needs are unknown."""
GROUP = (
    Column("opened", "Connections opened to a group"),
    Column("failed", "Connections that no server took"),
)
"""Columns of a content service's group."""
AGENT = (
    level("answers", "1 while the agent answers"),
    level("connections", "Connections that the agent holds"),
    level("waiting", "Requests that are not complete"),
    level("memory", "Bytes that the connections take", "bytes"),
)
"""Columns of an agent."""


def counters(columns: Iterable[Column]) -> dict[str, Counter]:
    """Return the counters among the columns, by the column's name."""
    return {column.name: column.cell for column in columns if isinstance(column.cell, Counter)}


def registers(columns: Iterable[Column]) -> dict[str, Register]:
    """Return the registers among the columns, by the column's name."""
    return {column.name: column.cell for column in columns if isinstance(column.cell, Register)}
