"""Target profiles: what the switches that sluice runs on can say, a file each."""

from .bmv2 import BMV2
from .embedded import EMBEDDED
from .profile import Profile, RegisterAccess
from .stratum import STRATUM
from .tofino import TOFINO

__all__ = ["BMV2", "EMBEDDED", "STRATUM", "TARGETS", "TOFINO", "Profile", "RegisterAccess"]

TARGETS = {profile.name: profile for profile in (EMBEDDED, BMV2, STRATUM, TOFINO)}
"""By the names that the command line and the configuration take."""
