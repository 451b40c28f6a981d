"""BMv2's simple_switch_grpc: no registers over P4Runtime (p4lang/PI issue 376), hence access over Thrift.

Every write refills one of its meters, and a meter reads back rounded down (249 for 250). A meter that was never set
reads back as the largest rates. admission.py and reconcile.py allow for that on every target.
"""

from __future__ import annotations

from dataclasses import replace

from .embedded import EMBEDDED
from .profile import RegisterAccess

BMV2 = replace(EMBEDDED, name="bmv2", registers=RegisterAccess.THRIFT, reconciles=False)
