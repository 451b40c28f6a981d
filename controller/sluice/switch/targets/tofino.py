"""A Tofino behind sluice's gateway (``sluice-tofino``), which implements P4Runtime as far as the chip supports it.

The gateway itself, not the chip, stores weights, metadata and one-shot groups. The chip's driver rounds the rates of
meters (tofinometer.py).
"""

from __future__ import annotations

from finsy import P4Schema

from sluice.config.model import Config
from sluice.dataplane.units import NANOSECONDS

from . import bfpipeline, tofinometer
from .profile import Profile, RegisterAccess, lacks

PENDING_S, STEP = 10.0, 128
"""Constants of the compiled program that P4Runtime cannot set: the lifetime of a pending connection in seconds, and the
step of response rates in ticks (PENDING_TICKS and 1/32 of RATE_SLOT_TICKS in p4src/tna/target.p4)."""


def objection(config: Config, schema: P4Schema) -> str | None:
    """Return why a Tofino cannot run a configuration with a program, and the remedy; None if it can."""
    if config.connections.pending_s != PENDING_S:
        return f"connections.pending_s is part of the program for Tofino; leave it at {PENDING_S:g}"
    times = config.connections
    if max(times.pending_s, times.answered_s, times.linger_s) > min(times.idle_s, times.idle_least_s):
        return (
            "the program for Tofino stamps times relative to the idle time; leave connections.pending_s, answered_s "
            "and linger_s at or below idle_s and idle_least_s"
        )
    if config.news is not None and NANOSECONDS.step(config.news.rate_window_s) != STEP:
        return "news.rate_window_s is part of the program for Tofino; leave it at 1"
    return lacks(config, schema)


TOFINO = Profile(
    name="tofino",
    arch="tna",
    folder="tofino",
    units=NANOSECONDS,
    registers=RegisterAccess.P4RUNTIME,
    cell_cost=32,
    # Tofino's software model shares the host's processors: to read 65,536 cells took 1 s to 13 s.
    answer_s=60.0,
    reconciles=False,
    code=bfpipeline.code,
    bucket=tofinometer.nearest,
    objection=objection,
)
