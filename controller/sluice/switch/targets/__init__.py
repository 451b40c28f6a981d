"""Target profiles: what the switches that sluice runs on can say, a file each."""

from .bmv2 import BMV2
from .embedded import EMBEDDED
from .profile import Profile, RegisterAccess
from .tofino import TOFINO

__all__ = ["BMV2", "EMBEDDED", "TARGETS", "TOFINO", "Profile", "RegisterAccess", "of_arch"]

TARGETS = {profile.name: profile for profile in (EMBEDDED, BMV2, TOFINO)}
"""By the names that the command line and the configuration take."""


def of_arch(arch: str) -> Profile:
    """The target for programs of an architecture: v1model's, unless it is Tofino's."""
    return TOFINO if arch == TOFINO.arch else EMBEDDED
