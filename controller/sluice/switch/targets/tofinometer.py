"""The token buckets of a Tofino: floating point of few bits.

A rate is a mantissa of 9 bits over a power of two up to 2^27, in packets a clock cycle; a burst is a mantissa of 8 bits
times a power of two. The driver cuts off what does not fit, and lets a rate's mantissa not be above the burst
(open-p4studio, ``pipe_mgr_meter_drv_workflows.c``: pipe_mgr_meter_drv_get_rate_params,
pipe_mgr_meter_drv_get_burstsize_params). Rates up to 4,600 packets/s are therefore whole multiples of 9.1, of which
there is no smaller one, and small buckets have coarse rates.
"""

from __future__ import annotations

from sluice.switch.bucket import Bucket

CLOCK_HZ = 1_220_000_000
"""A Tofino 1's core clock. Others run at other speeds: their rates are off by the difference of the steps of 9.1/s."""

_RATE_BITS, _RATE_SHIFT, _BURST_BITS = 9, 27, 8
_LEAST_MANTISSA = 32
"""A burst below this is raised to it where the rate's precision needs it: the rate is then within 1.6 %."""

MOST_BURST = 255 << 14
"""Above this the driver takes bits from the rate: a burst is cut to it."""


def held(bucket: Bucket) -> Bucket:
    """What the driver makes of a bucket; a rate of 0 lets nothing through. Needs a rate and a burst of at least 1."""
    burst = _cut(bucket.burst)
    exponent = max(0, burst.bit_length() - _BURST_BITS)
    adjusted = max(0, exponent - 14)
    mantissa, shift = _rate(bucket.rate, burst, adjusted)
    return Bucket(mantissa * CLOCK_HZ >> shift, burst)


def nearest(bucket: Bucket) -> Bucket:
    """The bucket to ask for so that the rate held is nearest to the one wanted.

    Its burst is not below the one wanted, up to MOST_BURST. One that lets nothing through is asked for as it is.
    """
    if bucket.rate == 0:
        return bucket
    ideal, _ = _rate(bucket.rate, 1 << 62, 0)
    burst = min(_raised(max(bucket.burst, min(ideal + 2, _LEAST_MANTISSA))), MOST_BURST)
    mantissa, shift = _rate(bucket.rate, burst, 0)
    rates = (-(-step * CLOCK_HZ >> shift) for step in (max(1, mantissa), mantissa + 1))
    return min((Bucket(rate, burst) for rate in rates), key=lambda asked: _error(asked, bucket.rate))


def _error(asked: Bucket, rate: int) -> tuple[bool, int]:
    got = held(asked).rate
    return (got == 0, abs(got - rate))


def _rate(rate: int, burst: int, adjusted: int) -> tuple[int, int]:
    """Mantissa and shift: as many bits as fit into the mantissa, into the burst, and into the shift."""
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
