"""A Tofino behind sluice's gateway (``sluice-tofino``): all of P4Runtime that the chip can do.

The gateway keeps weights, metadata and one-shot groups itself. Rates are the driver's (tofinometer.py); a register is
copied from the chip as a whole, whatever part of it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from finsy import P4Schema
from finsy.proto import p4r

from sluice.config import Config

from . import bfpipeline, stratum, tofinometer
from .profile import Profile, RegisterAccess, lacks
from .units import NANOSECONDS


def entry(wanted: p4r.TableEntry) -> p4r.TableEntry:
    """Unchanged."""
    return wanted


def weights_of(_schema: P4Schema, _table: int, _groups: int, weights: Sequence[int]) -> list[int]:
    """Unchanged."""
    return list(weights)


def objection(config: Config, schema: P4Schema) -> str | None:
    """See Profile."""
    return stratum.compiled_in(config) or lacks(config, schema)


TOFINO = Profile(
    name="tofino",
    arch="tna",
    folder="tofino",
    units=NANOSECONDS,
    registers=RegisterAccess.WHOLE,
    weights=True,
    metadata=True,
    reconciles=False,
    digest_timeout_ns=0,
    code=bfpipeline.code,
    entry=entry,
    weights_of=weights_of,
    bucket=tofinometer.nearest,
    objection=objection,
)
