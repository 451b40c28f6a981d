"""A client that keeps and makes connections, a switch, two servers: for tests that replace parts beneath the load."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from topo.plan.network import WEB_PORT
from topo.testbed import REPOSITORY
from topo.testbed.nets import GRPC_PORT, READY_S, SWITCH, Net
from topo.testbed.processes import Process
from topo.tests.talker import READY

CLIENT, VIP = "192.0.2.10", "198.18.0.80"
SERVERS = {"s1": "198.51.100.11", "s2": "203.0.113.11"}
MACS = {"client": "02:00:00:00:01:10", "s1": "02:00:00:00:02:11", "s2": "02:00:00:00:03:11"}
HERE = Path(__file__).parent
PROGRAM = REPOSITORY / "p4src/build"
KEPT, PER_S = 20, 40
"""Connections that the load keeps, and new ones a second, by default."""


class SteadyNet(Net):
    """Client, switch and two servers, and controllers with programs of several sizes."""

    def __init__(self, prefix: str = "sluice-steady-") -> None:
        super().__init__(prefix)

    def build(self) -> None:
        """See Net."""
        self.hosts(("client", SWITCH, *SERVERS))
        self.attach("client", 1, MACS["client"], CLIENT)
        for port, (name, address) in enumerate(SERVERS.items(), 2):
            self.attach(name, port, MACS[name], address)
            command = [sys.executable, str(HERE / "talker.py"), name, address, str(WEB_PORT)]
            self.start(name, command, name).await_output(READY, READY_S)
        self.serve((1, 2, 3))

    def version(self, name: str, table: str = "", size: int = 0) -> Path:
        """A controller's configuration, whose program has a table of another size."""
        folder = self.directory / name
        folder.mkdir()
        wanted: dict[str, Any] = {"address": f"127.0.0.1:{GRPC_PORT}"}
        if table:
            wanted["pipeline"] = str(folder)
            for file in ("sluice.json", "sluice.p4info.txtpb"):
                shutil.copy(PROGRAM / file, folder)
            _resize(folder, table, size)
        text = yaml.safe_dump(configuration(wanted, folder / "s.sock"))
        (folder / "sluice.yaml").write_text(text)
        return folder / "sluice.yaml"

    def controller(self, config: Path, *options: str) -> Process:
        """Start one; it may have to stand by."""
        sluice = str(Path(sys.executable).with_name("sluice"))
        return self.start("controller", [sluice, "run", "--config", str(config), *options], SWITCH)


def _resize(folder: Path, table: str, size: int) -> None:
    """In both files of a compiled program."""
    program = json.loads((folder / "sluice.json").read_text())
    (found,) = [one for pipe in program["pipelines"] for one in pipe["tables"] if one["name"] == table]
    before, found["max_size"] = found["max_size"], size
    (folder / "sluice.json").write_text(json.dumps(program))
    info = (folder / "sluice.p4info.txtpb").read_text()
    head, name, rest = info.partition(f'name: "{table}"')
    assert f"size: {before}\n" in rest
    (folder / "sluice.p4info.txtpb").write_text(head + name + rest.replace(f"size: {before}\n", f"size: {size}\n", 1))


def configuration(switch: dict[str, Any], control: Path) -> dict[str, Any]:
    """One service, two servers."""
    gateways = {1: "192.0.2.1/24", 2: "198.51.100.1/24", 3: "203.0.113.1/24"}
    return {
        "switch": switch,
        "interfaces": [{"port": n, "mac": f"02:00:00:00:00:0{n}", "address": at} for n, at in gateways.items()],
        "control": str(control),
        "services": [
            {
                "name": "web",
                "address": VIP,
                "port": WEB_PORT,
                "servers": [{"name": name, "address": at, "port": WEB_PORT} for name, at in SERVERS.items()],
            }
        ],
    }


class Progress(NamedTuple):
    """What steady.py has counted so far."""

    kept_answers: int
    """On the connections that it keeps."""
    new_answers: int
    """A connection each."""
    faults: list[str]
    """What failed, a text each."""


class Load:
    """steady.py in the client's namespace: it keeps ``connections``, and makes ``per_s`` new ones a second."""

    def __init__(self, net: SteadyNet, connections: int = KEPT, per_s: float = PER_S) -> None:
        self._connections = connections
        words = [str(HERE / "steady.py"), VIP, str(WEB_PORT), str(connections), str(per_s)]
        self.process = net.start("load", [sys.executable, *words], "client")

    def progress(self) -> Progress:
        """The last whole line of steady.py."""
        whole = self.process.output().rpartition("\n")[0].splitlines()
        kept, new, faults = json.loads(whole[-1]) if whole else (0, 0, [])
        return Progress(kept, new, faults)

    def goes_on(self) -> None:
        """Return once servers have answered on kept and new connections again. AssertionError if any has failed."""
        before = self.progress()

        def more() -> bool:
            now = self.progress()
            have_kept_ones = now.kept_answers - before.kept_answers >= 3 * self._connections
            return bool(now.faults) or (have_kept_ones and now.new_answers >= before.new_answers + 10)

        self.process.await_true("goes on", more, READY_S)
        assert self.progress().faults == []
