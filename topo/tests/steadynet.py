"""A network of client, switch and two servers under steady load, for tests that replace controller or switch during the
load."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from topo.plan.network import CLIENT, SERVICE, VIP, WEB_PORT, servers_behind, service, switch_config
from topo.testbed import REPOSITORY
from topo.testbed.network import READY_S, SWITCH, NamespaceNetwork
from topo.testbed.processes import Process
from topo.tests.client import Outcome, Requests
from topo.tests.server import Server

SERVERS = servers_behind(2)
HOSTS = (CLIENT, *SERVERS)
PROGRAM = REPOSITORY / "p4src/build"
KEPT, PER_S = 20, 40
"""Default numbers of long-lived connections, and of new connections per second."""
PAUSE_S = 0.1
"""Seconds between two requests of a long-lived connection."""


class SteadyNetwork(NamespaceNetwork):
    """A network of client, switch and two servers, and controllers whose P4 programs may have tables of different
    sizes."""

    def build(self) -> None:
        """Connect the hosts to the switch, and start servers and switch."""
        self.hosts((SWITCH, *(host.name for host in HOSTS)))
        for host in HOSTS:
            self.attach(host)
        for server in SERVERS:
            process = self.start_program(Server(server.name, str(server.address)), server.name)
            self.await_listening(process, server.name, WEB_PORT)
        self.serve([host.port for host in HOSTS])

    def version(self, name: str, table: str = "", size: int = 0) -> Path:
        """Write a controller's configuration, and return its file; with `table`, that table of the P4 program has the
        size `size`."""
        folder = self.directory / name
        folder.mkdir()
        document: dict[str, Any] = switch_config(HOSTS, [service(SERVICE, VIP, SERVERS)])
        if table:
            document["switch"]["pipeline"] = str(folder)
            for file in ("sluice.json", "sluice.p4info.txtpb"):
                shutil.copy(PROGRAM / file, folder)
            _resize(folder, table, size)
        (folder / "sluice.yaml").write_text(yaml.safe_dump({**document, "control": str(folder / "s.sock")}))
        return folder / "sluice.yaml"

    def start_version(self, config: Path, *options: str) -> Process:
        """Start a controller with further command line options, for example as standby."""
        sluice = str(Path(sys.executable).with_name("sluice"))
        return self.start("controller", [sluice, "run", "--config", str(config), *options], SWITCH)


def _resize(folder: Path, table: str, size: int) -> None:
    """Change the size of a table in both files of a compiled P4 program."""
    program = json.loads((folder / "sluice.json").read_text())
    (entry,) = [row for pipe in program["pipelines"] for row in pipe["tables"] if row["name"] == table]
    before, entry["max_size"] = entry["max_size"], size
    (folder / "sluice.json").write_text(json.dumps(program))
    info = (folder / "sluice.p4info.txtpb").read_text()
    head, name, rest = info.partition(f'name: "{table}"')
    assert f"size: {before}\n" in rest
    (folder / "sluice.p4info.txtpb").write_text(head + name + rest.replace(f"size: {before}\n", f"size: {size}\n", 1))


class Progress(NamedTuple):
    """The counts that a load's clients have reported so far."""

    kept_answers: int
    """Number of requests answered on long-lived connections."""
    new_answers: int
    """Number of requests answered on new connections with a single request."""
    faults: Sequence[object]
    """Descriptions of failures."""


class Load:
    """Clients of the service: ``connections`` long-lived connections, and ``per_s`` new connections a second."""

    def __init__(self, net: SteadyNetwork, connections: int = KEPT, per_s: float = PER_S) -> None:
        self._connections = connections
        endless: dict[str, Any] = {"requests": 1 << 62, "pause_s": PAUSE_S}
        lasting = Requests(f"{VIP}:{WEB_PORT}", most_bytes=10, connections=connections, at_once=connections, **endless)
        workers = max(1, round(per_s))
        fresh = Requests(f"{VIP}:{WEB_PORT}", most_bytes=10, at_once=workers, apart_s=workers / per_s)
        self._processes = [net.start_program(clients, CLIENT.name) for clients in (lasting, fresh)]

    def progress(self) -> Progress:
        """Return the counts in the last complete line of output of each client."""
        outcomes = [_last(process) for process in self._processes]
        faults = [
            fault
            for outcome in outcomes
            for fault in (*outcome.wrong, *outcome.broken, *([outcome.mixed] if outcome.mixed else []))
        ]
        return Progress(outcomes[0].answered, outcomes[1].answered, faults)

    def goes_on(self) -> None:
        """Return once servers have answered further requests on long-lived and on new connections. Raises
        AssertionError after a fault."""
        before = self.progress()

        def more() -> bool:
            now = self.progress()
            have_kept_ones = now.kept_answers - before.kept_answers >= 3 * self._connections
            return bool(now.faults) or (have_kept_ones and now.new_answers >= before.new_answers + 10)

        self._processes[0].await_true("goes on", more, READY_S)
        assert self.progress().faults == []

    def stop(self) -> None:
        """End the load: each client awaits the answers to the requests that it has sent, and closes its connections."""
        for process in self._processes:
            process.stop()


def _last(process: Process) -> Outcome:
    lines = process.output().rpartition("\n")[0].splitlines()
    return Outcome(**json.loads(lines[-1])) if lines else Outcome()
