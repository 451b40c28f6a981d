"""The lab of content switching: the demo's network, two agents, three groups of Apache servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from topo.labs.web import Lab
from topo.labs.webservers import BACKLOG
from topo.plan.content import AGENTS, POOL, SHOP_ADDRESS, ContentPool, content_config
from topo.plan.network import LOAD_CLIENT, Balance, HostPlan
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError
from topo.testbed.network import READY_S
from topo.testbed.processes import Process

AGENT = REPOSITORY / "target/release/sluice-agent"
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
        """``content``: keys that replace the keys of equal name in the service's block ``content``."""
        super().__init__(kind, balance, say=say, pool=pool, backlog=backlog)
        self.content = content
        self.agents: dict[str, Process] = {}

    def control_of(self, agent: HostPlan) -> Path:
        """Return the socket on which an agent listens for the controller."""
        return self.directory / f"{agent.name}.sock"

    @property
    def controls(self) -> Mapping[str, str]:
        """The address on which each agent listens for the controller."""
        return {agent.name: f"unix://{self.control_of(agent)}" for agent in AGENTS}

    def start_agent(self, agent: HostPlan) -> None:
        """Start an agent, and return once it listens."""
        options = {
            "--interface": f"{agent.name}-eth0",
            "--address": str(agent.address),
            "--gateway": str(agent.gateway.ip),
            "--control": self.controls[agent.name],
        }
        words = [word for option in options.items() for word in option]
        self.agents[agent.name] = process = self.start(f"agent {agent.name}", [str(AGENT), *words], agent.name)
        process.await_output("control on", READY_S)

    def configuration(self) -> dict[str, object]:
        """Return the controller's configuration; the caller adds the paths of the controller's files."""
        return content_config(self.balance, controls=self.controls, thrift=self.switch.thrift, content=self.content)

    def _start_balancer(self) -> None:
        for agent in AGENTS:
            # Remove the agent's address from the kernel, which would answer segments of the agent's connections by
            # RSTs.
            self.call(agent.name, "ip", "address", "flush", "dev", f"{agent.name}-eth0")
            self.start_agent(agent)
        self._say(f"agents ready: {', '.join(self.agents)}")
        super()._start_balancer()

    def _hosts_to_meet(self) -> list[HostPlan]:
        return [host for host in super()._hosts_to_meet() if host not in AGENTS]


def curl(lab: Lab, *options: str, host: HostPlan = LOAD_CLIENT) -> str:
    """Run curl on a client and return its output. Raises SetupError if it fails."""
    return lab.call(host.name, "curl", "-sS", "--max-time", "10", *options)


def server_of(headers: str) -> str:
    """Return the server's name in the header that each Apache sets. Raises SetupError if the header is missing."""
    names = re.findall(r"^X-Server: (\w+)", headers, re.MULTILINE)
    if not names:
        raise SetupError(f"no X-Server in {headers!r}")
    return names[-1]
