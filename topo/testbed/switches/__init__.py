"""Kinds of switches, one module per kind. A new kind needs a module here and a module in sluice.switch.targets."""

from .bmv2 import BMV2
from .embedded import EMBEDDED
from .kind import Endpoints, Kind
from .tofino import TOFINO

__all__ = ["BMV2", "EMBEDDED", "KINDS", "TOFINO", "Endpoints", "Kind"]

KINDS = {kind.name: kind for kind in (EMBEDDED, BMV2, TOFINO)}
