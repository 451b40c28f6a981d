"""Find the request rate at which an equal split hurts and a good one would not.  Pure: the caller makes the bursts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topo.errors import LabError

RATES_PER_S = (60.0, 90.0, 130.0, 180.0, 240.0)
"""Connections per second that are tried in turn."""

EQUAL_MEAN_MS = 250.0
"""Mean connect time under an equal split that is enough: well above the 100 ms that the demo promises."""

ANSWERED_SHARE = 0.6
"""The loaded server must answer at most this share of its connections, so that halving its ratio pays."""

HEALTHY_R = 0.02
"""A server with R at most this is healthy."""


@dataclass(frozen=True, slots=True)
class Burst:
    """What a short load at one rate and an equal split showed."""

    rate_per_s: float
    mean_ms: float
    loaded_answered_share: float
    """SYN-ACKs of the loaded server for each connection sent to it, while the load lasted."""
    healthy_r: float
    """The largest R of the other servers."""

    def hurts(self) -> bool:
        """Say whether the loaded server, and only it, is overloaded enough."""
        return (
            self.mean_ms >= EQUAL_MEAN_MS
            and self.loaded_answered_share <= ANSWERED_SHARE
            and self.healthy_r <= HEALTHY_R
        )


SPARED_MEAN_MS = 20.0
"""Mean connect time that must be possible at the same rate without the loaded server."""


def calibrate(
    burst: Callable[[float], Burst],
    mean_without_loaded_ms: Callable[[float], float],
    rates: Iterable[float] = RATES_PER_S,
) -> Burst:
    """Return the first burst that hurts; raise LabError if none does, or if the other servers cannot take the load."""
    tried: list[Burst] = []
    for rate in rates:
        tried.append(burst(rate))
        if tried[-1].hurts():
            mean_ms = mean_without_loaded_ms(rate)
            if mean_ms <= SPARED_MEAN_MS:
                return tried[-1]
            raise LabError(
                f"at {rate:g}/s an equal split hurts, but the other servers alone are at {mean_ms:.0f} ms too: "
                "this machine is too busy or too slow for the lab"
            )
    seen = "; ".join(
        f"{one.rate_per_s:g}/s: mean {one.mean_ms:.0f} ms, loaded server answers {one.loaded_answered_share:.0%}, "
        f"R of the others {one.healthy_r:.2f}"
        for one in tried
    )
    raise LabError(
        f"no rate overloads the loaded server and spares the others on this machine ({seen}); "
        "is something else using its CPUs?"
    )
