"""Runs Tofino's model, its driver and the gateway as one of the two switches.

The model's ports are network interfaces, which do not preserve the order between frames of different ports. Therefore
consecutive frames of one port (a stretch) are sent only after the switch has counted a verdict for each frame of the
previous stretch.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from finsy.proto import p4i, p4r
from ptf import afpacket
from sluice.names import Counter

from topo.testbed import namespaces
from topo.testbed.errors import SetupError
from topo.testbed.p4runtime import Client
from topo.testbed.processes import Process
from topo.testbed.switches import TOFINO, Endpoints

from .side import State, answer_to, cells_of, counters_of, enable_digests, to_controller

GRPC_PORT = 9559
READY_S = 120.0
STUCK_S = 60.0
"""Seconds after which a stretch of frames counts as stuck; normally it takes a fraction of a second."""
LOOK_S = 0.005
QUIET_S = 1.0
"""Seconds without output after which the switch counts as idle; the driver delays digests by up to 0.5 s."""
LARGEST_FRAME = 1 << 16
ALL_PROTOCOLS = 3
"""Protocol number ETH_P_ALL of packet sockets (linux/if_ether.h)."""
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
"""Constants of packet sockets that Python lacks (linux/socket.h, linux/if_packet.h)."""


class ModelSide:
    """Tofino's model with driver and gateway, in a separate network namespace. Methods raise SetupError or Refused."""

    def __init__(self, name: str, folder: Path, pipeline: Path, ports: Sequence[int]) -> None:
        self.name = name
        self.client: Client | None = None
        self._verdicts = 0
        self._counted = 0
        self._waiting: list[tuple[int, bytes]] = []
        self._last_came = time.monotonic()
        self._came: dict[int, list[bytes]] = defaultdict(list)
        self._endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", folder)
        folder.mkdir()
        with ExitStack() as stack:
            cables = namespaces.lay(ports)
            ends = {cable.port: cable.switch_end for cable in cables}
            stack.enter_context(TOFINO.around(ends, self._endpoints, pipeline))
            command = TOFINO.command(TOFINO.find(), ends, self._endpoints, device_id=0)
            self._gateway = Process(f"the switch '{name}'", command, log=folder / "gateway.log", directory=folder)
            stack.callback(self._gateway.stop)
            self._sockets = {cable.port: _opened(cable.test_end) for cable in cables}
            for port, opened in self._sockets.items():
                stack.callback(opened.close)
                threading.Thread(target=self._receive, args=(port, opened), daemon=True).start()
            self._stack = stack.pop_all()

    @property
    def process(self) -> Process:
        """The gateway's process."""
        return self._gateway

    def __enter__(self) -> ModelSide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.client:
            self.client.close()
        self._stack.close()

    def load(self, p4info: p4i.P4Info, program: bytes) -> None:
        """Wait until the gateway serves, and send the P4Info of the program that the driver runs."""
        TOFINO.await_serving(self.process, self._endpoints, READY_S)
        self.client = Client.primary(self._endpoints.grpc)
        self.client.push(p4info, program)
        enable_digests(self.client, p4info)
        self._verdicts = next(
            counter.preamble.id for counter in p4info.counters if counter.preamble.name == Counter.VERDICTS
        )

    def write(self, updates: Iterable[p4r.Update]) -> tuple[int, ...]:
        """Write updates; return the status code of each, or () if all were accepted. Raises Refused if the
        switch cannot be reached."""
        assert self.client
        return answer_to(self.client, updates)

    def send(self, frames: Sequence[tuple[int, bytes]], marker: bytes) -> None:
        """Send frames in this order, followed by a marker on one port. Returns when all frames have verdicts.

        Consecutive frames of one port are sent together, once all earlier frames have verdicts. The next call sends
        the markers of the other ports, because the other switch (see `Side.send`) also processes them in the next
        round.
        """
        first, *others = ((port, marker) for port in self._sockets)
        waiting, self._waiting = self._waiting, others
        for port, stretch in groupby([*waiting, *frames, first], itemgetter(0)):
            for _, frame in stretch:
                self._sockets[port].send(frame)
                self._counted += 1
            self._await_verdicts()

    def _await_verdicts(self) -> None:
        deadline = time.monotonic() + STUCK_S
        while (there := self._verdicts_counted()) < self._counted:
            if time.monotonic() > deadline:
                raise SetupError(f"{self.name}: {there} of {self._counted} frames have a verdict after {STUCK_S:g} s")
            time.sleep(LOOK_S)

    def _verdicts_counted(self) -> int:
        assert self.client
        pattern = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=self._verdicts))
        return sum(entity.counter_entry.data.packet_count for entity in self.client.read([pattern]))

    def await_quiet(self, watch: Callable[[], None]) -> None:
        """Wait until there was no output for QUIET_S; call ``watch`` repeatedly during the wait."""
        quiet_from = time.monotonic()
        while time.monotonic() - max(quiet_from, self._last_came) < QUIET_S:
            watch()
            time.sleep(LOOK_S)

    def _receive(self, port: int, opened: socket.socket) -> None:
        while True:
            try:
                frame = cast(bytes, cast(Any, afpacket).recv(opened, LARGEST_FRAME))
            except RuntimeError:
                return  # the socket was closed
            self._came[port].append(frame)
            self._last_came = time.monotonic()

    def came(self) -> dict[int | str, list[bytes]]:
        """Return the output since the previous call: frames by port, and messages to the controller."""
        assert self.client
        out = {port: self._came.pop(port, []) for port in self._sockets}
        return {**out, **to_controller(self.client)}

    def state(self, p4info: p4i.P4Info) -> State:
        """Return the counters, and the registers whose cells are single numbers. Other registers and the table entries
        differ between the two programs."""
        assert self.client
        single = [register for register in p4info.registers if not register.type_spec.HasField("struct")]
        registers = {register.preamble.name: cells_of(self.client, register) for register in single}
        return State(registers, counters_of(self.client, p4info), {})


def _opened(interface: str) -> socket.socket:
    """Open a packet socket that also delivers VLAN tags, which the kernel strips and returns as auxiliary data."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    cast(Any, afpacket).enable_auxdata(opened)
    opened.bind((interface, 0))
    return opened
