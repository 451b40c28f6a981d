"""Flash-crowd control of all destinations behind a switch. The input is observations, the output is decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from sluice.addresses import Packed, text
from sluice.balance.counts import CounterReset

from .decision import Asked, Decision, Observation, Target
from .detector import Detection
from .errors import ObservationError
from .flows import matched
from .identify import Identification
from .ledger import LedgerWindow
from .limit import Limit, bucket
from .modes import MODES, Candidate, ControlMode
from .options import NewsOptions
from .pools import Pool, Pools, together
from .rates import checked, measured_share
from .requests import Interval, RequestMeter, Requests
from .sentence import sentence
from .usual import Usual
from .verdict import Cause, Verdict
from .window import Measurement, MeasurementWindow


class News:
    """NEWS (Chen & Heidemann). Its caller passes an observation every ``options.interval_s``.

    Between two observations, ``sampled`` accepts new samples, so that a hot spot can be limited before the end of the
    interval. In production mode each hot spot has its own limit; in the other modes there is one limit at a time.
    """

    def __init__(
        self,
        options: NewsOptions,
        pools: Mapping[int, Pool] | None = None,
        *,
        name: Callable[[Packed], str] = text,
        server_name: Callable[[int], str] = "server {}".format,
    ) -> None:
        """``pools`` are the services' servers, by service number; the default is one pool of all servers. ``name`` and
        ``server_name`` return the names of destinations and servers for the sentence to the operator."""
        self._options = options
        self._pools = Pools(pools or {0: Pool()}, options.production.gain, options.window_intervals)
        self._name, self._server_name = name, server_name
        self._meter = RequestMeter()
        self._window = MeasurementWindow(options.window_intervals, options.response_intervals)
        self._ledger = LedgerWindow(options.window_intervals)
        self._spot = Identification(options)
        self._time: float | None = None
        self._interval: Interval | None = None
        self._hot_spot: Packed | None = None
        self._stranger: Packed | None = None
        """A possible hot spot that the switch does not count yet and is to count."""
        self._aimed = False
        self._verdict = Verdict(Cause.NORMAL)
        self._decision: Decision | None = None
        self._written: Mapping[Target, Limit] = {}
        self._mode: ControlMode = MODES[options.mode](options)

    @property
    def options(self) -> NewsOptions:
        """The options in force."""
        return self._options

    @property
    def decision(self) -> Decision | None:
        """The newest decision."""
        return self._decision

    @property
    def alarm(self) -> bool:
        """Whether the alarm is set."""
        return self._mode.alarm

    @property
    def limits(self) -> Mapping[Target, Limit]:
        """The limits in force, by destination. The oldest limit is first."""
        return {target: bucket(rate, self._options) for target, rate in self._mode.rates.items()}

    def adopt(self, target: Target, rate: float) -> None:
        """Continue from a limit that is in the switch, in connections per second. Static mode ignores it."""
        if not self._mode.limits:
            return
        if not self._mode.rates:
            self._hot_spot = target
        self._mode.adopt(target, rate, self._spot)
        self._written = self.limits

    @property
    def learns_usual(self) -> bool:
        """Whether the mode learns usual traffic, so that ``restore`` has an effect."""
        return self._mode.learns_usual

    @property
    def usual(self) -> Usual | None:
        """The usual traffic, to be saved for a later process. None until it is learned, and in modes that do not
        learn."""
        return self._mode.kept(self._spot)

    def restore(self, usual: Usual) -> None:
        """Continue from the usual traffic that an earlier process saved. A mode that does not learn ignores it."""
        self._mode.restore(usual, self._spot)

    def rebase(self) -> None:
        """Use the next reading only as a base for later differences, since the switch's counters may have been
        reset."""
        self._meter.rebase()
        self._ledger.rebase()

    def keep(self, destinations: Collection[Packed]) -> None:
        """Forget all destinations except these, since the switch no longer counts the others."""
        self._meter.keep(destinations)

    def configure(self, options: NewsOptions, pools: Mapping[int, Pool] | None = None) -> None:
        """Take over changed options. After a change of mode, learning restarts, and the new mode adopts the limits in
        force.

        A change of ``identify`` removes the limits: a hot spot's limit cannot serve as a limit for all destinations,
        nor vice versa.
        """
        if options.identify != self._options.identify:
            self.drop_limit()
        rates, changed = self._mode.rates, options.mode is not self._options.mode
        self._options = options
        self._pools.configure(pools or self._pools.pools, options.production.gain, options.window_intervals)
        self._window.resize(options.window_intervals, options.response_intervals)
        self._ledger.resize(options.window_intervals)
        self._spot.configure(options)
        if changed:
            self._mode = MODES[options.mode](options)
            self._window.clear()
            self._decision = None
            for target in sorted(rates, key=lambda target: target != self._hot_spot):
                self.adopt(target, rates[target])
            return
        self._mode.configure(options)

    def drop_limit(self) -> None:
        """Remove all limits and hot spots. While the alarm is set, hot spots are determined again."""
        self._mode.drop()
        self._hot_spot, self._stranger, self._aimed, self._decision = None, None, False, None

    def observe(self, observation: Observation) -> Decision | None:
        """Process a reading and decide. Returns None for a reading that is only a base: the first one, and one after a
        reset.

        Raises ObservationError for a time that does not increase, for invalid rates, and if the numbers of keys and
        rates differ. Nothing is changed then.
        """
        now = observation.time_s
        if not math.isfinite(now) or (self._time is not None and now <= self._time):
            raise ObservationError(f"observation at {now} s after one at {self._time} s: times must increase")
        rates = checked(observation.flow_rates)
        keys = matched(observation.flow_keys, rates)
        self._time = now
        interval = self._meter.read(now, observation.requests)
        self._ledger.push(observation.ledger)
        if not self.alarm:
            self._spot.clear()
        self._spot.add(now, observation.samples)
        if interval is None:
            return None
        self._interval = interval = replace(interval, exempt=observation.exempt)
        options = self._options
        share = measured_share(options.flow_share) if observation.flow_share is None else observation.flow_share
        self._window.push(rates, interval, keys, share)
        self._pools.examine(self._ledger.sums, self._window.least_seconds, observation.ejected, observation.ratios)
        measured = self._window.measure(options.fast_share, options.min_requests)
        detection = self._steer(measured, interval)
        return self._decide(now, interval, measured, detection)

    def sampled(
        self, time_s: float, destinations: Iterable[Packed], requests: Mapping[Packed, Requests] | None = None
    ) -> Decision | None:
        """Process samples between two observations. Returns a decision if they start a limit or identify a hot spot.

        ``requests``, a cumulative reading, is needed only for a hot spot that the observations did not count. The hot
        spot's first reading is a base, and later readings yield its rate of admitted connections.
        """
        last = self._decision
        if last is None or not self.alarm or not self._options.identify:
            return None
        self._spot.add(time_s, destinations)
        if self._aimed or not self._spot.enough:
            return None

        interval = self._interval
        assert interval is not None, "there was a decision"

        def admitted(target: Target) -> float | None:
            rate = interval.admitted_rate(target)
            if rate is not None or target is None or not requests or target not in requests:
                return rate
            counted = self._peek(time_s, target, requests[target])
            return None if counted is None else counted[1].admitted / counted[0]

        named = self._hot_spot, self._stranger
        started = self._aim(last.measurement.ar, last.detection.ar_average, admitted)
        if not started and named == (self._hot_spot, self._stranger):
            return None
        target, counted, seconds = self._of_target(interval)
        spot = target if target in self._mode.rates else self._hot_spot
        if spot is not None and spot not in interval.requests and requests and spot in requests:
            fresh = self._peek(time_s, spot, requests[spot])
            if fresh is not None:
                target, (seconds, counted) = spot, fresh
        return self._publish(
            replace(last, time_s=time_s, target=counted, target_s=seconds, target_is=target, crowds={})
        )

    def _peek(self, time_s: float, destination: Packed, cumulative: Requests) -> tuple[float, Requests] | None:
        """Return the seconds and the requests of a destination since its last reading, between two observations. None
        for a destination's first reading, and if its counters were reset."""
        try:
            return self._meter.peek(time_s, destination, cumulative)
        except CounterReset:
            return None  # the next observation will detect the reset and use its reading as a new base

    def _steer(self, measured: Measurement, interval: Interval) -> Detection:
        """Make one step of the mode's detector and of its limits."""
        before = self.alarm
        detection = self._mode.detect(measured, self._verdict.cause, self._pools.repeated)
        if self._mode.fell_back:
            self._spot.fall_back()
            self._pools.fall_back()
        if self._mode.learned:
            self._spot.learn(interval)
            self._pools.learn()
        if detection.alarm and not before:
            self._aimed = False
        # In the interval that sets the alarm, a hot spot needs enough samples. In later intervals any number suffices.
        started: frozenset[Target] = frozenset()
        if detection.alarm and (before or self._spot.enough or not self._options.identify):
            started = self._aim(measured.ar, detection.ar_average, interval.admitted_rate)
        if self._mode.several or not started:
            crowds = {target: self._asked(target, interval) for target in self._mode.rates if target not in started}
            self._mode.move(detection, measured, crowds, aimed=self._aimed)
        if self._mode.several:
            self._lifted(alarm=detection.alarm)
        return detection

    def _lifted(self, *, alarm: bool) -> None:
        """Forget hot spots whose limit was lifted, unless the alarm is set."""
        rates = self._mode.rates
        if not rates:
            self._aimed = False
        if not alarm:
            self._stranger = None
            if self._hot_spot not in rates:
                self._hot_spot = next(iter(rates), None)

    def _aim(
        self, ar: float | None, ar_average: float | None, admitted: Callable[[Target], float | None]
    ) -> frozenset[Target]:
        """Determine the hot spots and start their limits. Returns the targets whose limits were started."""
        target: Target = None
        if self._options.identify:
            target = self._spot.leader(self._window, self._hot_spot, by_requests=self._mode.learns_usual)
            if target is None:
                return frozenset()
        rates = self._mode.rates
        further = self._mode.several and self._options.identify and bool(rates)
        self._aimed = self._aimed or (self._mode.several and target in rates)
        if further:
            self._hot_spot = target if target in rates else self._hot_spot
        elif self._aimed and target in rates:
            return frozenset()
        else:
            self._hot_spot = target
        if not self._mode.limits:
            return frozenset()

        def start(target: Target) -> bool:
            rate = admitted(target)
            if rate is None:
                return False
            refuted = self._pools.refutes(target)
            return self._mode.start(Candidate(target, rate, ar, ar_average, refuted=refuted), self._spot)

        started = set[Target]() if further or not start(target) else {target}
        if self._mode.several and self._options.identify:
            more = self._spot.more(self._window, {*rates, target, *started} if not further else rates)
            self._stranger = next((spot for spot in more if admitted(spot) is None), None)
            started |= {spot for spot in more if start(spot)}
        self._aimed = self._aimed or bool(started)
        return frozenset(started)

    def _asked(self, target: Target, interval: Interval) -> Asked:
        """Return the requests for a target in an interval."""
        if target is None:
            return Asked(interval.together, interval.seconds)
        requests, seconds = interval.requests.get(target, Requests()), interval.spans.get(target, interval.seconds)
        return Asked(requests, seconds, up=self._spot.risen(target, self._window), known=self._spot.known(target))

    def _of_target(self, interval: Interval) -> tuple[Target, Requests, float]:
        """Return the limited target, or the hot spot if there is no limit, with its requests in the interval and the
        seconds for which the requests were counted.

        Of several limited targets, the result is the hot spot or, if this is not limited, the target with the oldest
        limit. Without a limit, the result is None (all destinations) if there is no hot spot or it is not counted yet.
        """
        rates = self._mode.rates
        target = self._hot_spot if self._hot_spot in rates else next(iter(rates), self._hot_spot)
        if target is None or not (rates or target in interval.requests):
            return None, interval.together, interval.seconds
        requested = self._asked(target, interval)
        return target, requested.requests, requested.seconds

    def _decide(self, now: float, interval: Interval, measured: Measurement, detection: Detection) -> Decision:
        target, counted, seconds = self._of_target(interval)
        requested = {target: self._asked(target, interval) for target in self._mode.rates}
        share = self._options.production.binding_share
        crowds = [self._hot_spot] if detection.alarm else []
        crowds += [target for target, its_requests in requested.items() if its_requests.requests.refused_share > share]
        verdicts = self._pools.judge(crowds=crowds, slower=detection.slower, busier=detection.busier)
        if not self._mode.freezes:
            verdicts = {number: replace(verdict, freeze=False) for number, verdict in verdicts.items()}
        self._verdict = together(verdicts.values(), crowd=bool(crowds))
        return self._publish(
            Decision(
                time_s=now,
                seconds=interval.seconds,
                limits={},
                changed=False,
                sample_share=self._options.sample_share if detection.alarm and self._options.identify else 0.0,
                hot_spot=None,
                watched=(),
                measurement=measured,
                detection=detection,
                verdict=self._verdict,
                verdicts=verdicts,
                target=counted,
                target_s=seconds,
                target_is=target,
                crowds=requested,
                up_score=self._mode.scores.up,
                down_score=self._mode.scores.down,
                sentence="",
            )
        )

    def _publish(self, decision: Decision) -> Decision:
        """Complete a decision by the limits in force, the hot spots, and the sentence for the operator."""
        limits = self.limits
        changed, self._written = limits != self._written, limits
        spots = [*limits, self._hot_spot, self._stranger]
        decision = replace(
            decision,
            limits=limits,
            changed=changed,
            hot_spot=self._hot_spot,
            watched=tuple(dict.fromkeys(spot for spot in spots if spot is not None)),
        )
        self._decision = replace(decision, sentence=self._sentence(decision))
        return self._decision

    def _sentence(self, decision: Decision) -> str:
        services = decision.frozen
        frozen = [pool.name for number, pool in self._pools.pools.items() if number in services]
        target = decision.target_is
        return sentence(
            decision.verdict,
            decision.measurement,
            decision.limit,
            target if target in decision.limits else self._hot_spot,
            Asked(decision.target, decision.target_s).rates,
            others=[
                (other, limit, decision.crowds[other].rates if other in decision.crowds else (0.0, 0.0))
                for other, limit in decision.limits.items()
                if other is not None and other != target
            ],
            everyone=not self._options.identify,
            overall=self._options.identify and target is None,
            static=not self._mode.limits,
            unprotected=decision.detection.unprotected,
            frozen=[] if len(frozen) == len(self._pools.pools) else frozen,
            name=self._name,
            server_name=self._server_name,
        )
