"""The embedded switch: it supports all of P4Runtime as specified (docs/reference/p4runtime.md)."""

from __future__ import annotations

from sluice.dataplane.units import MICROSECONDS

from . import v1model
from .profile import Profile, RegisterAccess

EMBEDDED = Profile(
    name="embedded",
    arch="v1model",
    folder="",
    units=MICROSECONDS,
    registers=RegisterAccess.P4RUNTIME,
    cell_cost=4,
    answer_s=10.0,
    reconciles=True,
    code=v1model.code,
    bucket=v1model.bucket,
    objection=v1model.objection,
)
