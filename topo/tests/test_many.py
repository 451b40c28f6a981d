"""Tests of parts of the connections lab without a network: hashes, frames, servers."""

from __future__ import annotations

import numpy as np
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from sluice.addresses import IPV4_BITS, from_number, from_text
from sluice.dataplane.connection import Connection
from sluice.names import CONNECTION_SLOTS

from topo.labs.connections.observer import Servers
from topo.labs.connections.tuples import Tuples, drawn
from topo.load.segments import ACK, FIN, PSH, RST, SYN, Segments, frames, read
from topo.load.segments import segments as columns

SERVICE, PORT = "10.0.0.100", 80
CORNER = 8


@pytest.fixture(scope="module")
def tuples() -> Tuples:
    return drawn(50, SERVICE, PORT, slots=CONNECTION_SLOTS, corner=CORNER, seed=5)


def segments(tuples: Tuples, which: list[int], flags: int, *, life: int = 0, word: bool = False) -> Segments:
    return columns(
        len(which),
        src=tuples.client[which],
        src_port=tuples.port[which],
        dst=int(from_text(SERVICE)),
        dst_port=PORT,
        sequence=(life << 24) + 7,
        acknowledgement=99,
        flags=flags,
        word=5 if word else None,
    )


def test_places_are_those_of_the_model_and_in_the_corner(tuples: Tuples) -> None:
    for number, place in enumerate(zip(*tuples.places(CONNECTION_SLOTS), strict=True)):
        client = from_number(int(tuples.client[number]), IPV4_BITS).packed
        connection = Connection(client, int(tuples.port[number]), from_text(SERVICE).packed, PORT)
        assert tuple(place) == connection.place
        assert max(place[:2]) < CONNECTION_SLOTS // CORNER


def test_tuples_are_found_and_others_are_not(tuples: Tuples) -> None:
    assert tuples.find(tuples.client, tuples.port).tolist() == list(range(50))
    assert tuples.find(tuples.client[:1], tuples.port[:1] ^ np.uint32(1)).tolist() == [-1]


@pytest.mark.parametrize("word", [False, True])
def test_frames_are_whole_and_read_back(tuples: Tuples, word: bool) -> None:
    made = segments(tuples, [0, 3], PSH | ACK, word=word)
    rows = frames((b"\2\0\0\0\0\1", b"\2\0\0\0\0\0"), made)
    for row in rows:
        frame = Ether(bytes(row))
        sums = frame[IP].chksum, frame[TCP].chksum
        del frame[IP].chksum, frame[TCP].chksum
        anew = Ether(bytes(frame))
        assert (anew[IP].chksum, anew[TCP].chksum) == sums
        assert (frame.dst, frame.src) == ("02:00:00:00:00:01", "02:00:00:00:00:00")
    padded = np.zeros((2, 128), np.uint8)
    padded[:, : rows.shape[1]] = rows
    got = read(padded)
    assert got.sequence.tolist() == [7, 7] and got.src_port.tolist() == made.src_port.tolist()
    assert got.has_word.tolist() == [word, word]


def flags(answers: list[Segments]) -> list[int]:
    return [int(flag) for answer in answers for flag in answer.flags]


def test_servers_answer_as_hosts_do_and_what_reaches_them_is_seen(tuples: Tuples) -> None:
    servers = Servers(2, tuples)
    assert flags(servers.answers(0, segments(tuples, [1], SYN))) == [SYN | ACK]
    assert servers.answers(0, segments(tuples, [1], ACK)) == []
    (answer,) = servers.answers(0, segments(tuples, [1], PSH | ACK, word=True))
    assert answer.word.tolist() == [0] and answer.acknowledgement.tolist() == [11]
    assert flags(servers.answers(0, segments(tuples, [1], FIN | ACK))) == [FIN | ACK]
    assert servers.record.resets == 0

    (refusal,) = servers.answers(1, segments(tuples, [1], PSH | ACK, word=True))
    assert (flags([refusal]), refusal.sequence.tolist()) == ([RST], [99])
    assert flags(servers.answers(0, segments(tuples, [1], ACK, life=1))) == [RST], "another connection of these ports"
    assert servers.answers(1, segments(tuples, [1], RST)) == []
    assert servers.record.resets == 2
    assert (servers.record.by_syn[0, 1], servers.record.by_others[0, 1], servers.record.by_others[1, 1]) == (1, 3, 1)


def test_silent_servers_see_and_do_not_answer(tuples: Tuples) -> None:
    servers = Servers(2, tuples)
    servers.silent = frozenset([1])
    assert servers.answers(1, segments(tuples, [2], SYN)) == []
    servers.silent = frozenset()
    assert flags(servers.answers(1, segments(tuples, [2], ACK))) == [RST], "nor do they know what came meanwhile"
    assert servers.record.by_syn[0, 2] == 2
