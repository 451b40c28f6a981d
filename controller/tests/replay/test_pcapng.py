"""Tests of reading pcapng captures: the packets equal those of a pcap capture; Scapy writes the first file."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest
from configs import web
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapNgWriter
from sluice.cli.main import main
from sluice.replay.capture import read_capture
from sluice.replay.capturefile import CaptureError, CaptureFile

SYN, ACK, FIN = 0x02, 0x10, 0x01
CLIENT, VIP, SERVERS = (10, 0, 1, 7), (10, 0, 0, 100), ((10, 0, 2, 2), (10, 0, 3, 2))
LITTLE = struct.pack("<I", 1)


def frame(source: tuple[int, ...], source_port: int, destination: tuple[int, ...], port: int, flags: int) -> bytes:
    ip = struct.pack("!BBHHHBBH4B4B", 0x45, 0, 140, 0, 0, 64, 6, 0, *source, *destination)
    return b"\2" * 12 + b"\x08\0" + ip + struct.pack("!HHIIBBHHH", source_port, port, 1, 0, 0x50, flags, 0, 0, 0)


FRAME = frame(CLIENT, 5000, VIP, 80, SYN)
LENGTH = len(FRAME) + 100
"""Bytes of the frame on the wire; the capture omits the last 100."""


def load() -> list[tuple[int, bytes]]:
    """Return times in microseconds and frames of two seconds of connections; server 2 answers half of the SYNs."""
    packets: list[tuple[int, bytes]] = []
    for n in range(40):
        at, port, server = 1_700_000_000_000_007 + n * 50_001, 10_000 + n, SERVERS[n % 2]
        packets += [(at, frame(CLIENT, port, VIP, 80, SYN)), (at + 100, frame(CLIENT, port, server, 80, SYN))]
        if n % 4 != 1:
            packets += [(at + 900, frame(server, 80, CLIENT, port, SYN | ACK))]
            packets += [(at + 4000, frame(server, 80, CLIENT, port, FIN | ACK))]
    return packets


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = 1, options: bytes = b"", largest: int = 0, order: str = "<") -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, largest) + options, order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def packet(time: int, data: bytes = FRAME, number: int = 0, order: str = "<", options: bytes = b"") -> bytes:
    """Return an enhanced packet block of a pcapng file; `options` follow the packet's data.

    `number` is that of the interface, whose options state the unit of `time` (default: microseconds).
    """
    body = struct.pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF, len(data), len(data) + 100) + data
    return block(6, body + bytes(-len(body) % 4) + options, order)


def written(path: Path, *blocks: bytes) -> Path:
    path.write_bytes(b"".join(blocks))
    return path


def test_the_same_capture_as_pcap_and_as_pcapng_has_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pcap, pcapng, config = tmp_path / "c.pcap", tmp_path / "c.pcapng", tmp_path / "sluice.yaml"
    config.write_text(web())
    records = [struct.pack("<IIII", *divmod(at, 10**6), len(data), LENGTH) + data for at, data in load()]
    pcap.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1) + b"".join(records))
    writer = RawPcapNgWriter(str(pcapng))
    writer.linktype = 1
    writer.write_header(None)
    for at, data in load():
        time = cast(float, Fraction(at, 10**6))  # a Fraction, because a float would round the time
        writer.write_packet(data, sec=time, usec=0, caplen=len(data), wirelen=LENGTH)
    writer.close()

    segments = list(read_capture(pcap))
    assert len(segments) == len(load()) and list(read_capture(pcapng)) == segments
    said: list[str] = []
    for file in (pcap, pcapng):
        assert main(["replay", str(file), "--config", str(config), "--json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and '"service": "web"' in said[0]


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_and_what_an_interface_says_of_its_times(tmp_path: Path, order: str) -> None:
    nanoseconds = option(2, b"eth0", order) + option(9, b"\x09", order) + option(0, b"", order)
    binary = option(9, b"\x8a", order) + option(14, struct.pack(order + "q", -40), order)
    file = written(
        tmp_path / "c.pcapng",
        section(order),
        interface(1, nanoseconds, order=order),
        interface(101, binary, order=order),
        interface(order=order),
        block(0x0BAD, b"of no interest", order),
        packet(9_500_000_000, order=order, options=option(2, b"\1\0\0\0", order) + option(0, b"", order)),
        packet(50 * 1024 + 512, FRAME[14:], number=1, order=order),
        packet(11_500_000, number=2, order=order),
        section(),  # begins an appended capture, whose interfaces are numbered from 0 again
        interface(228),
        packet(12_500_000, FRAME[14:]),
    )
    assert [(segment.time_s, segment.source_port) for segment in read_capture(file)] == [
        (9.5, 5000),
        (10.5, 5000),
        (11.5, 5000),
        (12.5, 5000),
    ]


def test_the_block_for_packets_of_old_is_read(tmp_path: Path) -> None:
    body = struct.pack("<HHIIII", 0, 7, 0, 9_500_000, len(FRAME), len(FRAME)) + FRAME
    file = written(tmp_path / "c.pcapng", section(), interface(), block(2, body))
    assert [segment.time_s for segment in read_capture(file)] == [9.5]


HEAD = section() + interface()
AT = len(HEAD)
WHOLE = packet(1_000_000)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\n\r\r\n" + bytes(40), "byte 0: a section of neither byte order"),
        (HEAD + WHOLE[:-4] + bytes(4), f"byte {AT}: a block that ends with another size than it begins with"),
        (HEAD + LITTLE + struct.pack("<I", 1 << 30) + bytes(40), f"byte {AT}: a block of 1,073,741,824 bytes"),
        (HEAD + LITTLE + bytes(40), f"byte {AT}: a block of 0 bytes"),
        (HEAD + packet(1, number=1), f"byte {AT}: a packet of interface 1, which no block describes"),
        (HEAD + WHOLE + section() + WHOLE, "a packet of interface 0, which no block describes"),
        (HEAD + block(6, bytes(8)), f"byte {AT}: a packet without its header"),
        (section() + block(1, bytes(4)), "byte 28: an interface without its description"),
        (section() + interface(105) + WHOLE, "byte 36: link type 105 is not supported"),
        (HEAD + block(6, struct.pack("<IIIII", 0, 0, 1, 500, 600)), f"byte {AT}: 500 bytes of a packet of 600"),
        (section() + interface(largest=40) + WHOLE, f"byte {AT}: 54 bytes of a packet of 154, and 40 are the most"),
        (HEAD + block(3, struct.pack("<I", len(FRAME)) + FRAME), f"byte {AT}: a packet without a time"),
        (HEAD + WHOLE + packet(3_700_000_000), f"byte {AT + len(WHOLE)}: a packet 3,699 s after"),
        (HEAD, "it has no TCP segment over IPv4; nor any other packet"),
    ],
)
def test_a_bad_capture_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(CaptureError) as error:
        list(read_capture(written(tmp_path / "bad.pcapng", content)))
    assert said in str(error.value)


@pytest.mark.parametrize("left", [1, 11, 12, len(WHOLE) - 1])
def test_an_interrupted_capture_is_read_to_its_last_whole_packet(tmp_path: Path, left: int) -> None:
    warnings: list[str] = []
    file = written(tmp_path / "cut.pcapng", HEAD, WHOLE, WHOLE[:left])
    assert len(list(read_capture(file, warnings.append))) == 1
    assert warnings == [f"{file}: byte {AT + len(WHOLE)}: the last record is incomplete; {left} bytes left out"]


def test_a_capture_that_grows_is_read_on(tmp_path: Path) -> None:
    file = written(tmp_path / "c.pcapng", HEAD, WHOLE, WHOLE[:20])
    capture = CaptureFile(file)
    assert [time_s for _, time_s, *_ in capture] == [1.0]
    with file.open("ab") as more:
        more.write(WHOLE[20:] + packet(2_000_000))
    assert [(packet[1], packet[4].link) for packet in capture] == [(1.0, 1), (2.0, 1)]
    assert list(capture) == []


@given(place=st.integers(0, AT + len(WHOLE) - 1), octet=st.integers(0, 255))
def test_a_wrong_byte_is_no_other_failure(place: int, octet: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = bytearray(HEAD + WHOLE)
    content[place] = octet
    file = written(tmp_path_factory.mktemp("wrong") / "c.pcapng", bytes(content))
    try:
        assert all(len(data) <= length for _, _, data, length, _ in CaptureFile(file))
    except CaptureError as error:
        assert str(file) in str(error)
