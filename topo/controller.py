"""The lab's controller: `sluice run` in the switch's namespace, asked over its control socket."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml
from sluice.loops.commands import Refused
from sluice.loops.controlclient import ask

from testbed.processes import Process
from topo.errors import LabError
from topo.observation import Counts, Observation
from workload.content import content_config
from workload.plan import SERVICE, THREE, Balance, PoolPlan, controller_config

READY_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 30.0
CONFIGURATION = "sluice.yaml"
"""In the lab's directory."""


class SluiceRun:
    """A running `sluice run`, with its configuration in the lab's directory."""

    def __init__(self, *, namespace_pid: int, directory: Path, patience_s: float = ANSWER_TIMEOUT_S) -> None:
        """``patience_s``: until it has answered a command."""
        self._patience_s = patience_s
        self._namespace_pid = namespace_pid
        self._directory = directory
        self._configuration = directory / CONFIGURATION
        self.control_socket = directory / "sluice.sock"
        self._program = str(Path(sys.executable).parent / "sluice")
        self.process: Process | None = None

    def configure(self, content: Mapping[str, object]) -> None:
        """Write its configuration."""
        self._configuration.write_text(yaml.safe_dump(dict(content), sort_keys=False))

    def reload(self, content: Mapping[str, object]) -> None:
        """Replace its configuration while it runs; raise LabError if it is refused."""
        self.configure(content)
        self.ask(command="reload")

    @property
    def configuration(self) -> Mapping[str, Any]:
        """What it was last configured with."""
        return yaml.safe_load(self._configuration.read_text())

    def start(self) -> None:
        """Start it and return once the pipeline is programmed."""
        self.process = Process(
            "sluice run",
            [self._program, "run", "--config", str(self._configuration)],
            log=self._directory / "controller.log",
            namespace_pid=self._namespace_pid,
        )
        self.process.await_output("sluice: ready", READY_TIMEOUT_S)

    def stop(self) -> None:
        """End it; the switch goes on without."""
        if self.process is not None:
            self.process.stop()

    def ask(self, **request: object) -> Any:
        """Have the controller do one command and return its result; raise LabError if it is refused."""
        try:
            return ask(str(self.control_socket), request, self._patience_s)
        except Refused as error:
            if self.process is not None:
                self.process.require_running()
            raise LabError(f"the controller refuses {request}: {error}") from error

    def status_command(self) -> list[str]:
        """Return the command line that shows the status."""
        return [self._program, "status", "--config", str(self._configuration)]


class Controller(SluiceRun):
    """The controller of the demo's network, or, with agents' control addresses, of a lab of content switching, whose
    configuration `content` makes."""

    def __init__(
        self,
        balance: Balance,
        *,
        namespace_pid: int,
        directory: Path,
        thrift: bool,
        pool: PoolPlan = THREE,
        agents: Mapping[str, str] | None = None,
        content: Callable[..., Mapping[str, object]] = content_config,
    ) -> None:
        super().__init__(namespace_pid=namespace_pid, directory=directory)
        self.trace = directory / "trace.jsonl"
        files = {"control_socket": str(self.control_socket), "trace_file": str(self.trace)}
        if agents is None:
            self.configure(controller_config(balance, **files, thrift=thrift, pool=pool))
        else:
            self.configure(content(balance, **files, thrift=thrift, controls=agents))

    def observe(self) -> Observation:
        """Return what the controller sees now."""
        return read_status(self.ask(command="status"), time.time())

    def set_mode(self, mode: str) -> None:
        """Have another algorithm decide the ratios from now on."""
        self.ask(command="mode", service=SERVICE, mode=mode)

    def drain(self, server: str, *, drain: bool) -> None:
        """Give a server no new connections, or its share again."""
        self.ask(command="drain" if drain else "undrain", server=server)

    def weight_changes(self) -> Sequence[float]:
        """Return when the weights were changed (seconds, time.time()), from the controller's trace."""
        return weight_changes(self.trace.read_text().splitlines())


def read_status(status: Mapping[str, Any], now: float) -> Observation:
    """Read the answer to `status`; raise LabError while the controller does not lead the switch."""
    if "services" not in status:
        raise LabError(f"the controller has lost the switch: it is {status['role']}")
    (service,) = (one for one in status["services"] if one["name"] == SERVICE)
    servers = {server["name"]: server for server in service["servers"]}
    packets = status["packets"]
    return Observation(
        time=now,
        ratios={name: float(server["ratio"]) for name, server in servers.items()},
        r={name: None if server["r"] is None else float(server["r"]) for name, server in servers.items()},
        counts={
            name: Counts(**{field.name: int(server[field.name]) for field in fields(Counts)})
            for name, server in servers.items()
        },
        drops=packets["drops"],
        forwarded=packets["forwarded"],
        punts=packets["punts"],
        injected=packets["injected"],
    )


def weight_changes(lines: Sequence[str]) -> list[float]:
    """Return the times of the decisions that changed the service's weights, from the lines of a trace."""
    times: list[float] = []
    known = 0
    for line in lines:
        decision: Mapping[str, Any] = json.loads(line)
        if decision["service"] == SERVICE and decision["weight_changes"] != known:
            known = decision["weight_changes"]
            times.append(float(decision["time"]))
    return times
