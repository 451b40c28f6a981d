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
"""The destination to which a limit applies: an address, or None for all destinations together."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests for a limited target in an interval."""

    requests: Requests
    seconds: float
    """Seconds for which the requests were counted."""
    up: bool = False
    """Whether the target's requests over the measurement window exceed its usual rate beyond chance."""
    known: bool = False
    """Whether the target's usual request rate has been learned."""

    @property
    def rates(self) -> tuple[float, float]:
        """Admitted and refused requests per second."""
        return self.requests.admitted / self.seconds, self.requests.refused / self.seconds


@dataclass(frozen=True, slots=True)
class Observation:
    """The measurements of one reading of the switch."""

    time_s: float
    """Time of the reading in seconds, by any clock; it increases from reading to reading."""
    flow_rates: FlowRates
    """Response rates in bit/s of the flows that had packets since the last observation."""
    requests: Mapping[Packed, Requests]
    """Cumulative counts of requests, by destination."""
    ledger: Mapping[int, Counts] = field(default_factory=dict[int, Counts])
    """Cumulative counts of SYNs and SYN-ACKs, by server."""
    samples: Iterable[Packed] = ()
    """Destinations, before translation, of the packets sampled since the last observation or the last call of
    ``News.sampled``, whichever was later."""
    flow_keys: FlowKeys | None = None
    """Keys of the flows in ``flow_rates``, by which a long flow counts only once in a window; None: a flow counts once
    in each interval."""
    flow_share: float | None = None
    """The part of the flows whose responses were measured, 1/2^n; None: the configured part."""
    exempt: Collection[Packed] = ()
    """Destinations to which the common limit of all destinations does not apply."""
    ejected: Collection[int] = ()
    """Servers that the balancer has ejected because they answer nothing."""
    ratios: Ratios = field(default_factory=dict[int, Mapping[int, float]])
    """The balancer's ratios: each server's part of a service's new connections, by service number and server number.
    The servers of a service without ratios count as equal."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The limits that are to be in force, and the measurements that led to them."""

    time_s: float
    seconds: float
    """Length of the newest interval, in seconds."""
    limits: Mapping[Target, Limit]
    """The limits that are to be in force. Targets that are not in the mapping have no limit."""
    changed: bool
    """Whether ``limits`` differs from the last decision's limits, so that the switch must be written."""
    sample_share: float
    """Part of the packets towards servers that the switch is to sample; 0: none."""
    hot_spot: Packed | None
    """The destination of the crowd, or of the largest of several crowds; None until it is known. It may be known before
    it can be limited."""
    watched: tuple[Packed, ...]
    """Hot spots and candidates for hot spots, which the switch is to count in addition to the configured
    destinations."""
    measurement: Measurement
    detection: Detection
    verdict: Verdict
    """The verdict on all services together."""
    verdicts: Mapping[int, Verdict]
    """The verdict on each service, by the service's number."""
    target: Requests
    """The newest requests for the destination ``target_is``: the limited target or, without a limit, the hot spot. If
    the hot spot is not counted, they are the requests for all destinations."""
    target_s: float
    """Seconds for which ``target`` was counted."""
    target_is: Target
    """The destination of the requests in ``target``; None for all destinations."""
    crowds: Mapping[Target, Asked]
    """The newest requests for each limited target; empty in a decision between two observations (``News.sampled``)."""
    up_score: int
    down_score: int
    sentence: str

    @property
    def hot_spots(self) -> tuple[Packed, ...]:
        """The known destinations of crowds. The destination with the oldest limit is first."""
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
        """The limit in force, or None. Of several limits it is the one for ``target_is``, else the oldest."""
        return self.limits.get(self.target_is) or next(iter(self.limits.values()), None)

    def row(self) -> dict[str, float | int | str]:
        """Return the decision as one flat row for a trace. Unknown numbers are NaN, unknown names are empty."""
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
