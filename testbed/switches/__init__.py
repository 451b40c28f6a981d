"""Kinds of switches, a module each. A new kind is a module here and one in sluice.switch.targets."""

from .bmv2 import BMV2
from .embedded import EMBEDDED
from .kind import Endpoints, Kind

__all__ = ["BMV2", "EMBEDDED", "KINDS", "Endpoints", "Kind"]

KINDS = {kind.name: kind for kind in (EMBEDDED, BMV2)}
