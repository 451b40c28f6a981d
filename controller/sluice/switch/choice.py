"""Which program a switch gets: that of its kind."""

from __future__ import annotations

from sluice.config.model import SwitchConfig

from . import pipeline
from .pipeline import Pipeline
from .targets import TARGETS
from .targets.detect import detect


async def program_for(at: SwitchConfig, target: str | None = None) -> Pipeline:
    """The compiled program, with the target it is for: ``target`` or the one configured, the one the configured program
    is for, or what the switch says of itself. Raises SwitchError.
    """
    name = target or at.target
    if name is not None:
        return pipeline.load(at.pipeline, TARGETS[name])
    if at.pipeline:
        return pipeline.load(at.pipeline)
    return pipeline.load(None, await detect(at.address, at.device_id))
