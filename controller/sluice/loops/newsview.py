"""Flash-crowd control as this controller holds it: the algorithm, what it reads, and what it wants of the switch."""

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

from .destinationtable import SHARED, DestinationTable

_log = logger("news")


class NewsView:
    """One News for everything behind the switch. Created by a configuration that has it, kept over reloads."""

    def __init__(self, config: NewsConfig, plan: Plan) -> None:
        self.config = config
        self.decision: Decision | None = None
        """The newest."""
        self.requests: Mapping[Packed, Requests] = {}
        """As last read: cumulative, by address."""
        self.splits: dict[Target, Split] = {}
        """The limits in force, as the switch is to hold them."""
        self.said: tuple[object, ...] = ()
        """What the log last told."""
        self.due_s: float | None = None
        """When the interval ends; None: at once, for what is read next is a new beginning."""
        self._plan = plan
        self._splitters: dict[Target, Splitter] = {}
        self._table = DestinationTable(DESTINATIONS)
        self._flows, self._samples, self._collector = FlowReader(), SampleReader(), FlowCollector()
        self._share = FlowShare(config.flow_share)
        self._drain = True
        """The ring of samples is to be read even though nothing is sampled: for its base, or for what was left."""
        self._news = self._fresh()
        self._number()

    # -- names

    def name(self, destination: Packed) -> str:
        """What a person calls a destination."""
        if destination == ALL_UNLISTED:
            return "unlisted destinations"
        if destination == ALL_SHARED:
            return "every destination"
        address = from_packed(destination)
        names = [service.name for service in self._plan.services if service.config.address == address]
        names += [host.name for host in self.config.hosts if host.address == address]
        return f"{', '.join(names)} ({address})" if names else str(address)

    def server_name(self, number: int) -> str:
        """What a person calls a server."""
        return next((server.name for server in self._plan.servers if server.id == number), f"server {number}")

    def _pools(self) -> dict[int, Pool]:
        return {
            service.id: Pool(
                service.name,
                service.config.address.packed,
                frozenset(server.id for server in service.servers),
                service.config.balance,
            )
            for service in self._plan.services
        }

    def _fresh(self) -> News:
        """Knows nothing."""
        return News(self.config, self._pools(), name=self.name, server_name=self.server_name)

    # -- changes from outside

    def configure(self, config: NewsConfig, plan: Plan) -> None:
        """Take over another configuration; what was learned stays, and so does the limit unless it is for others.

        What another mode decided is in force no longer: nothing is frozen or sampled before the next decision.
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
        self.config, self._plan = config, plan
        self._news.configure(config, self._pools())
        if not measured_alike:
            self.rebase()
        self._split()
        self._number()

    def rebase(self) -> None:
        """The switch may be another one, or new: what is read next is a new beginning."""
        self._news.rebase()
        self._flows.rebase()
        self._samples.rebase()
        self._drain = True
        self._collector.take()

    @property
    def usual(self) -> Usual | None:
        """See News."""
        return self._news.usual

    def restore(self, usual: Usual) -> None:
        """See News."""
        self._news.restore(usual)

    def forget(self) -> None:
        """What was learned is too old to go on from; so is all that was decided by it."""
        self._news, self.decision = self._fresh(), None
        self._split()
        self._number()

    def stand_by(self) -> None:
        """Another controller leads: limits are its business, and this one may go on from those that it leaves."""
        self._news.drop_limit()
        self.decision = None
        self._split()
        self._number()

    def adopt(self, found: Readback) -> None:
        """Go on from the numbers and the limits that a switch holds; one that holds none is to be restored."""
        self.rebase()
        self.due_s = None
        if not found.destinations:
            return
        self._table.adopt(found.destinations)
        if not self.splits:
            for address, split in self._limits_in(found):
                target: Target = address.packed if self.config.identify else None
                if target not in self._news.limits:
                    self._news.adopt(target, split.limit)
                    self._splitters.setdefault(target, Splitter()).adopt(split)
            self._split()
        self._number()

    def _limits_in(self, found: Readback) -> Iterator[tuple[Address, Split]]:
        """The limits that an earlier control left: as noted or, without a note, what anybody may have of one."""
        anybody, returning = found.meters[Meter.DESTINATION_LIMIT], found.meters[Meter.RETURNING_LIMIT]
        own = self._own()
        for address, number in sorted(found.destinations.items(), key=lambda item: order(item[0])):
            limit = found.limits.get(address)
            sharing = {other for other, theirs in found.destinations.items() if theirs == number}
            # A limit for all destinations is none for one, nor the other way round.
            if sharing != ({address} if self.config.identify else found.destinations.keys() - own):
                continue
            if number in anybody and (limit is not None or address not in own):
                first, second = anybody[number], returning.get(number)
                rest = (second.rate, second.burst) if second else (None, None)
                yield address, Split(first.rate if limit is None else limit, first.rate, first.burst, *rest)

    # -- the loop's steps

    def begin(self, now_s: float) -> float:
        """When the interval ends, for loops that begin now (whoever is first: R's too): as was due before a reload. A
        shorter one begins now."""
        self.due_s = now_s if self.due_s is None else min(self.due_s, now_s + self.config.interval_s)
        return self.due_s

    async def poll(self, registers: Registers) -> list[Packed]:
        """Read the flows, and the samples, which come back; ``flow_share`` may be another then. Raises SwitchError."""
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
        """Read the requests. Raises SwitchError."""
        self.requests = await read_requests(registers, self._table.numbers)

    @property
    def sampling(self) -> bool:
        """The switch samples packets at present."""
        return self.sample_share > 0

    @property
    def flow_share(self) -> float:
        """The part of the responses to be measured."""
        return self._share.share

    @property
    def freeze(self) -> bool:
        """The weights of some service are to stay as they are."""
        return self.decision is not None and self.decision.freeze

    @property
    def frozen(self) -> list[str]:
        """The names of these services."""
        return [service.name for service in self._plan.services if self.freezes(service.id)]

    def freezes(self, service: int) -> bool:
        """The weights of this service, by its number, are to stay as they are."""
        return self.decision is not None and service in self.decision.frozen

    def observe(
        self,
        now_s: float,
        ledger: Mapping[int, Counts],
        samples: list[Packed],
        ejected: Collection[int],
        ratios: Ratios,
    ) -> Decision | None:
        """The end of an interval: decide on what was read since the last.

        ``ejected``, ``ratios``: R's, of all services' servers.
        """
        share = self._collector.share
        keys, rates = self._collector.take()
        apart = () if self.config.identify else {ALL_UNLISTED, *(address.packed for address in self._own())}
        seen = Observation(now_s, rates, self.requests, ledger, samples, keys, share, apart, ejected, ratios)
        decision = self._news.observe(seen)
        if decision is not None:
            for target, asked in decision.crowds.items():
                if (splitter := self._splitters.get(target)) is not None:
                    splitter.count(asked.requests, asked.seconds)
        return self._take(decision)

    def sampled(self, now_s: float, samples: list[Packed]) -> Decision | None:
        """Between two intervals: samples may be what it takes to start a limit."""
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
        """Services, watched hosts, and the hot spot as long as it is one."""
        hot = () if self.decision is None else self.decision.watched
        extra = {from_packed(a) for a in (*hot, *self.splits) if a is not None}
        left = self._table.want(
            [
                *(service.config.address for service in self._plan.services),
                *(host.address for host in self.config.hosts),
                *sorted(extra, key=order),
            ],
            shared=not self.config.identify,
            apart=self._own(),
        )
        self._news.keep({ALL_UNLISTED, ALL_SHARED, *(address.packed for address in self.numbers)})
        if left:
            _log.warning("no room for destinations", extra={"left_out": ", ".join(map(str, left))})

    def _own(self) -> set[Address]:
        """Hosts with a limit of their own: one limit for every destination leaves them out."""
        return {host.address for host in self.config.hosts if host.limit}

    # -- what the switch is to hold

    @property
    def numbers(self) -> Mapping[Address, int]:
        """The destinations that are counted apart."""
        return self._table.numbers

    @property
    def sample_share(self) -> float:
        """The part of the packets towards servers to be sampled."""
        return 0.0 if self.decision is None else self.decision.sample_share

    def wanted(self) -> Crowd:
        """For State."""
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
                # A host with a limit of its own has one bucket, and never more than it was configured.
                anybody[number] = min(own, Bucket.rounded(split.limit, split.burst), key=lambda b: b.rate)
            elif split.returning_rate is not None and split.returning_burst is not None:
                returning[number] = Bucket.rounded(split.returning_rate, split.returning_burst)
        return Crowd(dict(numbers), limits, anybody, returning, self.sample_share, self.flow_share)
