"""Stage admission: the meter (token bucket) that limits each service's new connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy import P4MeterConfig, P4MeterEntry

from sluice.names import Meter

from .bucket import Bucket
from .state import State

NOTHING = Bucket(0, 0)
"""A bucket that refuses every new connection; SYNs of connections with a pin (an entry in the connection table) still
pass."""


def wanted(state: State) -> dict[int, Bucket]:
    """Return, by service number, the bucket of each service that has a configured limit or must refuse connections.

    A meter cell without a bucket marks every packet green.
    """
    limits = {
        service.id: Bucket(limit.rate_per_s, limit.burst)
        for service in state.plan.services
        if (limit := service.config.admission)
    }
    closed = {service.id for service in state.plan.services if state.unread.get(service.id) == {}}
    return limits | dict.fromkeys(state.refusing | closed, NOTHING)


def entry(meter: Meter, index: int, bucket: Bucket | None) -> P4MeterEntry:
    """Return a meter cell's entry. Without a bucket it unsets the cell, which then marks every packet green.

    Committed and peak rate are equal, so a packet is green or red, never yellow.

    Write an entry only when the bucket changes: BMv2 refills the bucket on every write.
    """
    if bucket is None:
        return P4MeterEntry(meter, index=index)
    config = P4MeterConfig(cir=bucket.rate, cburst=bucket.burst, pir=bucket.rate, pburst=bucket.burst)
    return P4MeterEntry(meter, index=index, config=config)


def changes(
    meter: Meter, installed: Mapping[int, Bucket], desired: Mapping[int, Bucket], *, rounded: bool
) -> Iterator[P4MeterEntry]:
    """Yield a meter entry for each cell that differs between ``installed`` and ``desired``.

    ``rounded``: ``installed`` was read back from the switch, so differences that rounding explains are ignored.
    """
    for index in sorted(installed.keys() | desired.keys()):
        old, new = installed.get(index), desired.get(index)
        if old == new or (rounded and old and new and old.is_close(new)):
            continue
        yield entry(meter, index, new)
