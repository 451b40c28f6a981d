"""The servers of up to a million connections, and a record, independent of the switch, of the servers that each
connection's segments reach.

Every interface is a server. A server answers a SYN by a SYN-ACK, data by the server's number, and a FIN by a FIN. It
answers a segment without a connection by a RST (RFC 9293, section 3.10.7.1). Clients use ports repeatedly: the first
octet of a client's sequence numbers counts the connections of its tuple.

The control socket receives commands, one per line: `silent NUMBER...` (these servers drop all segments, all other
servers answer), `lossy NUMBER SHARE` (this server drops that share of the SYNs), `note FILE` (write the record). The
observer answers each command by `ok`.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from topo.labs.connections.tuples import Tuples
from topo.labs.connections.wire import ETH_P_IP, Wire
from topo.load.program import main
from topo.load.segments import ACK, FIN, PSH, RST, SYN, Segments, frames, read, segments

LIVES = 16
"""The largest number of successive connections of a tuple."""
TICK_S = 0.5


@dataclass
class Record:
    """The record: which servers each connection's segments reached, a bit for each server.

    An array's row is the number of a tuple's connection (its life), an array's column is the tuple.
    """

    by_syn: NDArray[np.uint8]
    """Servers that SYNs have reached."""
    by_others: NDArray[np.uint8]
    """Servers that segments other than SYNs have reached."""
    resets: int = 0
    """RSTs sent for segments without a connection."""
    lost: int = 0
    """Frames that the sockets dropped because their receive buffers were full."""

    @classmethod
    def nothing(cls, tuples: int) -> Self:
        """Return an empty record."""
        return cls(np.zeros((LIVES, tuples), np.uint8), np.zeros((LIVES, tuples), np.uint8))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record from its file."""
        with np.load(path) as file:
            return cls(file["by_syn"], file["by_others"], int(file["resets"]), int(file["lost"]))

    def save(self, path: Path) -> None:
        """Write the record to a file."""
        np.savez(path, by_syn=self.by_syn, by_others=self.by_others, resets=self.resets, lost=self.lost)

    def add(self, server: int, who: NDArray[np.int64], lives: NDArray[np.int64], syn: NDArray[np.bool_]) -> None:
        """Record segments that have reached a server.

        The arrays have an item for each segment: ``who``: the tuple's index; ``lives``: the number of the tuple's
        connection; ``syn``: whether the segment is a SYN.
        """
        self.by_syn[lives[syn], who[syn]] |= np.uint8(1 << server)
        self.by_others[lives[~syn], who[~syn]] |= np.uint8(1 << server)


class Servers:
    """All servers, each with its connections."""

    def __init__(self, count: int, tuples: Tuples) -> None:
        self.tuples = tuples
        self.record = Record.nothing(tuples.client.size)
        self.silent: frozenset[int] = frozenset()
        self.lossy: dict[int, float] = {}
        self._known = np.full((count, tuples.client.size), -1, np.int8)
        """By server and tuple: the life (number) of the connection that is open at the server; -1: no connection."""
        self._source = np.random.default_rng(1)

    def answers(self, server: int, got: Segments) -> list[Segments]:
        """Record the segments that a server received; return its answers in groups of segments of equal length."""
        who = self.tuples.find(got.src, got.src_port)
        got, who = got.of(who >= 0), who[who >= 0]
        lives = (got.sequence >> 24).astype(np.int64)
        syn = got.flags & (SYN | ACK) == SYN
        self.record.add(server, who, lives, syn)
        if server in self.silent:
            return []
        taken = syn & (self._source.random(syn.size) >= self.lossy.get(server, 0.0))
        self._known[server, who[taken]] = lives[taken]
        known = (self._known[server, who] == lives) & ~syn
        reset, fin = got.flags & RST != 0, got.flags & FIN != 0
        strange = ~known & ~syn & ~reset
        self.record.resets += int(strange.sum())
        self._known[server, who[known & reset]] = -1
        numbers = np.full(who.size, server << 24, np.uint32) | (lives << 16).astype(np.uint32)
        return [
            *_answer(got.of(taken), numbers[taken], SYN | ACK),
            *_answer(got.of(known & got.has_word), numbers[known & got.has_word] + 1, PSH | ACK, word=server),
            *_answer(got.of(known & fin), numbers[known & fin] + 1, FIN | ACK),
            *_answer(got.of(strange), got.acknowledgement[strange], RST),
        ]


def _answer(got: Segments, sequence: NDArray[np.uint32], flags: int, word: int | None = None) -> list[Segments]:
    size = got.src.size
    if not size:
        return []
    longer = got.has_word * np.uint32(4) + (got.flags & (SYN | FIN) != 0)
    acknowledged = np.zeros(size, np.uint32) if flags == RST else got.sequence + longer
    ends = {"src": got.dst, "src_port": got.dst_port, "dst": got.src, "dst_port": got.src_port}
    return [segments(size, **ends, sequence=sequence, acknowledgement=acknowledged, flags=flags, word=word)]


@dataclass(frozen=True)
class Observer:
    """The observer's program: a server at each interface for the tuples in a file, controlled over a socket."""

    control: str
    tuples: str
    interfaces: Sequence[str]

    def run(self) -> None:
        """Serve until the control connection closes; print `observing` once the control socket listens."""
        with np.load(self.tuples) as file:
            tuples = Tuples(file["client"], file["port"], str(file["service"]), int(file["service_port"]))
        sockets = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP)) for _ in self.interfaces]
        wires = [Wire(packets, interface) for packets, interface in zip(sockets, self.interfaces, strict=True)]
        servers = Servers(len(self.interfaces), tuples)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.control)
            listener.listen()
            print("observing", flush=True)
            control, _ = listener.accept()
        lines = control.makefile("r")
        while True:
            ready = select.select([control, *(wire.socket for wire in wires)], [], [], TICK_S)[0]
            for number, wire in enumerate(wires):
                if wire.socket in ready:
                    _serve(servers, number, wire)
            if control in ready:
                if not (line := lines.readline()):
                    return
                _do(servers, wires, line.split())
                control.sendall(b"ok\n")


def _serve(servers: Servers, number: int, wire: Wire) -> None:
    received = wire.receive()
    if not len(received):
        return
    macs = bytes(received[0, 6:12]), bytes(received[0, :6])
    for answer in servers.answers(number, read(received)):
        wire.send(frames(macs, answer))


def _do(servers: Servers, wires: Sequence[Wire], words: Sequence[str]) -> None:
    match words:
        case ["silent", *numbers]:
            servers.silent = frozenset(map(int, numbers))
        case ["lossy", number, share]:
            servers.lossy[int(number)] = float(share)
        case ["note", path]:
            servers.record.lost = sum(wire.lost() for wire in wires)
            servers.record.save(Path(path))
        case _:
            raise SystemExit(f"observer: not a command: {words}")


if __name__ == "__main__":
    main(globals())
