"""The lab of content switching with rules for tests, and with servers whose answers a client can compute and compare
byte by byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topo.labs.content import BALANCE, ContentLab
from topo.load.flood import Flood
from topo.plan.content import SHOP
from topo.plan.network import DOWNLOAD_CLIENT, LOAD_CLIENT, WEB_PORT, Balance, HostPlan
from topo.testbed.network import READY_S
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import Process
from topo.tests.client import Outcome, Requests
from topo.tests.late_copies import LateCopies
from topo.tests.server import Server

RULES: Sequence[Mapping[str, object]] = (
    {"name": "images", "match": {"path": {"prefix": "/images"}}, "to": "images", "sticky": "none"},
    {"name": "fast", "match": {"path": {"prefix": "/fast"}}, "to": "fast", "sticky": "none"},
    {"name": "stay", "match": {"path": {"prefix": "/stay/images"}}, "to": "images"},
    {"name": "stay-fast", "match": {"path": {"prefix": "/stay/fast"}}, "to": "fast"},
    {"name": "order", "match": {"xml": {"order.total": "> 5000"}}, "to": "fast"},
)


class AnsweringLab(ContentLab):
    """A lab with the servers of `topo.tests.server`."""

    def __init__(self, kind: str, balance: Balance = BALANCE, content: Mapping[str, object] | None = None) -> None:
        super().__init__(kind, balance, content={"rules": list(RULES), **(content or {})})

    def start_server(self, server: HostPlan) -> Process:
        """Start a server, and return once it listens."""
        program = Server(server.name, str(server.address))
        process = self.start_program(program, server.name, cores=self._cores.servers)
        return self.await_listening(process, server.name, WEB_PORT)

    def _start_servers(self) -> None:
        self.servers = {server.name: self.start_server(server) for server in self.pool.servers}

    def with_rule(self, first: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the controller's configuration in which the content service has the rule ``first``, then RULES."""
        configuration = self.controller.configuration
        for service in configuration["services"]:
            if service["name"] == SHOP:
                service["content"]["rules"] = [first, *RULES]
        return configuration

    def start_late_copies(self, server: HostPlan) -> Process:
        """Start the program that sends delayed copies of a server's segments; return once the program has begun."""
        process = self.start_program(LateCopies(f"{server.name}-eth0"), server.name)
        process.await_output("copying", READY_S)
        return process

    def ask(self, *paths: str, host: HostPlan = LOAD_CLIENT, **options: Any) -> Process:
        """Start a client that requests random ones of ``paths``, with ``options`` of `Requests`; `outcome_of` waits for
        its end."""
        return self.start_program(Requests(f"{self.target}:{WEB_PORT}", paths, **options), host.name)


FLOOD_SYNS, FLOOD_END_S = 20_000, 30.0


def flood(lab: ContentLab) -> Process:
    """Start a flood of SYNs to the content service; the source addresses are in c2's subnet and belong to no host."""
    sources = f"10.0.{DOWNLOAD_CLIENT.subnet}.128/26"
    program = Flood(f"{lab.target}:{WEB_PORT}", sources, per_s=FLOOD_SYNS, seconds=1.0)
    return lab.start_program(program, DOWNLOAD_CLIENT.name)


def outcome_of(client: Process, timeout_s: float = 120.0) -> Outcome:
    """Wait for a client's end, and return the outcome of its requests; raise SetupError if the client fails."""
    return Outcome(**client.result(timeout_s))


def running() -> Iterator[AnsweringLab]:
    """Yield a running lab, for fixtures. Guessing is off: a client is connected to a server only after its request has
    been read, even if the client's last server is remembered."""
    with AnsweringLab(switch_kind(), content={"guess": False}) as lab:
        yield lab
