"""Tests of servers' send buffers with real TCP: connections are measured, buffers shared, windows capped in the switch,
and the status reports all."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Sequence
from threading import Thread
from typing import Any

from sluice.config.model import SwitchConfig
from sluice.dataplane.connection import Connection
from sluice.dataplane.transfers import flow_index
from sluice.names import Register
from sluice.switch.choice import program_for
from sluice.switch.registers import open_registers
from sluice.switch.session import Session

from topo.labs.resources import BUDGET, PATHS, ResourcesLab
from topo.plan.network import DOWNLOAD_CLIENT, GRPC_PORT, LOAD_CLIENT, VIP, WEB_PORT, HostPlan
from topo.testbed.namespaces import connect_in
from topo.testbed.network import SWITCH
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.fixtures import lab_fixture
from topo.tests.reached import reached

pytestmark = needs.ROOT

TIMEOUT_S = 15.0
CAP_BITS = 32
SLACK = 1 << 14
"""Bytes by which a window may exceed its cap, for window scales up to 14."""


class Download:
    """A client that downloads a file with random content, in a thread."""

    def __init__(self, lab: ResourcesLab, client: HostPlan, size: int) -> None:
        self._original = os.urandom(size)
        (lab.files / client.name).write_bytes(self._original)
        self._socket = connect_in(lab.pid(client.name), (str(VIP), WEB_PORT), TIMEOUT_S)
        self._socket.sendall(f"GET /{client.name} HTTP/1.0\r\n\r\n".encode())
        self.client = client
        self.port: int = self._socket.getsockname()[1]
        self._received = bytearray()
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with self._socket:
            while more := self._socket.recv(1 << 16):
                self._received += more

    def runs(self) -> bool:
        """Return whether the download is still running."""
        return self._reader.is_alive()

    def is_whole(self) -> bool:
        """Wait for the end of the download; return whether the received bytes equal the file."""
        self._reader.join(TIMEOUT_S)
        return not self.runs() and bytes(self._received.partition(b"\r\n\r\n")[2]) == self._original


lab = lab_fixture(lambda: ResourcesLab("embedded"))


def caps_of(lab: ResourcesLab, downloads: Sequence[Download]) -> list[int]:
    """Return, from the switch's registers, the cap of each connection's window towards the client; 0: no cap."""

    async def read(address: str) -> list[int]:
        at = SwitchConfig(address=address)
        # The election id is below the controller's, so this session can only read.
        async with Session(address, at.device_id, await program_for(at), 1) as session:
            registers = await open_registers(session, None)
            caps: list[int] = []
            for download in downloads:
                place = Connection(download.client.address.packed, download.port, VIP.packed, WEB_PORT).place
                numbers = [flow_index(0, place.slot_1), flow_index(1, place.slot_2)]
                cells = await registers.read(Register.SEND_CAP, numbers)
                own = [cell for cell in cells if cell >> CAP_BITS == place.fingerprint]
                caps.append(own[0] % (1 << CAP_BITS) if own else 0)
            return caps

    with reached(lab.pid(SWITCH), GRPC_PORT) as address:
        return asyncio.run(read(address))


def send_buffers(lab: ResourcesLab) -> dict[str, Any]:
    """Return the state of the server's send buffers from the controller's status."""
    (service,) = lab.controller.ask(command="status")["services"]
    (server,) = service["servers"]
    return server["resources"]["send"]


def window_of(lab: ResourcesLab, download: Download) -> int:
    """Return the client's window in bytes, as the server's kernel sees it."""
    report = lab.call("s1", "ss", "-Htin", "dport", "=", f":{download.port}")
    (window,) = re.findall(r"snd_wnd:(\d+)", report)
    return int(window)


def test_two_unlike_transfers_share_a_budget(lab: ResourcesLab) -> None:
    both = near, far = Download(lab, LOAD_CLIENT, 30_000_000), Download(lab, DOWNLOAD_CLIENT, 8_000_000)
    caps: list[int] = []

    def follow_the_paths() -> bool:
        caps[:] = caps_of(lab, both)
        return caps[0] > 2 * caps[1] > 0

    await_true("each has a cap, the near one a larger", follow_the_paths, TIMEOUT_S)
    shown = send_buffers(lab)
    text = subprocess.run(lab.controller.status_command(), capture_output=True, text=True, check=True).stdout

    def windows_follow_the_caps() -> bool:
        # Caps change all the time, so they are read before and after the windows.
        before, windows, behind = (
            caps_of(lab, both),
            [window_of(lab, transfer) for transfer in both],
            caps_of(lab, both),
        )
        return all(window <= max(of) + SLACK for window, *of in zip(windows, before, behind, strict=True))

    await_true("a server's windows follow its caps", windows_follow_the_caps, TIMEOUT_S)
    assert near.runs() and far.runs(), "they were to be looked at while they run"
    assert sum(caps) <= BUDGET and shown["share"] <= BUDGET and shown["budget"] == BUDGET
    assert re.search(r"s1 send buffers: 256 KiB; in flight [\d,]+ KiB, .* 2 transfers", text), text
    for client in PATHS:
        lab.widen(client, 400)
    assert near.is_whole() and far.is_whole()
