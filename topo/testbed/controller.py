"""The lab's controller: a process `sluice run` in the switch's namespace, which receives commands over its control
socket."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from sluice.loops.commands import Refused
from sluice.loops.controlclient import ask

from topo.plan.network import SERVICE
from topo.testbed.errors import SetupError
from topo.testbed.processes import Process

READY_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 30.0
CONFIGURATION, TRACE = "sluice.yaml", "trace.jsonl"
"""Names of files in the lab's directory: the controller's configuration, and its trace of decisions if the
configuration enables the trace."""


class SluiceRun:
    """A process `sluice run`, whose configuration is in the lab's directory."""

    def __init__(self, namespace_pid: int, directory: Path, patience_s: float | None = None) -> None:
        """``patience_s``: seconds within which the controller must answer a command; None: ANSWER_TIMEOUT_S."""
        self._patience_s = patience_s or ANSWER_TIMEOUT_S
        self._namespace_pid = namespace_pid
        self._directory = directory
        self._configuration = directory / CONFIGURATION
        self.control_socket = directory / "sluice.sock"
        self.trace = directory / TRACE
        self._program = str(Path(sys.executable).parent / "sluice")
        self.process: Process | None = None

    def configure(self, content: Mapping[str, object]) -> None:
        """Write the controller's configuration, to which the path of the control socket is added."""
        document = {**content, "control": str(self.control_socket)}
        self._configuration.write_text(yaml.safe_dump(document, sort_keys=False))

    def reload(self, content: Mapping[str, object]) -> None:
        """Replace the configuration of the running controller; raise SetupError if the controller refuses the new
        one."""
        self.configure(content)
        self.ask(command="reload")

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The configuration written last."""
        return yaml.safe_load(self._configuration.read_text())

    def start(self) -> None:
        """Start the controller, and return once it has programmed the pipeline."""
        self.process = Process(
            "sluice run",
            [self._program, "run", "--config", str(self._configuration)],
            log=self._directory / "controller.log",
            namespace_pid=self._namespace_pid,
        )
        self.process.await_output("sluice: ready", READY_TIMEOUT_S)

    def stop(self) -> None:
        """End the controller; the switch continues with its table entries."""
        if self.process is not None:
            self.process.stop()

    def ask(self, **request: object) -> Any:
        """Send a command to the controller and return its result; raise SetupError if the controller refuses the
        command."""
        try:
            return ask(str(self.control_socket), request, self._patience_s)
        except Refused as error:
            if self.process is not None:
                self.process.require_running()
            raise SetupError(f"the controller refuses {request}: {error}") from error

    def status_command(self) -> list[str]:
        """Return the command line that prints the controller's status."""
        return [self._program, "status", "--config", str(self._configuration)]

    def drain(self, server: str, *, drain: bool) -> None:
        """Drain a server (it receives no new connections), or end the draining."""
        self.ask(command="drain" if drain else "undrain", server=server)

    def set_mode(self, mode: str) -> None:
        """Select the mode of balancing, i.e. the algorithm that computes the ratios."""
        self.ask(command="mode", service=SERVICE, mode=mode)

    def weight_changes(self) -> list[float]:
        """Return the times at which the weights changed, from the controller's trace. Times are in seconds, on the
        clock of time.time()."""
        return weight_changes(self.trace.read_text().splitlines())


def weight_changes(lines: Sequence[str]) -> list[float]:
    """Return the times of the decisions that changed the service's weights, from the lines of a trace."""
    times: list[float] = []
    changes = 0
    for line in lines:
        decision: Mapping[str, Any] = json.loads(line)
        if decision["service"] == SERVICE and decision["weight_changes"] != changes:
            changes = decision["weight_changes"]
            times.append(float(decision["time"]))
    return times
