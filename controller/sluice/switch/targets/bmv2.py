"""BMv2's simple_switch_grpc: it has no registers over P4Runtime (p4lang/PI issue 376), so access is over Thrift.

Every write of a meter refills its bucket, and BMv2 reads a meter's rate back rounded down (249 for 250). A meter that
was never set reads back as the largest rates. admission.py and reconcile.py allow for these properties on every target.
"""

from __future__ import annotations

from dataclasses import replace

from .embedded import EMBEDDED
from .profile import RegisterAccess

BMV2 = replace(EMBEDDED, name="bmv2", registers=RegisterAccess.THRIFT, reconciles=False)
