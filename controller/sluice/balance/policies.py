"""The table of modes and their policies."""

from __future__ import annotations

from collections.abc import Mapping

from .fixed import FixedPolicy
from .options import Mode
from .paper import PaperPolicy
from .policy import Policy
from .production import ProductionPolicy

POLICIES: Mapping[Mode, type[Policy]] = {
    Mode.FIXED: FixedPolicy,
    Mode.PAPER: PaperPolicy,
    Mode.PRODUCTION: ProductionPolicy,
}
