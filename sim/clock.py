"""Virtual time: a SimPy environment that calls functions instead of resuming processes.

Each packet is one call. A generator for each packet would cost several times as much, and a run has millions of
packets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy


class _Call(simpy.Event):
    """An event that calls a function once, ``delay_s`` seconds after its creation."""

    def __init__(
        self, env: simpy.Environment, delay_s: float, call: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        # Sets the same attributes as simpy.Timeout, but omits the call of Event.__init__ to save time in millions of
        # events.
        self.env = env
        self.callbacks = [self._run]
        self._ok = True
        self._value = None
        self._call, self._args = call, args
        env.schedule(self, delay=delay_s)

    def _run(self, _: simpy.Event) -> None:
        self._call(*self._args)


class Clock:
    """Virtual time in seconds since the run began, and the calls that are due. Calls due at the same time are made in
    the order in which they were scheduled."""

    def __init__(self) -> None:
        self.env = simpy.Environment()

    @property
    def now(self) -> float:
        """The virtual time in seconds since the run began."""
        return self.env.now

    def after(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Call ``call(*args)`` after ``delay_s`` seconds. Raises ValueError for a delay below 0."""
        if delay_s < 0:
            raise ValueError(f"{delay_s} s from now is in the past")
        _Call(self.env, delay_s, call, args)

    def every(self, period_s: float, call: Callable[[], None]) -> None:
        """Call ``call`` at once and then once per period. Each time is computed from the time of the first call, so
        rounding errors do not add up."""
        start = self.env.now

        def tick(number: int) -> None:
            call()
            self.after(max(0.0, start + number * period_s - self.env.now), tick, number + 1)

        tick(1)

    def run(self, until_s: float) -> None:
        """Advance the time to ``until_s``, and make all calls that are due before ``until_s``, but none due at it."""
        self.env.run(until=until_s)
