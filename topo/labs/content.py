"""The lab of content switching: the demo's network, two agents, three groups of Apache servers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from topo.labs.apache import BACKLOG
from topo.labs.web import Lab
from topo.load import answering, asking, late_copies
from topo.plan.content import AGENTS, POOL, SHOP, SHOP_ADDRESS, ContentPool, content_config
from topo.plan.network import LOAD_CLIENT, Balance, HostPlan
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import listening
from topo.testbed.processes import Process, run_in

AGENT = REPOSITORY / "switch/target/release/sluice-agent"
READY_TIMEOUT_S = 20.0
BALANCE = Balance("production", 2.0, 10.0)

HINT = """\
The shop at http://10.0.0.110 has three groups of servers: all (s1, s2, s3), images (s1, s2) and fast (s3). Try:
  c1 curl -sI http://10.0.0.110/logo.gif | grep X-Server       R3: images
  c1 curl -s -i -H 'Content-Type: text/xml' -d '<purchase><totalAmount>60000</totalAmount></purchase>' \\
     http://10.0.0.110/buy | grep -a X-Server                   R1: fast
  c2 curl -sI http://10.0.0.110/page | grep X-Server           R4: this client's connections go to one server
  status                                                       rules, groups, agents
`help` lists all commands, `exit` ends the lab and removes everything."""


class ContentLab(Lab):
    """A lab whose service is switched by content."""

    target = SHOP_ADDRESS
    apache_directives = """\
KeepAlive On
KeepAliveTimeout 60
MaxKeepAliveRequests 0
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
Header always set X-Server {name}"""

    def __init__(
        self,
        kind: str,
        balance: Balance = BALANCE,
        *,
        content: Mapping[str, object] | None = None,
        say: Callable[[str], None] = print,
        pool: ContentPool = POOL,
        backlog: int = BACKLOG,
    ) -> None:
        """With ``content``, keys of the service's block ``content`` other than those of the paper."""
        super().__init__(kind, balance, say=say, pool=pool, backlog=backlog)
        if content is not None:
            self.content = partial(content_config, content=content)
        self.agents: dict[str, Process] = {}

    def control_of(self, agent: HostPlan) -> Path:
        """The socket on which an agent listens for the controller."""
        return self.directory / f"{agent.name}.sock"

    def start_agent(self, agent: HostPlan) -> None:
        """Start an agent, and return once it listens."""
        process = Process(
            f"agent {agent.name}",
            [
                str(AGENT),
                *("--interface", f"{agent.name}-eth0"),
                *("--address", str(agent.address), "--gateway", str(agent.gateway.ip)),
                *("--control", f"unix://{self.control_of(agent)}"),
            ],
            log=self.directory / f"{agent.name}.log",
            namespace_pid=self.pid(agent.name),
        )
        self._stack.callback(process.stop)
        process.await_output("control on", READY_TIMEOUT_S)
        self.agents[agent.name] = process

    def _agents(self) -> Mapping[str, str]:
        for agent in AGENTS:
            # The agent has its address to itself: a kernel would answer segments that it knows nothing of.
            run_in(self.pid(agent.name), ["ip", "address", "flush", "dev", f"{agent.name}-eth0"])
            self.start_agent(agent)
        self._say(f"agents ready: {', '.join(self.agents)}")
        return {agent.name: f"unix://{self.control_of(agent)}" for agent in AGENTS}

    def _hosts_to_meet(self) -> list[HostPlan]:
        return [host for host in super()._hosts_to_meet() if host not in AGENTS]


def curl(lab: Lab, *options: str, host: HostPlan = LOAD_CLIENT) -> str:
    """Run curl on a client; return what it prints. Raise SetupError when it fails."""
    return run_in(lab.pid(host.name), ["curl", "-sS", "--max-time", "10", *options])


def server_of(headers: str) -> str:
    """Who answered, by the header that each Apache sets. Raise SetupError where none has."""
    found = re.findall(r"^X-Server: (\w+)", headers, re.MULTILINE)
    if not found:
        raise SetupError(f"no X-Server in {headers!r}")
    return found[-1]


ANSWERING_RULES: Sequence[Mapping[str, object]] = (
    {"name": "images", "match": {"path": {"prefix": "/images"}}, "to": "images", "sticky": "none"},
    {"name": "fast", "match": {"path": {"prefix": "/fast"}}, "to": "fast", "sticky": "none"},
    {"name": "stay", "match": {"path": {"prefix": "/stay/images"}}, "to": "images"},
    {"name": "stay-fast", "match": {"path": {"prefix": "/stay/fast"}}, "to": "fast"},
    {"name": "order", "match": {"xml": {"order.total": "> 5000"}}, "to": "fast"},
)


class AnsweringLab(ContentLab):
    """Its servers answer so that every byte can be compared (`topo.load.answering`), and by other rules."""

    def __init__(self, kind: str, balance: Balance = BALANCE, content: Mapping[str, object] | None = None) -> None:
        rules = {"rules": list(ANSWERING_RULES)}
        super().__init__(kind, balance, content={**rules, **(content or {})})

    def start_server(self, server: HostPlan) -> Process:
        """Start a server, and return once it listens."""
        namespace_pid = self.pid(server.name)
        process = Process(
            server.name,
            [sys.executable, "-m", answering.__name__, "--name", server.name, "--address", str(server.address)],
            log=self.directory / f"{server.name}.log",
            namespace_pid=namespace_pid,
            cores=self._cores.servers,
            directory=REPOSITORY,
        )
        self._stack.callback(process.stop)
        process.await_true("listening", lambda: listening(namespace_pid, answering.PORT), READY_TIMEOUT_S)
        return process

    def _start_servers(self) -> None:
        self.servers = {server.name: self.start_server(server) for server in self.pool.servers}

    def with_rule(self, first: Mapping[str, object]) -> Mapping[str, Any]:
        """Its configuration with a rule before the others."""
        configuration = self.controller.configuration
        for service in configuration["services"]:
            if service["name"] == SHOP:
                service["content"]["rules"] = [first, *ANSWERING_RULES]
        return configuration

    def start_late_copies(self, server: HostPlan) -> Process:
        """Start to send copies of what a server sends (`topo.load.late_copies`)."""
        process = Process(
            f"late copies of {server.name}",
            [sys.executable, "-m", late_copies.__name__, "--interface", f"{server.name}-eth0"],
            log=self.directory / f"late-copies-{server.name}.log",
            namespace_pid=self.pid(server.name),
            directory=REPOSITORY,
        )
        self._stack.callback(process.stop)
        process.await_output("copying", READY_TIMEOUT_S)
        return process

    def start_asking(self, *options: str, host: HostPlan = LOAD_CLIENT) -> Process:
        """Start a client (`topo.load.asking`); its output is what `asked` reads."""
        self._loads += 1
        process = Process(
            f"asking {self._loads}",
            [sys.executable, "-m", asking.__name__, "--address", str(self.target), *options],
            log=self.directory / f"asking{self._loads}.log",
            namespace_pid=self.pid(host.name),
            directory=REPOSITORY,
        )
        self._stack.callback(process.stop)
        return process


def asked(client: Process, timeout_s: float = 120.0) -> asking.Outcome:
    """What has come of a client's requests, once it has ended; raise SetupError when it fails."""
    if client.wait(timeout_s):
        client.require_running()
    return asking.Outcome(**json.loads(client.output()))
