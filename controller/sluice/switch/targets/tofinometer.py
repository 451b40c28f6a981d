"""The token buckets of a Tofino, whose rates and bursts are floating-point numbers with short mantissas.

A rate, in packets per clock cycle, is a mantissa of 9 bits divided by a power of two up to 2^27. A burst is a mantissa
of 8 bits times a power of two. The driver truncates what exceeds these widths, and limits a rate's mantissa to the
burst (open-p4studio, ``pipe_mgr_meter_drv_workflows.c``: pipe_mgr_meter_drv_get_rate_params,
pipe_mgr_meter_drv_get_burstsize_params). Rates up to 4,600 packets/s are therefore multiples of 9.1 packets/s, and a
bucket with a small burst has a coarse rate.
"""

from __future__ import annotations

from sluice.switch.bucket import Bucket

CLOCK_HZ = 1_220_000_000
"""The core clock of a Tofino 1, in Hz. On a chip with another clock, rates are off by the ratio of the clocks."""

_RATE_BITS, _RATE_SHIFT, _BURST_BITS = 9, 27, 8
_LEAST_MANTISSA = 32
"""The burst to which smaller bursts are raised if the rate's precision requires it; the rate's error is then at most
1.6 percent."""

MOST_BURST = 255 << 14
"""The limit to which larger bursts are cut: above this limit the driver takes bits from the rate."""


def programmed(bucket: Bucket) -> Bucket:
    """Return the bucket that the driver programs on a request for ``bucket``; both of its fields must be at least 1.

    A bucket with a returned rate of 0 passes no packets.
    """
    burst = _cut(bucket.burst)
    exponent = max(0, burst.bit_length() - _BURST_BITS)
    adjusted = max(0, exponent - 14)
    mantissa, shift = _rate(bucket.rate, burst, adjusted)
    return Bucket(mantissa * CLOCK_HZ >> shift, burst)


def nearest(bucket: Bucket) -> Bucket:
    """Return the bucket to request from the driver so that the programmed rate is nearest to the rate of ``bucket``.

    The returned burst is at least the requested burst, up to MOST_BURST. A bucket with a rate of 0 is returned
    unchanged.
    """
    if bucket.rate == 0:
        return bucket
    ideal, _ = _rate(bucket.rate, 1 << 62, 0)
    burst = min(_raised(max(bucket.burst, min(ideal + 2, _LEAST_MANTISSA))), MOST_BURST)
    mantissa, shift = _rate(bucket.rate, burst, 0)
    rates = (-(-step * CLOCK_HZ >> shift) for step in (max(1, mantissa), mantissa + 1))
    return min((Bucket(rate, burst) for rate in rates), key=lambda request: _error(request, bucket.rate))


def _error(request: Bucket, rate: int) -> tuple[bool, int]:
    actual = programmed(request).rate
    return (actual == 0, abs(actual - rate))


def _rate(rate: int, burst: int, adjusted: int) -> tuple[int, int]:
    """Return a rate's mantissa and shift, with the largest shift at which the mantissa has at most _RATE_BITS bits and
    is at most ``burst``. The shift is at most _RATE_SHIFT - ``adjusted``: the driver reduces it for a burst with an
    exponent above 14."""
    shift = 0
    while shift + 1 + adjusted <= _RATE_SHIFT:
        doubled = rate << (shift + 1)
        if doubled > ((1 << _RATE_BITS) - 1) * CLOCK_HZ or doubled > burst * CLOCK_HZ:
            break
        shift += 1
    return (rate << shift) // CLOCK_HZ, shift


def _cut(burst: int) -> int:
    shift = max(0, burst.bit_length() - _BURST_BITS)
    return burst >> shift << shift


def _raised(burst: int) -> int:
    shift = max(0, burst.bit_length() - _BURST_BITS)
    return _cut(burst + (1 << shift) - 1)
