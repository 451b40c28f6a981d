"""Test of restarts with Tofino's model. Under load, gateway and controller are killed and restarted, first each alone,
then both in either order. Then driver and model are restarted without load.

The test needs an installation of open-p4studio, named by $SDE_INSTALL (docs/guide/tofino.md).
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from sluice.switch.pipeline import artefacts

from topo.plan.network import GRPC_PORT
from topo.testbed.network import SWITCH
from topo.testbed.processes import Process
from topo.testbed.switches import TOFINO, Endpoints
from topo.testbed.switches.tofino import INSTALLATION
from topo.tests import needs
from topo.tests.fixtures import lab_fixture
from topo.tests.steadynet import Load, SteadyNetwork

pytestmark = [
    needs.ROOT,
    pytest.mark.skipif(INSTALLATION not in os.environ, reason=f"${INSTALLATION} names no open-p4studio"),
]

PORTS = {port: f"port{port}" for port in (1, 2, 3)}
READY_S = 120.0
"""Seconds within which the controller must be ready; clearing the model's tables takes 10 to 45 s."""
KEPT, PER_S = 3, 1.0
"""Numbers of long-lived connections, and of new connections per second. They are small because the model forwards only
some 450 packets/s."""


class OnTheModel(SteadyNetwork):
    """A network of a client, two servers, and Tofino's model as the switch."""

    def __init__(self) -> None:
        super().__init__()
        self._model = ExitStack()

    def serve(self, ports: object) -> None:
        """Start model and driver, then the gateway, then `sluice run`."""
        del ports
        self.at_end(self._model.close)
        self.config = self.version("tofino")
        self.endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", self.directory)
        self.power_on()
        self.gateway = self.start_gateway()
        self.running = self.start_version(self.config)

    def power_on(self) -> None:
        """Stop model and driver if they run, start both, and return once the driver serves."""
        self._model.close()
        pipeline = artefacts() / TOFINO.folder
        self._model.enter_context(TOFINO.around(PORTS, self.endpoints, pipeline, self.pid(SWITCH)))

    def start_gateway(self) -> Process:
        """Start the gateway with a state file that a later gateway process reads."""
        command = TOFINO.command(TOFINO.find(), PORTS, self.endpoints)
        return self.start("gateway", [*command, "--state", str(self.directory / "state")], SWITCH)

    def ask(self, *words: str) -> str:
        """Return the output of a command of `sluice`."""
        sluice = str(Path(sys.executable).with_name("sluice"))
        return self.call(SWITCH, sluice, *words, "--config", str(self.config))


net = lab_fixture(OnTheModel)


def ready(controller: Process, times: int) -> str:
    """Wait until a controller has printed ``sluice: ready`` ``times`` times, and return the last such line."""

    def lines() -> list[str]:
        return [line for line in controller.output().splitlines() if line.startswith("sluice: ready")]

    controller.await_true(f"ready {times} times", lambda: len(lines()) >= times, READY_S)
    return lines()[-1]


def test_restarts_in_any_order(net: OnTheModel) -> None:
    assert "adopted=no" in ready(net.running, 1)
    load = Load(net, KEPT, PER_S)
    load.goes_on()

    # Restart only the gateway while the controller continues.
    net.gateway.stop(timeout_s=0.0)
    net.gateway = net.start_gateway()
    assert ready(net.running, 2).endswith("adopted=yes updates=0")
    load.goes_on()

    # Restart only the controller, with a drained server and a limit; then both, in either order.
    net.ask("drain", "s1")
    content = yaml.safe_load(net.config.read_text())
    content["services"][0]["admission"] = {"rate_per_s": 250, "burst": 32}
    net.config.write_text(yaml.safe_dump(content))
    assert net.ask("reload").startswith("reloaded: ")
    for restarted in (("controller",), ("gateway", "controller"), ("controller", "gateway")):
        for process in restarted:
            (net.gateway if process == "gateway" else net.running).stop(timeout_s=0.0)
        for process in restarted:
            if process == "gateway":
                net.gateway = net.start_gateway()
            else:
                net.running = net.start_version(net.config)
        assert ready(net.running, 1).endswith("adopted=yes updates=0"), restarted
        assert "draining" in net.ask("status"), restarted
        load.goes_on()
    net.ask("undrain", "s1")
    load.stop()
    assert load.progress().faults == []

    # Restart the model: connections are lost, but the configuration is restored.
    net.power_on()
    begun = time.monotonic()
    assert "adopted=no" in ready(net.running, 2)
    print(f"the configuration is as before {time.monotonic() - begun:.1f} s after the driver serves")
    Load(net, KEPT, PER_S).goes_on()
