"""The input of flash-crowd control (Observation) and its output (Decision)."""

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
"""The destination of a limit: an address, or None for all destinations together."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests for a target in an interval."""

    requests: Requests
    seconds: float
    """Time for which the requests were counted."""
    up: bool = False
    """The target's requests over the measurement window are more than its usual ones, beyond chance."""
    known: bool = False
    """The target's usual request rate has been learned."""

    @property
    def rates(self) -> tuple[float, float]:
        """Admitted and refused requests per second."""
        return self.requests.admitted / self.seconds, self.requests.refused / self.seconds


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading of the switch."""

    time_s: float
    """Time of the reading by any clock, in seconds; increasing."""
    flow_rates: FlowRates
    """Response rates in bit/s of the flows with packets since the last observation."""
    requests: Mapping[Packed, Requests]
    """Cumulative counts by destination."""
    ledger: Mapping[int, Counts] = field(default_factory=dict[int, Counts])
    """Cumulative counts by server."""
    samples: Iterable[Packed] = ()
    """Destinations, before translation, of the packets sampled since the last observation or call of ``sampled``."""
    flow_keys: FlowKeys | None = None
    """Keys of the flows in ``flow_rates``, so that a long flow counts once in a window; None: each flow of each
    interval counts."""
    flow_share: float | None = None
    """The part of the flows whose responses were measured, 1/2^n; None: as configured."""
    exempt: Collection[Packed] = ()
    """Destinations that the common limit of all destinations does not apply to."""
    ejected: Collection[int] = ()
    """Servers that the balancer has ejected because they answer nothing."""
    ratios: Ratios = field(default_factory=dict[int, Mapping[int, float]])
    """The balancer's ratios. The servers of a service without ratios count as alike."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The limits that are to be in force, and the measurements behind them."""

    time_s: float
    seconds: float
    """Length of the newest interval, in seconds."""
    limits: Mapping[Target, Limit]
    """The limits that are to be in force; other targets are not limited."""
    changed: bool
    """``limits`` differs from the last decision's, so the switch is to be written."""
    sample_share: float
    """Part of the packets towards servers that the switch samples; 0: none."""
    hot_spot: Packed | None
    """The destination of the crowd, of several crowds that of the largest; None until it is known. It may be known
    before it can be limited."""
    watched: tuple[Packed, ...]
    """The destinations that the switch is to count in addition to the configured ones: hot spots, and candidates."""
    measurement: Measurement
    detection: Detection
    verdict: Verdict
    """The verdict on all services together."""
    verdicts: Mapping[int, Verdict]
    """The verdicts on the services, by number."""
    target: Requests
    """The newest requests for the limited target; without a limit, for the hot spot; where that is not counted, for
    all."""
    target_s: float
    """Time for which ``target`` was counted, in seconds."""
    target_is: Target
    """The destination of the requests in ``target``; None for all destinations."""
    crowds: Mapping[Target, Asked]
    """The newest requests for each limited target."""
    up_score: int
    down_score: int
    sentence: str

    @property
    def hot_spots(self) -> tuple[Packed, ...]:
        """The known destinations of crowds, the one with the oldest limit first."""
        spots = [*self.limits, self.hot_spot]
        return tuple(dict.fromkeys(spot for spot in spots if spot is not None))

    @property
    def freeze(self) -> bool:
        """Whether the weights of any service are to stay as they are."""
        return self.verdict.freeze

    @property
    def frozen(self) -> frozenset[int]:
        """The numbers of the services whose weights are to stay as they are."""
        return frozenset(number for number, verdict in self.verdicts.items() if verdict.freeze)

    @property
    def limit(self) -> Limit | None:
        """The limit in force, if any; of several, that of the target whose requests ``target`` has."""
        return self.limits.get(self.target_is) or next(iter(self.limits.values()), None)

    def row(self) -> dict[str, float | int | str]:
        """Return the decision as one flat row for a trace; unknown numbers are NaN, unknown names empty."""
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
