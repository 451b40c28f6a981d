"""Find a request rate that overloads the loaded server under an equal split and that the other servers can serve. The
functions are pure; the caller offers the bursts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topo.testbed.errors import SetupError
from topo.testbed.nodes import ProcessSwitch

RATES_PER_S = (120.0, 160.0, 210.0, 280.0)
"""Connections per second that are tried, lowest first. At lower rates a burst may overload the loaded server although
the load that follows does not. In two of ten demos, bursts of 60/s did and the load of 90/s did not: under an equal
split the server answered between 29 and 91 pages/s, and this rate changed within tens of seconds."""

EQUAL_MEAN_MS = 250.0
"""A server counts as overloaded under an equal split if the mean connect time is at least this many milliseconds. It is
well above the 100 ms that the demo's check requires."""

LOADED_R = 1.0
"""Least R at which the loaded server counts as overloaded; at R = 1 it receives twice the SYNs that it answers. A
higher rate does not always raise R: one run measured 1.08, 1.07 and 1.05 at 130, 180 and 250/s, another run 2.22 at
130/s."""

HEALTHY_R = 0.02
"""Largest R of a healthy server."""


@dataclass(frozen=True, slots=True)
class Burst:
    """The result of a short load at an equal split."""

    rate_per_s: float
    mean_ms: float
    """Mean connect time in milliseconds."""
    loaded_r: float
    """R of the loaded server."""
    healthy_r: float
    """The largest R of the other servers."""

    def hurts(self) -> bool:
        """Return whether the loaded server, and no other server, is overloaded enough."""
        return self.mean_ms >= EQUAL_MEAN_MS and self.loaded_r >= LOADED_R and self.healthy_r <= HEALTHY_R


def calibrate(
    burst: Callable[[float], Burst],
    mean_without_loaded_ms: Callable[[float], float],
    rates: Iterable[float] = RATES_PER_S,
    spared_mean_ms: float = ProcessSwitch.spared_mean_ms,
    margin: float = ProcessSwitch.rate_margin,
) -> float:
    """Return the rate for the demo. Raise SetupError if no rate overloads the loaded server, or if the other servers
    cannot serve the rate.

    `spared_mean_ms`: mean connect time in milliseconds that must be possible at that rate without the loaded server.
    `margin`: the rate for the demo, divided by the lowest rate tried that overloads the loaded server.
    """
    tried: list[Burst] = []
    for rate in rates:
        tried.append(burst(rate))
        if tried[-1].hurts():
            chosen = round(rate * margin)
            mean_ms = mean_without_loaded_ms(chosen)
            if mean_ms <= spared_mean_ms:
                return chosen
            raise SetupError(
                f"at {chosen}/s an equal split hurts, but the other servers alone are at {mean_ms:.0f} ms too: "
                "this machine is too busy or too slow for the lab"
            )
    bursts = "; ".join(
        f"{result.rate_per_s:g}/s: mean {result.mean_ms:.0f} ms, R of the loaded server {result.loaded_r:.2f}, "
        f"of the others {result.healthy_r:.2f}"
        for result in tried
    )
    raise SetupError(
        f"no rate overloads the loaded server and spares the others on this machine ({bursts}); "
        "is something else using its CPUs?"
    )
