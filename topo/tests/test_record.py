"""Test that `sluice replay` can read recorded packets."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from sluice.addresses import IPV4_BITS, packed
from sluice.dataplane.pins import RST
from sluice.replay.capture import Segment, read_capture

from topo.measure.capture import FILE_HEADER, record


@pytest.mark.parametrize("trailer", [0, 20])
def test_a_packet_with_a_trailer_is_read(tmp_path: Path, trailer: int) -> None:
    """The switch creates a RST from the frame of a SYN, so the bytes after the SYN's header may follow the RST as a
    trailer. The parser ignores the trailer."""
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 40, 0, 0, 64, 6, 0, 1, 2)
    frame = (
        bytes(12) + b"\x08\x00" + ip + struct.pack("!HHIIBBHHH", 80, 5000, 9, 0, 0x50, RST, 0, 0, 0) + bytes(trailer)
    )
    file = tmp_path / "c.pcap"
    file.write_bytes(FILE_HEADER + record(frame, 3, 500_000_000))
    assert list(read_capture(file)) == [
        Segment(3.5, packed(1, IPV4_BITS), 80, packed(2, IPV4_BITS), 5000, RST, 9, 0, 40, 64, window=0)
    ]
