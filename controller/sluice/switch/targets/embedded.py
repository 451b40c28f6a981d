"""The embedded switch: all of P4Runtime, as the specification has it (docs/reference/p4runtime.md)."""

from __future__ import annotations

from . import v1model
from .profile import Profile, RegisterAccess
from .units import MICROSECONDS

EMBEDDED = Profile(
    name="embedded",
    arch="v1model",
    folder="",
    units=MICROSECONDS,
    registers=RegisterAccess.P4RUNTIME,
    weights=True,
    metadata=True,
    reconciles=True,
    digest_timeout_ns=0,
    code=v1model.code,
    entry=v1model.entry,
    weights_of=v1model.weights_of,
    bucket=v1model.bucket,
    objection=v1model.objection,
)
