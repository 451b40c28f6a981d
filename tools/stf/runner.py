"""Runs a test: starts a switch, executes the statements in order, and compares the output packets."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from sluice.replay.capturefile import CaptureError

from topo.testbed import captures
from topo.testbed.errors import SetupError
from topo.testbed.p4runtime import Client, Refused
from topo.testbed.switches.piped import Pipes, Switch, start

from .control import Control
from .expectations import differences
from .programs import CompileError, NotForV1model, Program, program_of
from .statements import Add, CheckCounter, Command, Expect, Packet, SetDefault, Statement, StfError, parse

END_OF_INPUTS = "all input files are at their end"
"""The line that the embedded switch logs after the last packet."""
DONE_S = 30.0
"""Seconds for which the test waits until the switch has processed the packets sent so far; then the test fails."""


class Outcome(Enum):
    """The outcome of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """A test's outcome, with the reason if the test did not pass."""

    name: str
    outcome: Outcome
    reason: str = ""


def run(test: Path, binary: Path) -> Result:
    """Run a test. The result is failed after an error of the test, its files or the switch; it is skipped if the
    program is for another architecture."""
    with tempfile.TemporaryDirectory(prefix="stf-") as folder:
        try:
            statements = parse(test.read_text())
            wrong = _run(statements, program_of(test, Path(folder)), binary, Path(folder))
        except NotForV1model as architecture:
            return Result(test.stem, Outcome.SKIPPED, f"for {architecture}, not v1model")
        except (StfError, CompileError, SetupError, Refused, CaptureError, OSError) as error:
            return Result(test.stem, Outcome.FAILED, str(error))
    return Result(test.stem, Outcome.FAILED if wrong else Outcome.PASSED, "\n".join(wrong))


def _run(statements: list[Statement], program: Program, binary: Path, folder: Path) -> list[str]:
    ports = sorted({statement.port for statement in statements if isinstance(statement, Packet | Expect)})
    senders = sorted({statement.port for statement in statements if isinstance(statement, Packet)})
    for port in set(ports) - set(senders):
        (folder / f"p{port}_in.pcap").write_bytes(captures.HEADER)
    pipes = Pipes({port: folder / f"p{port}_in.pcap" for port in senders}, captures.HEADER)
    statistics = folder / "statistics"
    switch = start(folder, binary, ["--no-p4"], ports, ["--stats-file", str(statistics)])
    try:
        switch.await_ready()
        client = Client.primary(switch.address)
        try:
            client.push(program.p4info, program.json.read_bytes())
            control = Control(client, program.p4info)
            wrong = _Script(in_order(statements), pipes, control, statistics, switch).play()
            pipes.close()
            await_end(switch)
        finally:
            client.close()
    finally:
        pipes.close()
        switch.end()
    received = {port: captures.read(path) for port, path in switch.outputs.items()}
    expected = (statement for statement in statements if isinstance(statement, Expect))
    return differences(expected, received) + wrong


Step = Packet | Add | SetDefault | Command | CheckCounter


def in_order(statements: Iterable[Statement]) -> list[Step]:
    """Return the test's steps: all statements except the expected packets.

    If the test sends packets into one port, the steps keep the test's order. If it sends into several, the switch
    processes some packets only when later ones arrive (see `_Script`); so all commands come first, then all packets,
    then all checks of counters.
    """
    script: list[Step] = [statement for statement in statements if not isinstance(statement, Expect)]
    if _several_send(script):
        script.sort(key=lambda step: isinstance(step, Packet | CheckCounter) + isinstance(step, CheckCounter))
    return script


def _several_send(script: Iterable[Step]) -> bool:
    return len({step.port for step in script if isinstance(step, Packet)}) > 1


class _Script:
    """Executes the steps of `in_order`: sends packets and commands to the switch, and checks counters.

    A switch that reads named pipes processes the earliest packet only once it has read every port's next packet. So
    with several pipes, packets wait for later packets. (p4c's runner also uses pipes for BMv2, with the same effect.)
    """

    def __init__(self, script: list[Step], pipes: Pipes, control: Control, statistics: Path, switch: Switch) -> None:
        self._script, self._pipes, self._control = script, pipes, control
        self._statistics, self._switch = statistics, switch
        self._sent = self._seen = 0

    def play(self) -> list[str]:
        """Execute the script; return messages about wrong counters."""
        wrong: list[str] = []
        for step in self._script:
            if isinstance(step, Packet):
                # Time stamps are a second apart, because the switch orders a capture's packets by time.
                self._pipes.write(step.port, captures.record(step.data, self._sent, 0))
                self._sent += 1
                continue
            if isinstance(step, CheckCounter) and _several_send(self._script):
                self._pipes.close()
            self._await_packets()
            if isinstance(step, CheckCounter):
                wrong.append(self._checked(step))
            else:
                self._carry_out(step)
        return [text for text in wrong if text]

    def _checked(self, step: CheckCounter) -> str:
        try:
            return self._control.check(step) or ""
        except (StfError, Refused) as error:
            raise StfError(f"line {step.line}: {error}") from None

    def _carry_out(self, statement: Add | SetDefault | Command) -> None:
        try:
            self._control.carry_out(statement)
        except (StfError, Refused, ValueError) as error:
            raise StfError(f"line {statement.line}: {error}") from None

    def _await_packets(self) -> None:
        """Wait until the switch has processed every packet sent so far."""
        if self._sent == self._seen:
            return
        deadline = time.monotonic() + DONE_S
        while self._received() < self._sent:
            self._switch.process.require_running()
            if time.monotonic() > deadline:
                raise StfError(f"of {self._sent} packets {self._received()} are through after {DONE_S:g} s")
            time.sleep(0.05)
        self._seen = self._sent

    def _received(self) -> int:
        try:
            statistics = json.loads(self._statistics.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return 0
        return sum(port["rx_packets"] for port in statistics["ports"].values())


def await_end(switch: Switch) -> None:
    """Wait until the switch has processed the packets of all inputs. Raises SetupError."""
    switch.process.await_output(END_OF_INPUTS, DONE_S)
