"""What is counted of each kind of thing, in one list a kind.

The reads of the switch, ``sluice status``, its JSON, the Prometheus endpoint and docs/reference/metrics.md follow from
the lists: a new count costs its stage in P4 and a line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluice.names import Counter, Register


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of every thing of a kind."""

    name: str
    """Its key in JSON, and the end of its metric's name."""
    meaning: str
    """For Prometheus and the reference; with the unit where it is not a number of packets or connections."""
    cell: Counter | Register | None = None
    """Where the switch counts it, by the thing's number; None: the controller does."""
    title: str = ""
    """Head of its column in the tables of ``sluice status``."""
    is_level: bool = False
    """A level, which may fall; else a cumulative count."""
    unit: str = ""
    """Behind the metric's name: ``bytes``."""

    @property
    def metric(self) -> str:
        """The end of the metric's name, with the unit."""
        return f"{self.name}_{self.unit}" if self.unit else self.name


def level(name: str, meaning: str, unit: str = "") -> Column:
    """A level that the controller knows."""
    return Column(name, meaning, is_level=True, unit=unit)


PACKETS = (
    Column("drops", "Packets dropped, by reason", Counter.VERDICTS),
    Column("punts", "Packets for the controller, by reason", Counter.PUNTS),
    Column("punts_limited", "Those that were too many for it", Counter.PUNTS_LIMITED),
)
"""By reason."""
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
LEDGER = (
    Column("syn", "SYNs forwarded to the server", Register.LEDGER_SYN, "SYN"),
    Column("synack", "First SYN-ACKs of the server", Register.LEDGER_SYNACK, "SYN-ACK"),
    Column("synack_again", "Repeated SYN-ACKs of the server", Register.LEDGER_SYNACK_AGAIN, "again"),
    Column("completed", "Handshakes completed", Register.LEDGER_COMPLETED, "done"),
    Column("reset", "Resets sent by the server", Register.LEDGER_RESET, "RST"),
)
"""What the switch counts of a server for the algorithms, in the order of ``balance.Counts``."""
SERVER = (*LEDGER,)
"""And all that users see. A column without a title is not in the table of ``sluice status``."""
SERVER_LEVELS = (
    level("ratio", "Share of new connections"),
    level("r", "R over the window (no evidence: NaN)"),
    level("open", "Open connections"),
    level("max_connections", "The most that it is to have (no cap: NaN)"),
)
DESTINATION = (
    Column("offered", "SYNs towards the destination", Register.REQUESTS_OFFERED, "offered"),
    Column("admitted", "connections that admission let pass", Register.REQUESTS_ADMITTED, "admitted"),
    Column("refused", "SYNs that admission refused", Register.REQUESTS_REFUSED, "refused"),
    Column(
        "returning", "SYNs that passed because their client is remembered", Register.REQUESTS_RETURNING, "returning"
    ),
)
"""In the order of ``news.Requests``."""
CLOSINGS = (
    Column("closed", "Idle connections that the switch closed", Register.CLOSING_TAKEN),
    Column("taken_back", "Probes that payload of either side ended: the connection stays", Register.CLOSING_TAKEN_BACK),
    Column(
        "raced",
        "Closed connections whose client asked for something before it knew, and got a reset",
        Register.CLOSING_RACED,
    ),
)
"""In the order of ``switch.closing.Closings``."""
CONNECTIONS = (
    level("limit", "Connections that the server can have (not known: NaN)"),
    level("open", "Connections that it has"),
    level("idle", "Those among them that could be closed"),
    Column("asked", "Probes of idle connections, since the controller started"),
    Column("lapsed", "Those of them that the server did not answer"),
    *CLOSINGS,
)
"""Of a server whose idle connections are closed."""
BUFFERS = (
    level("budget", "Bytes of buffers that the server has for all connections", "bytes"),
    level("flight", "Bytes in flight at most in the last second, of the transfers that are measured", "bytes"),
    level("need", "Bytes that they could use", "bytes"),
    level("share", "Bytes that they are given", "bytes"),
    level("transfers", "Transfers that are measured, above 64 KB and active"),
    level("capped", "Those that are given less than they need"),
    level("default_cap", "Bytes that each other connection can have", "bytes"),
)
"""Of a server whose buffers are shared out. Of what it receives, needs are not known."""
GROUP = (
    Column("opened", "Connections opened to a group"),
    Column("failed", "Connections that no server took"),
)
"""Of a content service's group."""
AGENT = (
    level("answers", "1 while the agent answers"),
    level("connections", "Connections in the agent's hands"),
    level("waiting", "Requests that are not complete"),
    level("memory", "Bytes that they take", "bytes"),
)


def counters(columns: Iterable[Column]) -> dict[str, Counter]:
    """The counters among the columns, by the column's name."""
    return {column.name: column.cell for column in columns if isinstance(column.cell, Counter)}


def registers(columns: Iterable[Column]) -> dict[str, Register]:
    """The registers among the columns, by the column's name."""
    return {column.name: column.cell for column in columns if isinstance(column.cell, Register)}
