"""The lab of content switching: the demo's network, two agents, three groups of Apache servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from testbed.processes import Process, run_in
from topo.network import Lab
from topo.switches import REPOSITORY
from workload.content import AGENTS, POOL, SHOP_ADDRESS
from workload.plan import Balance, HostPlan

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

    def __init__(self, kind: str, balance: Balance = BALANCE) -> None:
        super().__init__(kind, balance, pool=POOL)
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
