"""Target profiles: one module for each kind of switch on which sluice runs, with what that kind supports."""

from .bmv2 import BMV2
from .embedded import EMBEDDED
from .profile import Profile, RegisterAccess
from .tofino import TOFINO

__all__ = ["BMV2", "EMBEDDED", "TARGETS", "TOFINO", "Profile", "RegisterAccess", "of_arch"]

TARGETS = {profile.name: profile for profile in (EMBEDDED, BMV2, TOFINO)}
"""Profiles by the target names that the command line and the configuration accept."""


def of_arch(arch: str) -> Profile:
    """Return the target for programs of an architecture: Tofino for TNA, else the embedded switch."""
    return TOFINO if arch == TOFINO.arch else EMBEDDED
