"""A fake agent in the test's process: it accepts configurations and sends reports, but handles no packets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import grpc
import grpc.aio
from sluice.agents.messages import MESSAGES, SERVICE, make


class FakeAgent:
    """A fake agent on a Unix socket; `start`, `stop` and `restart` act like the start and end of a process."""

    def __init__(self, path: Path) -> None:
        self.control = f"unix://{path}"
        self.configurations: list[Any] = []
        """All configurations that the agent received."""
        self.refuses: list[Any] = []
        """Problems that the agent reports when it refuses a configuration; empty: the agent accepts."""
        self.has: Any = None
        self.shared: list[Any] = []
        """Messages from the controller with what other agents have learned about server groups."""
        self.learned: dict[str, Any] = {}
        """Learned properties of server groups that the agent reports, by group."""
        self.hits: dict[str, int] = {}
        self.draining = False
        self.reports = 0
        """Number of reports that the agent has sent."""
        self.talks = asyncio.Event()
        self.talks.set()
        self._server: grpc.aio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to listen for the controller, without a configuration."""
        self.has = None
        self._server = grpc.aio.server()
        handlers: dict[str, Any] = {
            "Configure": grpc.unary_unary_rpc_method_handler(
                self._configure,
                MESSAGES["Configuration"].FromString,
                MESSAGES["Verdict"].SerializeToString,
            ),
            "Share": grpc.unary_unary_rpc_method_handler(
                self._share,
                MESSAGES["SharedAbilities"].FromString,
                MESSAGES["ShareResponse"].SerializeToString,
            ),
            "Watch": grpc.unary_stream_rpc_method_handler(
                self._watch,
                MESSAGES["WatchRequest"].FromString,
                MESSAGES["Status"].SerializeToString,
            ),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self._server.add_insecure_port(self.control)
        await self._server.start()

    async def stop(self) -> None:
        """End at once, as if the process was killed."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def _configure(self, wanted: Any, _: Any) -> Any:
        self.configurations.append(wanted)
        if self.refuses:
            return make("Verdict", problems=self.refuses)
        self.has = wanted
        return make("Verdict")

    async def _share(self, abilities: Any, _: Any) -> Any:
        self.shared.append(abilities)
        return make("ShareResponse")

    async def _watch(self, request: Any, _: Any) -> AsyncIterator[Any]:
        while True:
            await self.talks.wait()
            yield self._status()
            await asyncio.sleep(min(0.05, request.interval_ms / 1000))

    def _status(self) -> Any:
        self.reports += 1
        served = self.has.services if self.has else ()
        return make(
            "Status",
            generation=self.has.generation if self.has else 0,
            uptime_ms=1500,
            connections=3,
            waiting=2,
            memory=4096,
            draining=self.draining,
            services=[
                make(
                    "ServiceStatus",
                    name=response.name,
                    handshakes=10,
                    spliced=8,
                    by_default=5,
                    guesses_right=7,
                    guesses_wrong=2,
                    guesses_reset=1,
                    rules=[make("RuleStatus", name=name, hits=hits) for name, hits in self.hits.items()],
                    groups=[
                        make("GroupStatus", name=name, opened=4, failed=1, ability=self.learned.get(name))
                        for name in response.groups
                    ],
                    refused={"403": 2},
                )
                for response in served
            ],
        )
