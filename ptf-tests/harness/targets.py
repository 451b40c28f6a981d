"""Start of the switches under test, of any kind in topo.testbed.switches."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluice.names import CPU_PORT

from topo.testbed.namespaces import Cable
from topo.testbed.processes import Process
from topo.testbed.switches import KINDS, Endpoints

READY_S = 30.0
"""Seconds after which a started switch that does not answer has failed."""

GRPC_PORT = 9559
THRIFT_PORT = 9090
DEVICE_ID = 1
DROP_PORT = 511


@dataclass(frozen=True)
class Given:
    """A running switch: address of its P4Runtime server, device id, address of its Thrift server (None: no Thrift)."""

    address: str
    device_id: int
    thrift: str | None


@dataclass(frozen=True)
class Running(Given):
    """A switch that the tests have started and that answers P4Runtime requests."""

    process: Process


@contextmanager
def running(name: str, cables: list[Cable], log: Path, pipeline: Path) -> Generator[Running]:
    """Start the switch, wait until it answers, and end it after the block; raise SetupError if it does not answer.

    `pipeline` is the folder of the program, for the kinds of switches that are started with the program.
    """
    kind, folder = KINDS[name], log.parent
    endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", folder, THRIFT_PORT)
    ports = {cable.port: cable.switch_end for cable in cables}
    target = ("--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT))
    command = kind.command(kind.find(), ports, endpoints, device_id=DEVICE_ID, target=target)
    with kind.around(ports, endpoints, pipeline):
        process = Process(f"the {name} switch", command, log=log, directory=folder)
        try:
            kind.await_serving(process, endpoints, READY_S)
            thrift = f"127.0.0.1:{THRIFT_PORT}" if kind.thrift else None
            yield Running(endpoints.grpc, DEVICE_ID, thrift, process)
        finally:
            process.stop()
