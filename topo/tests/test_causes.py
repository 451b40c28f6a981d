"""Tests of the lab of labelled runs: a verdict names a killed server, and the flood consists of correct SYNs."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from scapy.layers.inet import IP, TCP
from sluice.news import Cause

from topo.labs.causes import CausesLab
from topo.load.flood import Flood
from topo.plan.causes import SICK_NAME, Label
from topo.tests import needs

ONSET_S, END_S = 3.0, 16.0
"""Times of onset and end in seconds. They are short because the controller needs no baseline to detect a
silent server."""


@needs.ROOT
def test_a_server_that_is_killed_is_named_and_loses_its_share() -> None:
    with CausesLab(Label.KILLED, onset_s=ONSET_S, end_s=END_S) as lab:
        verdict = lab.run(seed=1)
        left = [lab.pid("client"), lab.controller.process.pid if lab.controller.process else 0]
    assert verdict.cause == Cause.SICK and verdict.named == {SICK_NAME}
    assert verdict.moved and not verdict.limited
    assert not any(Path(f"/proc/{pid}").exists() for pid in left), "it ends what it started"


def test_a_flood_is_syns_of_addresses_without_hosts() -> None:
    sources = ipaddress.IPv4Network("10.120.0.0/16")
    made = [IP(packet) for packet in Flood("10.0.0.100:80", str(sources), 100.0, 1.0).packets()]
    assert len({(packet.src, packet[TCP].sport) for packet in made}) == len(made) == 100
    for packet in made:
        sums = packet.chksum, packet[TCP].chksum
        del packet.chksum, packet[TCP].chksum
        again = IP(bytes(packet))
        assert (again.chksum, again[TCP].chksum) == sums
        assert ipaddress.ip_address(packet.src) in sources
        assert (packet.dst, packet[TCP].dport, packet[TCP].flags) == ("10.0.0.100", 80, "S")
