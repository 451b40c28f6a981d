"""The lab that compares the switch's measurements with TCP: records of switch, kernel and packet capture for each
connection."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from sluice.replay.capture import read_capture

from experiments.lossevents import losses
from experiments.tcptrace import traced
from topo.labs.transfers import SERVER, TransfersLab
from topo.plan.network import WEB_PORT
from topo.testbed.network import READY_S


class CapturedPlace(TransfersLab):
    """The lab of measured transfers with a packet capture at the server."""

    def captured(self, congestion: str, loss: float, seconds: float) -> dict[str, Any]:
        """Run the lab's transfers for ``seconds``, and capture the packets.

        Return the records of switch, kernel, capture and tcptrace for each connection, and the kernel's total counts.
        """
        capture = self.directory / "sent.pcap"
        options = ["-i", "eth0", "-s", "96", "-B", "16384", "-w", str(capture)]
        recorder = self.start("tcpdump", ["tcpdump", *options, f"tcp and host {SERVER.address}"], SERVER.name)
        with ExitStack() as ends:
            ends.callback(recorder.stop)
            recorder.await_output("listening", READY_S)
            sent = self.sent(congestion, loss, seconds)
        captured = losses(
            (segment.time_s, segment.destination_port, segment.sequence, segment.payload)
            for segment in read_capture(capture)
            if segment.source_port == WEB_PORT
        )
        by_tcptrace = traced(capture, WEB_PORT)
        capture.unlink()
        for transfer in sent["transfers"]:
            of = captured[transfer["port"]]
            transfer["captured"] = {name: getattr(of, name) for name in ("segments", "again", "events")}
            transfer["tcptrace"] = asdict(by_tcptrace[transfer["port"]])
        return sent
