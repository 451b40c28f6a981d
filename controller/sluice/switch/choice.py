"""Selects the compiled program for a switch, by the switch's kind."""

from __future__ import annotations

from sluice.config.model import SwitchConfig

from . import pipeline
from .pipeline import Pipeline
from .targets import TARGETS
from .targets.detect import detect


async def program_for(switch: SwitchConfig, target: str | None = None) -> Pipeline:
    """Return the compiled program for a switch; the returned object also states the program's target. Raises
    SwitchError.

    The target is ``target`` if given, else the configured target, else that of the configured program, else the target
    that the switch reports.
    """
    name = target or switch.target
    if name is not None:
        return pipeline.load(switch.pipeline, TARGETS[name])
    if switch.pipeline:
        return pipeline.load(switch.pipeline)
    return pipeline.load(None, await detect(switch.address, switch.device_id))
