"""Tests of reading captures: formats, link types, truncated packets, and error messages for invalid files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from recordings import CLIENT, HEADER, S1, VIP, configured, connection, frame, load, recorded, write
from sluice.cli.main import main
from sluice.dataplane.pins import SYN
from sluice.replay.capture import Segment, read_capture

SYN_FRAME = frame((0.0, CLIENT, 5000, VIP, 80, SYN, 0))


ONE = recorded(SYN_FRAME)


IPV6_FRAME = SYN_FRAME[:12] + b"\x86\xdd\x60" + bytes(60)


TAGGED_FRAME = SYN_FRAME[:12] + b"\x88\xa8\x00\x07\x81\x00\x00\x07" + SYN_FRAME[12:]


UDP_FRAME = SYN_FRAME[:23] + b"\x11" + SYN_FRAME[24:]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "byte 0: not a capture"),
        (b"hello, this is no capture at all", "byte 0: not a capture"),
        (HEADER[:20] + struct.pack("<I", 105) + bytes(16), "byte 20: link type 105"),
        (HEADER + struct.pack("<IIII", 1, 0, 1 << 30, 60), "byte 24: 1,073,741,824 bytes of a packet of 60"),
        (HEADER + ONE + struct.pack("<IIII", 1, 0, 55, 54) + bytes(55), "byte 94: 55 bytes of a packet of 54"),
        (HEADER + ONE + struct.pack("<IIII", 1, 0, 65_537, 70_000), "byte 94: 65,537 bytes of a packet of 70,000"),
        (
            HEADER[:16] + bytes(4) + HEADER[20:] + ONE + struct.pack("<IIII", 1, 0, 262_145, 300_000),
            "byte 94: 262,145 bytes of a packet of 300,000, and 262,144 are the most",
        ),
        (HEADER + ONE + recorded(SYN_FRAME, 3601.5), "byte 94: a packet 3,600 s after the previous one"),
        (HEADER + recorded(SYN_FRAME, 4e9) + ONE, "byte 94: a packet 3,999,999,999 s before the previous one"),
        (HEADER, "bad.pcap: it has no TCP segment over IPv4; nor any other packet"),
        (
            HEADER + 2 * recorded(IPV6_FRAME),
            "bad.pcap: it has no TCP segment over IPv4; its packets: 2 IPv6",
        ),
        (HEADER + 2 * recorded(TAGGED_FRAME), "its packets: 2 with two VLAN tags"),
        (
            HEADER + 2 * recorded(SYN_FRAME[:50], beyond=4) + recorded(UDP_FRAME),
            "its packets: 2 cut short (record with tcpdump -s 96 or more), 1 of other protocols",
        ),
        (
            HEADER + recorded(frame((0.0, CLIENT, 5000, CLIENT, 80, SYN, 0))),
            "bad.pcap: no TCP segment in it is to or from a service or server of",
        ),
    ],
)
def test_a_bad_capture_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str) -> None:
    file = tmp_path / "bad.pcap"
    file.write_bytes(content)
    assert main(["replay", str(file), "--config", configured(tmp_path)]) == 1
    assert said in capsys.readouterr().err


def test_a_capture_of_the_clients_side_only_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packets = [packet for packet in load(2, lost=0) if VIP in (packet[1], packet[3])]
    file = write(tmp_path / "clients.pcap", packets)
    assert main(["replay", str(file), "--config", configured(tmp_path)]) == 0
    assert f"{file}: no TCP segment in it is to or from a server" in capsys.readouterr().err
    assert main(["replay", str(write(file, load(2, lost=0))), "--config", configured(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("cut_off", "left"), [(7, 63), (54, 16), (55, 15), (69, 1)])
def test_an_interrupted_capture_is_read_to_its_last_whole_packet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut_off: int, left: int
) -> None:
    whole = write(tmp_path / "whole.pcap", connection(1.0, 5000, S1))
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole.read_bytes()[:-cut_off])
    assert len(list(read_capture(cut))) == len(list(read_capture(whole))) - 1
    assert main(["replay", str(cut), "--config", configured(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == f"sluice: {cut}: byte 584: the last record is incomplete; {left} bytes left out\n"
    assert out == f"{cut}: 6 segments, 0 decisions\n"


def test_an_hour_without_a_packet_is_a_pause(tmp_path: Path) -> None:
    file = tmp_path / "c.pcap"
    file.write_bytes(HEADER + ONE + recorded(SYN_FRAME, 3600.9) + ONE)
    assert [segment.time_s for segment in read_capture(file)] == [1.0, 3600.9, 1.0]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1e6), (0xA1B23C4D, 1e9)])
def test_both_byte_orders_and_both_units(tmp_path: Path, order: str, magic: int, unit: float) -> None:
    data = frame((0.0, CLIENT, 5000, VIP, 80, SYN, 0))
    tagged = data[:12] + b"\x81\x00\x00\x07" + data[12:]
    file = tmp_path / "c.pcap"
    file.write_bytes(
        struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 96, 1)
        + b"".join(
            struct.pack(order + "IIII", 9, round(0.5 * unit), len(data_frame), len(data_frame)) + data_frame
            for data_frame in (data, tagged)
        )
    )
    expected = Segment(9.5, CLIENT.packed, 5000, VIP.packed, 80, SYN, 35000, 0, 40, 64, window=0, data_offset=5)
    assert list(read_capture(file)) == [expected, expected]


COOKED = bytes.fromhex("0000 0001 0006 020202020202 0000")


COOKED_2 = bytes.fromhex("0800 0000 00000002 0001 00 06 020202020202 8100")


TAG = b"\x81\x00\x00\x07"


@pytest.mark.parametrize(
    ("link", "head"),
    [(113, COOKED + b"\x08\x00"), (113, COOKED + TAG + b"\x08\x00"), (276, COOKED_2), (101, b""), (228, b"")],
)
def test_a_segment_is_found_behind_every_link_type(tmp_path: Path, link: int, head: bytes) -> None:
    """For frames of `tcpdump -i any`, libpcap also puts a VLAN tag before the type of a cooked packet."""
    file = tmp_path / "c.pcap"
    file.write_bytes(HEADER[:20] + struct.pack("<I", link) + recorded(head + SYN_FRAME[14:]))
    assert [(segment.source_port, segment.flags) for segment in read_capture(file)] == [(5000, SYN)]


def test_no_frame_breaks_the_reader(tmp_path: Path) -> None:
    whole = frame((0.0, CLIENT, 5000, VIP, 80, SYN, 0))
    frames = [whole[:length] for length in range(len(whole))]
    frames += [whole[:n] + b"\xff" + whole[n + 1 :] for n in range(14, len(whole))]
    file = tmp_path / "c.pcap"
    file.write_bytes(
        HEADER
        + b"".join(struct.pack("<IIII", 1, 0, len(data_frame), len(data_frame)) + data_frame for data_frame in frames)
    )
    assert all(0 <= segment.payload <= 65_535 for segment in read_capture(file))


def test_a_capture_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        next(read_capture("/nonexistent.pcap"))
