"""Functions that run a controller in the test's process against the fake switch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fakeswitch import FakeSwitch
from sluice.config.load import load
from sluice.controller import Controller
from sluice.features.balance.trace import Trace
from sluice.loops.link import Link

PATIENCE_S = 60.0

WriteConfig = Callable[..., Path]
"""Function that writes a configuration for the fake switch; its keywords are those of `configs.web`."""


async def until(condition: Callable[[], object], what: str = "condition") -> None:
    """Wait until a condition holds; if the time runs out, fail with the condition's description `what`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - in real life the condition is another process's state
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE_S:g} s in vain for: {what}") from None


class Running:
    """A running controller, and the lines that it has printed."""

    def __init__(self, config: Path) -> None:
        self.config_path = config
        self.lines: list[str] = []
        self._trace_path = config.with_suffix(f".{id(self)}.jsonl")
        self.trace = Trace(self._trace_path)
        self.controller = Controller(load(config), str(config), self.trace, self.lines.append)

    @property
    def link(self) -> Link:
        """The controller's link to the switch; it exists while the controller is the primary one."""
        assert self.controller.link is not None
        return self.controller.link

    def ready(self, times: int = 1) -> bool:
        """Return whether the controller has printed at least `times` times that it is ready."""
        return sum(line.startswith("sluice: ready") for line in self.lines) >= times

    def decisions(self) -> list[dict[str, Any]]:
        """Return the balancing decisions that the controller has written to its trace."""
        return [json.loads(line) for line in self._trace_path.read_text().splitlines()]


@asynccontextmanager
async def running(config: Path, *, ready: bool = True) -> AsyncGenerator[Running]:
    """Run a controller while the block runs; then end the controller as Ctrl-C does.

    `ready`: the block begins only after the controller's first decision.
    """
    it = Running(config)
    task = asyncio.create_task(it.controller.run())
    try:
        if ready:
            await until(lambda: it.ready() or task.done(), "the ready line")
            if task.done():
                task.result()
            # Decisions use differences from the first reading. What a test counts enters them only after that reading,
            # and the first decision proves that the reading has ended.
            await until(it.decisions, "the first decision")
        yield it
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
        it.trace.close()


async def run_once(config: Path) -> None:
    """Run a controller up to its first decision, then end it."""
    async with running(config):
        pass


def rivals(write_config: WriteConfig, **options: str) -> tuple[Path, Path]:
    """Write configurations of two controllers for one switch; the second has the higher election id."""
    low, high = write_config("low.yaml", **options), write_config("high.yaml", **options)
    for config, election_id in ((low, 5), (high, 9)):
        config.write_text(config.read_text().replace("device_id: 1", f"device_id: 1, election_id: {election_id}"))
    return low, high


def feed(switch: FakeSwitch, server: int, syn: int, synack: int) -> None:
    """Add `syn` SYNs, `synack` SYN-ACKs and `synack` completed handshakes to a server's counters."""
    switch.count("ledger_syn", server, syn)
    switch.count("ledger_synack", server, synack)
    switch.count("ledger_completed", server, synack)


async def overload(switch: FakeSwitch) -> None:
    """Let server 1 lose half of its SYNs; wait until its weight has decreased."""
    feed(switch, 1, syn=100, synack=50)
    feed(switch, 2, syn=100, synack=100)
    await until(lambda: switch.weights(1)[1] < 100, "server 1 to lose share")


async def settled(it: Running) -> None:
    """Wait until the window of counts is empty, after which the weights no longer change."""
    await until(lambda: _empty(it.decisions()[-1]), "the window to pass")


def _empty(decision: dict[str, Any]) -> bool:
    return not any(any(server["window"].values()) for server in decision["servers"].values())
