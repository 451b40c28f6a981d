"""Stage admission: the token bucket of each service's new connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy import P4MeterConfig, P4MeterEntry

from sluice.names import Meter

from .bucket import Bucket
from .state import State

NOTHING = Bucket(0, 0)
"""Refuses every new connection; the SYNs of pinned ones pass."""


def wanted(state: State) -> dict[int, Bucket]:
    """The buckets of the services that have a limit or refuse, by service number. Without one everything is green."""
    limits = {
        service.id: Bucket(limit.rate_per_s, limit.burst)
        for service in state.plan.services
        if (limit := service.config.admission)
    }
    closed = {service.id for service in state.plan.services if state.unread.get(service.id) == {}}
    return limits | dict.fromkeys(state.refusing | closed, NOTHING)


def entry(meter: Meter, index: int, bucket: Bucket | None) -> P4MeterEntry:
    """A meter's configuration. Both rates are the same: what is above the one bucket is red.

    To be written only on change: BMv2 refills the bucket on every write.
    """
    if bucket is None:
        return P4MeterEntry(meter, index=index)
    config = P4MeterConfig(cir=bucket.rate, cburst=bucket.burst, pir=bucket.rate, pburst=bucket.burst)
    return P4MeterEntry(meter, index=index, config=config)


def changes(
    meter: Meter, have: Mapping[int, Bucket], want: Mapping[int, Bucket], *, rounded: bool
) -> Iterator[P4MeterEntry]:
    """Entries for what differs; when ``have`` was read back (``rounded``), by more than rounding."""
    for index in sorted(have.keys() | want.keys()):
        old, new = have.get(index), want.get(index)
        if old == new or (rounded and old and new and old.is_close(new)):
            continue
        yield entry(meter, index, new)
