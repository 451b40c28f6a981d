"""The state of flash-crowd control: the algorithm, the readers of its measurements, and its part of the desired
state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sluice.addresses import Address, Packed, from_packed, order
from sluice.balance import Counts
from sluice.config.model import NewsConfig
from sluice.log import logger
from sluice.names import DESTINATIONS, Meter
from sluice.news import (
    Decision,
    FlowCollector,
    FlowShare,
    News,
    Observation,
    Pool,
    Ratios,
    Requests,
    Split,
    Splitter,
    Target,
    Usual,
)
from sluice.switch.bucket import Bucket
from sluice.switch.destinations import ALL_SHARED, ALL_UNLISTED, read_requests
from sluice.switch.plan import Plan
from sluice.switch.rates import FlowReader
from sluice.switch.reconcile import Readback
from sluice.switch.registers import Registers
from sluice.switch.sampling import SampleReader
from sluice.switch.state import Crowd

from .destinations import SHARED, DestinationTable

_log = logger("news")


class NewsView:
    """The state of the one flash-crowd control for all destinations behind the switch: the algorithm (a News object),
    and what it reads and writes. It survives reloads as long as flash-crowd control is configured."""

    def __init__(self, config: NewsConfig, plan: Plan) -> None:
        self.config = config
        self.decision: Decision | None = None
        """The newest decision."""
        self.requests: Mapping[Packed, Requests] = {}
        """Cumulative counts by packed address, from the last reading."""
        self.splits: dict[Target, Split] = {}
        """The limits in force by destination, each split into two token buckets."""
        self.reported: tuple[object, ...] = ()
        """Those parts of a decision that the last event reported."""
        self.due_s: float | None = None
        """Time of the interval's end by the event loop's clock; None: at once, because the next reading is a new
        base."""
        self.plan = plan
        self._splitters: dict[Target, Splitter] = {}
        self._table = DestinationTable(DESTINATIONS)
        self._flows, self._samples, self._collector = FlowReader(), SampleReader(), FlowCollector()
        self._share = FlowShare(config.flow_share)
        self._drain = True
        """Whether the ring of samples is to be read once although the switch samples nothing: to set the start index,
        or to drain the ring."""
        self._news = self._fresh()
        self._number()

    # -- names

    def name(self, destination: Packed) -> str:
        """Return a destination's name for the operator."""
        if destination == ALL_UNLISTED:
            return "unlisted destinations"
        if destination == ALL_SHARED:
            return "every destination"
        address = from_packed(destination)
        names = [service.name for service in self.plan.services if service.config.address == address]
        names += [host.name for host in self.config.hosts if host.address == address]
        return f"{', '.join(names)} ({address})" if names else str(address)

    def server_name(self, number: int) -> str:
        """Return a server's name for the operator."""
        return next((server.name for server in self.plan.servers if server.id == number), f"server {number}")

    def _pools(self) -> dict[int, Pool]:
        return {
            service.id: Pool(
                service.name,
                service.config.address.packed,
                frozenset(server.id for server in service.servers),
                service.config.balance,
            )
            for service in self.plan.services
        }

    def _fresh(self) -> News:
        """Return an algorithm object (News) that has learned nothing."""
        return News(self.config, self._pools(), name=self.name, server_name=self.server_name)

    # -- reloads and changes of the switch

    def configure(self, config: NewsConfig, plan: Plan) -> None:
        """Take over another configuration. What was learned stays, and limits stay unless ``identify`` has changed.

        After a change of the mode or of ``identify`` the last decision is no longer in force: until the next decision
        no weights are frozen, and no packets are sampled.
        """
        measured_alike = (config.mode, config.rate_window_s, config.flow_share, config.identify) == (
            self.config.mode,
            self.config.rate_window_s,
            self.config.flow_share,
            self.config.identify,
        )
        if (config.mode, config.identify) != (self.config.mode, self.config.identify):
            self.decision = None
        if config.bucket_s != self.config.bucket_s:
            for splitter in self._splitters.values():
                splitter.renew()
        if config.flow_share != self.config.flow_share:
            self._share = FlowShare(config.flow_share)
        self.config, self.plan = config, plan
        self._news.configure(config, self._pools())
        if not measured_alike:
            self.rebase()
        self._split()
        self._number()

    def rebase(self) -> None:
        """Use the next readings only as bases for later differences. This is necessary when the switch may be another
        one, may have been restarted, or measures by other settings."""
        self._news.rebase()
        self._flows.rebase()
        self._samples.rebase()
        self._drain = True
        self._collector.take()

    @property
    def learns_usual(self) -> bool:
        """Whether the mode learns usual traffic (as News.learns_usual)."""
        return self._news.learns_usual

    @property
    def usual(self) -> Usual | None:
        """The usual traffic, to be saved for a later process; None until it is learned."""
        return self._news.usual

    def restore(self, usual: Usual) -> None:
        """Continue from the usual traffic that an earlier process saved."""
        self._news.restore(usual)

    def forget(self) -> None:
        """Forget what was learned and all decisions, because they are too old."""
        self._news, self.decision = self._fresh(), None
        self._split()
        self._number()

    def stand_by(self) -> None:
        """Remove limits and decisions, because another controller is primary. This controller may later take over the
        limits of the other one from the switch."""
        self._news.drop_limit()
        self.decision = None
        self._split()
        self._number()

    def adopt(self, snapshot: Readback) -> None:
        """Take over a switch's numbers of destinations and its limits. A switch without numbers gets the numbers that
        this control has assigned."""
        self.rebase()
        self.due_s = None
        if not snapshot.destinations:
            return
        self._table.adopt(snapshot.destinations)
        if not self.splits:
            for address, split in self._limits_in(snapshot):
                target: Target = address.packed if self.config.identify else None
                if target not in self._news.limits:
                    self._news.adopt(target, split.limit)
                    self._splitters.setdefault(target, Splitter()).adopt(split)
            self._split()
        self._number()

    def _limits_in(self, snapshot: Readback) -> Iterator[tuple[Address, Split]]:
        """Yield the limits that an earlier control left in the switch, by destination. The total rate of a limit is
        recorded in the switch; if it is not, the rate of the limit's first bucket replaces it."""
        anybody, returning = snapshot.meters[Meter.DESTINATION_LIMIT], snapshot.meters[Meter.RETURNING_LIMIT]
        own = self._own()
        for address, number in sorted(snapshot.destinations.items(), key=lambda item: order(item[0])):
            limit = snapshot.limits.get(address)
            sharing = {other for other, others_number in snapshot.destinations.items() if others_number == number}
            # A limit for all destinations is not taken over as a limit for a single destination, nor vice versa.
            if sharing != ({address} if self.config.identify else snapshot.destinations.keys() - own):
                continue
            if number in anybody and (limit is not None or address not in own):
                first, second = anybody[number], returning.get(number)
                rest = (second.rate, second.burst) if second else (None, None)
                yield address, Split(first.rate if limit is None else limit, first.rate, first.burst, *rest)

    # -- steps of the control task

    def begin(self, now_s: float) -> float:
        """Return the time at which the present interval ends, for control and balancing tasks that start now. It is the
        time planned before a reload, or an earlier one if the reload has shortened the interval. In the first call
        after a start or a new base it is ``now_s``."""
        self.due_s = now_s if self.due_s is None else min(self.due_s, now_s + self.config.interval_s)
        return self.due_s

    async def poll(self, registers: Registers) -> list[Packed]:
        """Read the flows, and return the samples. This may change ``flow_share``. Raises SwitchError."""
        reading = await self._flows.read(registers, self.config)
        self._collector.add(reading.keys, reading.rates, self.flow_share)
        if reading.slots is not None:
            before = self.flow_share
            self._share.observe(reading.slots)
            if self.flow_share != before:
                taken = round(reading.slots.taken, 3)
                _log.info("another share of responses is measured", extra={"share": self.flow_share, "taken": taken})
        if not (self.sampling or self._drain):
            return []
        samples = list(await self._samples.read(registers))
        self._drain = self.sampling
        return samples

    async def count(self, registers: Registers) -> None:
        """Read the requests for all numbered destinations. Raises SwitchError."""
        self.requests = await read_requests(registers, self._table.numbers)

    @property
    def sampling(self) -> bool:
        """Whether the switch samples packets at present."""
        return self.sample_share > 0

    @property
    def flow_share(self) -> float:
        """The part of the responses, from 0 to 1, that the switch is to measure."""
        return self._share.share

    @property
    def freeze(self) -> bool:
        """Whether the weights of any service are to stay as they are."""
        return self.decision is not None and self.decision.freeze

    @property
    def frozen(self) -> list[str]:
        """The names of the services whose weights are to stay as they are."""
        return [service.name for service in self.plan.services if self.freezes(service.id)]

    def freezes(self, service: int) -> bool:
        """Return whether the weights of a service, given by its number, are to stay as they are."""
        return self.decision is not None and service in self.decision.frozen

    def observe(
        self,
        now_s: float,
        ledger: Mapping[int, Counts],
        samples: list[Packed],
        ejected: Collection[int],
        ratios: Ratios,
    ) -> Decision | None:
        """Decide at the end of an interval by all readings since the end of the previous one. Returns None if the
        readings are only bases for later differences, as after a start or ``rebase``.
        ``ejected`` servers and ``ratios`` are those of the balancers of all services.
        """
        share = self._collector.share
        keys, rates = self._collector.take()
        exempt = () if self.config.identify else {ALL_UNLISTED, *(address.packed for address in self._own())}
        observation = Observation(now_s, rates, self.requests, ledger, samples, keys, share, exempt, ejected, ratios)
        decision = self._news.observe(observation)
        if decision is not None:
            for target, requested in decision.crowds.items():
                if (splitter := self._splitters.get(target)) is not None:
                    splitter.count(requested.requests, requested.seconds)
        return self._take(decision)

    def sampled(self, now_s: float, samples: list[Packed]) -> Decision | None:
        """Decide between the ends of two intervals, if the new samples identify a hot spot or are enough to start a
        limit. Otherwise returns None."""
        return self._take(self._news.sampled(now_s, samples, self.requests))

    def _take(self, decision: Decision | None) -> Decision | None:
        if decision is not None:
            self.decision = decision
            self._split()
            self._number()
        return decision

    def _split(self) -> None:
        limits = self._news.limits
        self._splitters = {target: self._splitters.get(target) or Splitter() for target in limits}
        self.splits = {target: self._splitters[target].split(limit, self.config) for target, limit in limits.items()}

    def _number(self) -> None:
        """Assign numbers to the destinations that the switch is to count or limit: services, the configured hosts, hot
        spots and their candidates, and limited destinations."""
        hot = () if self.decision is None else self.decision.watched
        extra = {from_packed(a) for a in (*hot, *self.splits) if a is not None}
        omitted = self._table.want(
            [
                *(service.config.address for service in self.plan.services),
                *(host.address for host in self.config.hosts),
                *sorted(extra, key=order),
            ],
            shared=not self.config.identify,
            separate=self._own(),
        )
        self._news.keep({ALL_UNLISTED, ALL_SHARED, *(address.packed for address in self.numbers)})
        if omitted:
            _log.warning("no room for destinations", extra={"left_out": ", ".join(map(str, omitted))})

    def _own(self) -> set[Address]:
        """Return the addresses of the hosts with a configured limit. A common limit of all destinations does not apply
        to these hosts."""
        return {host.address for host in self.config.hosts if host.limit}

    # -- the desired state

    @property
    def numbers(self) -> Mapping[Address, int]:
        """The numbers of the counted destinations, by address."""
        return self._table.numbers

    @property
    def sample_share(self) -> float:
        """The part of the packets towards servers, from 0 to 1, that the switch is to sample; 0: it samples none."""
        return 0.0 if self.decision is None else self.decision.sample_share

    def wanted(self) -> Crowd:
        """Return flash-crowd control's part of the desired state."""
        numbers = self.numbers
        anybody = {
            numbers[host.address]: Bucket(host.limit.rate_per_s, host.limit.burst)
            for host in self.config.hosts
            if host.limit and host.address in numbers
        }
        limits: dict[int, float] = {}
        returning: dict[int, Bucket] = {}
        for target, split in self.splits.items():
            number = SHARED if target is None else numbers.get(from_packed(target))
            if number is None:
                continue
            own = anybody.get(number)
            limits[number] = split.limit
            anybody[number] = Bucket.rounded(split.rate, split.burst)
            if own is not None:
                # A host with a configured limit has a single bucket, and its limit never exceeds the configured one.
                anybody[number] = min(own, Bucket.rounded(split.limit, split.burst), key=lambda b: b.rate)
            elif split.returning_rate is not None and split.returning_burst is not None:
                returning[number] = Bucket.rounded(split.returning_rate, split.returning_burst)
        return Crowd(dict(numbers), limits, anybody, returning, self.sample_share, self.flow_share)
