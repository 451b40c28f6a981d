"""What goes into flash-crowd control and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sluice.addresses import Packed, number
from sluice.balance.counts import Counts

from .detector import Detection
from .flows import FlowKeys
from .limit import Limit
from .pools import Ratios
from .rates import FlowRates
from .requests import Requests
from .verdict import Verdict
from .window import Measurement

Target = Packed | None
"""Who a limit is for: an address, or None for every destination together."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of a target."""

    requests: Requests
    seconds: float
    """That these were counted for."""
    up: bool = False
    """More than usual, of it alone, over the measurement window and not by chance."""
    known: bool = False
    """What is usual for it is."""

    @property
    def rates(self) -> tuple[float, float]:
        """Admitted and refused requests per second."""
        return self.requests.admitted / self.seconds, self.requests.refused / self.seconds


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading of the switch."""

    time_s: float
    """Of the switch or of the reader; increasing."""
    flow_rates: FlowRates
    """Response rates of the flows with packets since the last observation, bit/s."""
    requests: Mapping[Packed, Requests]
    """Cumulative, by destination."""
    ledger: Mapping[int, Counts] = field(default_factory=dict[int, Counts])
    """Cumulative, by server."""
    samples: Iterable[Packed] = ()
    """Destinations of the packets sampled since they were last handed over, before translation."""
    flow_keys: FlowKeys | None = None
    """Tells the flows of ``flow_rates`` apart, so that one that lives long counts once in a window; None: each does
    each time."""
    flow_share: float | None = None
    """The part of the flows that was measured, 1/2^n; None: as configured."""
    apart: Collection[Packed] = ()
    """Destinations that the one limit for every destination does not hold back."""
    ejected: Collection[int] = ()
    """Servers that R gives no new connections, as they answer nothing."""
    ratios: Ratios = field(default_factory=dict[int, Mapping[int, float]])
    """R's. Without those of a service its servers are alike."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done, and everything it was decided from."""

    time_s: float
    seconds: float
    """Length of the newest interval."""
    limits: Mapping[Target, Limit]
    """The limits that are to be in force; a target that is not there is not limited."""
    changed: bool
    """``limits`` differs from the last decision's: only then is anything to be written."""
    sample_share: float
    """Part of the packets towards servers to be sampled; 0 is off."""
    hot_spot: Packed | None
    """The destination the crowd is after, once it is known; may be known before it can be limited. Of several crowds,
    the largest's."""
    watched: tuple[Packed, ...]
    """The destinations to be counted whatever they are: hot spots, and what may be one."""
    measurement: Measurement
    detection: Detection
    verdict: Verdict
    """On all services together."""
    verdicts: Mapping[int, Verdict]
    """On each service, by its number."""
    target: Requests
    """Newest requests of the limited target; without one, of the hot spot; where that is not counted, of all."""
    target_s: float
    """Seconds that these were counted for."""
    target_is: Target
    """Whose they are; None for all destinations."""
    crowds: Mapping[Target, Asked]
    """The newest requests of everyone that was limited."""
    up_score: int
    down_score: int
    sentence: str

    @property
    def hot_spots(self) -> tuple[Packed, ...]:
        """The destinations that crowds are after, as far as is known, the oldest limit's first."""
        spots = [*self.limits, self.hot_spot]
        return tuple(dict.fromkeys(spot for spot in spots if spot is not None))

    @property
    def freeze(self) -> bool:
        """The weights of some service are to stay as they are."""
        return self.verdict.freeze

    @property
    def frozen(self) -> frozenset[int]:
        """The services whose weights are to stay as they are, by number."""
        return frozenset(number for number, verdict in self.verdicts.items() if verdict.freeze)

    @property
    def limit(self) -> Limit | None:
        """The limit in force, if any; of several, the one that the target's requests are counted for."""
        return self.limits.get(self.target_is) or next(iter(self.limits.values()), None)

    def row(self) -> dict[str, float | int | str]:
        """The state as one flat row for a trace; what is not known is NaN, or empty where it is a name."""
        nan = math.nan
        measured, detection = self.measurement, self.detection
        return {
            "time_s": self.time_s,
            "ar_bps": nan if measured.ar is None else measured.ar,
            "ar_average_bps": nan if detection.ar_average is None else detection.ar_average,
            "flows": measured.flows,
            "fastest": measured.fastest,
            "offered_per_s": measured.offered,
            "admitted_per_s": measured.admitted,
            "refused_per_s": measured.refused,
            "requests_average_per_s": nan if detection.request_average is None else detection.request_average,
            "alarm": int(detection.alarm),
            "slower": int(detection.slower),
            "busier": int(detection.busier),
            "recovered": int(detection.recovered),
            "hot_spot": "" if self.hot_spot is None else number(self.hot_spot),
            "limit_per_s": nan if self.limit is None else self.limit.rate,
            "limits": len(self.limits),
            "burst": nan if self.limit is None else self.limit.burst,
            "up_score": self.up_score,
            "down_score": self.down_score,
            "sampling": self.sample_share,
            "freeze": int(self.freeze),
            "cause": str(self.verdict.cause),
        }
