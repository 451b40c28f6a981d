"""A model of the switch's parts that flash-crowd control uses (registers, buckets, samples), and of the controller's
steps."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice.addresses import Address
from sluice.config.model import Config
from sluice.dataplane.draws import Group
from sluice.dataplane.memory import Memory
from sluice.dataplane.rates import RateCells, place
from sluice.features import Balance, CrowdControl, world_of
from sluice.names import SAMPLES, Meter, Register
from sluice.news import Decision
from sluice.news.rates import flow_mask
from sluice.replay.driver import Balanced, Controlled, Driver
from sluice.switch.bucket import Bucket
from sluice.switch.plan import Server, Service
from sluice.switch.reconcile import Readback
from sluice.switch.state import Crowd
from sluice.tokenbucket import TokenBucket

from .admission import Admission
from .clock import Clock
from .cputime import timed


class Flow:
    """A response's slot and fingerprint in the registers that measure rates."""

    __slots__ = ("fingerprint", "slot")

    def __init__(self, number: int) -> None:
        self.slot, self.fingerprint = place(zlib.crc32(number.to_bytes(8, "big")))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the controller's loops."""

    time_s: float
    cpu_s: float
    """CPU seconds of the step, measured on the machine that runs the simulation; all other figures are simulated."""
    decides: bool


class CrowdSwitch:
    """One switch and its controller; the controller has an ordinary configuration, as for a real switch."""

    def __init__(
        self, clock: Clock, config: Config, source: random.Random, decided: Callable[[Decision], None]
    ) -> None:
        self._clock, self._config, self._source, self._decided = clock, config, source, decided
        self._world = world_of(config)
        self._memory = Memory()
        news = self._world[CrowdControl].view
        assert news is not None, "a simulated flash crowd needs news: in its configuration"
        options = news.config
        self._rates = RateCells(self._memory, self._memory.units.step(options.rate_window_s))
        self._remember_s = options.remember_s
        self._admission: dict[int, Admission] = {}
        self._service_buckets = {
            service.id: TokenBucket(clock.now, service.config.admission.rate_per_s, service.config.admission.burst)
            for service in self._world.plan.services
            if service.config.admission
        }
        self._crowd = Crowd()
        self._groups = {service.id: self._group(service) for service in self._world.plan.services}
        self.steps: list[Step] = []
        self.measured, self.unmeasured = 0, 0
        """Packets of responses selected for measurement: number of measured packets, and number of packets not measured
        because another response occupies the slot."""
        self.least_share = 1.0
        """The smallest share of responses that the controller selected for measurement during the run."""
        self.weight_changes: list[tuple[float, str]] = []
        """Changes of a service's weights: time and name of the service."""
        self._driver = Driver(self._world, self._memory, clock.now, self._apply)
        self._apply(news.wanted())
        clock.after(0.0, self._step, self._driver)

    def restart(self, *, keeps_usual: bool) -> None:
        """End the controller and start a new one, which adopts the limits installed in the switch; the new controller's
        measured ratios R begin anew.

        ``keeps_usual``: the new controller also takes over the baselines of the earlier controller, as if it had read
        them from `news.baseline_file`.
        """
        before, crowd = self._world[CrowdControl].view, self._crowd
        self._world = world_of(self._config)
        news = self._world[CrowdControl].view
        assert before is not None and news is not None
        if keeps_usual and before.usual is not None:
            news.restore(before.usual)
        news.adopt(
            Readback(
                entries={},
                meters={Meter.DESTINATION_LIMIT: crowd.general, Meter.RETURNING_LIMIT: crowd.returning},
                destinations=dict(crowd.numbers),
                limits={address: crowd.limits[i] for address, i in crowd.numbers.items() if i in crowd.limits},
            )
        )
        self._driver.close()
        self._driver = Driver(self._world, self._memory, self._clock.now, self._apply)
        self._apply(news.wanted())
        self._clock.after(0.0, self._step, self._driver)

    def close(self) -> None:
        """Close the controller at the end of a run."""
        self._driver.close()

    @property
    def now(self) -> float:
        """The virtual time in seconds since the run began."""
        return self._clock.now

    def service(self, name: str) -> Service:
        """Return the configuration's service of this name."""
        service = self._world.plan.service(name)
        assert service is not None, name
        return service

    @property
    def requests(self) -> Mapping[Address, Admission]:
        """The counters and buckets of each destination, by the destination's address."""
        return {address: self._admission[number] for address, number in self._crowd.numbers.items()}

    def syn(self, service: Service, client: int, *, pinned: Server | None) -> Server | None:
        """Handle a SYN to a service; return the server that receives the SYN, or None if the switch refuses the SYN.

        ``pinned``: the server in the connection's pin (its entry in the connection table), if there is a pin. A SYN
        with a pin is never refused, and goes to that server unless the server is ejected. In all other cases the switch
        draws a server by the weights.
        """
        now = self._clock.now
        number = self._crowd.numbers.get(service.config.address, 0)
        admission = self._admission[number]
        bucket = self._service_buckets.get(service.id)
        refused = bucket is not None and not bucket.take(now)
        passes = admission.request(now, client, refused=refused, pinned=pinned is not None)
        for register, count in (
            (Register.REQUESTS_OFFERED, admission.offered),
            (Register.REQUESTS_ADMITTED, admission.admitted),
            (Register.REQUESTS_REFUSED, admission.refused),
            (Register.REQUESTS_RETURNING, admission.returning),
        ):
            self._memory.of(register)[number] = count
        self.towards(int(service.config.address))
        if not passes:
            return None
        server = self._draw(service) if pinned is None or pinned.id in self._world[Balance].ejected else pinned
        self._memory.of(Register.LEDGER_SYN)[server.id] += 1
        return server

    def _draw(self, service: Service) -> Server:
        if len(service.servers) == 1:
            return service.servers[0]
        group = self._groups[service.id]
        chosen = group.at(int(self._source.random() * group.size))
        return next(server for server in service.servers if server.id == chosen)

    def _group(self, service: Service) -> Group:
        return Group(self._world[Balance].views[service.id].balancer.weights())

    def synack(self, server: Server, *, again: bool = False) -> None:
        """Count a server's SYN-ACK; ``again``: the SYN-ACK is a retransmission."""
        self._memory.of(Register.LEDGER_SYNACK_AGAIN if again else Register.LEDGER_SYNACK)[server.id] += 1

    def completed(self, server: Server) -> None:
        """Count the ACK that completes a handshake."""
        self._memory.of(Register.LEDGER_COMPLETED)[server.id] += 1

    def response(self, flow: Flow, size: int) -> None:
        """Record a packet of a response; ``size`` is its length in bytes, counted from the IP header on."""
        if flow.fingerprint & self._mask:
            return
        if self._rates.packet(self._clock.now, flow.slot, flow.fingerprint, size):
            self.measured += 1
        else:
            self.unmeasured += 1

    def towards(self, destination: int) -> None:
        """Record a packet towards a server. The switch samples the destination addresses of a share of such packets."""
        share = self._crowd.sample_share
        if share and self._source.random() < share:
            ring, end = self._memory.of(Register.SAMPLE_RING), self._memory.of(Register.SAMPLE_NEXT)
            ring[end[0] % SAMPLES] = destination
            end[0] = (end[0] + 1) % (1 << 32)

    def _step(self, driver: Driver) -> None:
        if driver is not self._driver:
            return  # a restart has replaced this driver
        now = self._clock.now
        events, cpu_s = timed(lambda: driver.step(now))
        for event in events:
            if isinstance(event, Balanced):
                self._balanced(event.service)
        decisions = [event.decision for event in events if isinstance(event, Controlled)]
        self.steps.append(Step(now, cpu_s, bool(decisions)))
        for decision in decisions:
            self._decided(decision)
        self._clock.after(max(0.0, driver.due - self._clock.now), self._step, driver)

    def _balanced(self, service: Service) -> None:
        group = self._group(service)
        if group.weights != self._groups[service.id].weights:
            self._groups[service.id] = group
            self.weight_changes.append((self._clock.now, service.name))

    def _apply(self, crowd: Crowd) -> None:
        self._crowd, now, self._mask = crowd, self._clock.now, flow_mask(crowd.flow_share)
        self.least_share = min(self.least_share, crowd.flow_share)
        for number in {0, *crowd.numbers.values(), *crowd.general}:
            admission = self._admission.setdefault(number, Admission(self._remember_s))
            admission.set(now, _pair(crowd.general.get(number)), _pair(crowd.returning.get(number)))


def _pair(bucket: Bucket | None) -> tuple[float, float] | None:
    return None if bucket is None else (bucket.rate, bucket.burst)
