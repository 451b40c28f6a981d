"""Chen & Heidemann, Figure 10: 1,000 clients behind access links of very different speeds, a shared link, five servers.

```
 S1 (target) --+                                      +-- C1  -- 20 clients
 ...           R0 (NEWS) --- shared link --- R1 -- R2 --+ ...
 S5 (FTP)    --+                                      +-- C50 -- 20 clients
```
Chen & Heidemann publish the ranges of rate and delay of the clients' links, but no distribution; this model draws both
log-uniformly. They do not publish the rate of the shared link; here it is chosen so that their static limits of 100 and
120 requests per second fit it.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from topo.plan.crowd.measures import Records
from topo.plan.crowd.network import BYSTANDER, OTHER, TARGET
from topo.plan.crowd.scenarios import NETWORK, Settings, Variant
from topo.plan.requests import Request
from topo.plan.synthesis import Crowd, synthesise

from . import syn
from .answers import AnswerServer, FastServer, SlowServer
from .clock import Clock
from .crowd import CrowdPlan, CrowdRun, Place, simulate
from .lab import configuration, other, records
from .tcp import TcpPlan

CLIENTS = 1000
BIT_PER_S = (21e3, 10e6)
DELAY_S = (0.5e-3, 1.8)
"""Ranges of the rate and of the one-way delay of a client's own link (section 7.1)."""
FTP_BIT_PER_S = 337e3
"""Goodput of the FTP transfer before the crowd begins (section 7.5). The transfer and the crowd share a link."""
SERVER_BYTES_PER_S = 1_000_000.0
"""Rate of a server with limited capacity (section 7.6.2)."""


@dataclass(frozen=True, slots=True)
class Further:
    """A further flash crowd, towards a destination other than the target."""

    other: int
    """Number of the destination, from 0 (`sim.lab.other`)."""
    per_s: float
    """Requests per second in addition to the destination's usual requests; multiplied by `Dumbbell.size`."""
    begin_s: float
    end_s: float
    server_room: int | None = None
    """Requests that may wait at this destination's server; None: the server answers at once."""


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """Parameters of a simulation of Chen & Heidemann's section 7. Times are in seconds."""

    variant: Variant
    period_s: float = 60.0
    """The detection interval T of flash-crowd control."""
    static_per_s: float | None = None
    link_bit_per_s: float = 4.0e6
    queue_bytes: float = 50_000.0
    quiet_per_s: float = 35.0
    crowd_per_s: float = 210.0
    """Requests per second of the crowd. Chen & Heidemann state "more than a 6 times' increase"; the admitted rates and
    rejected shares in their Table I give 167 to 210."""
    onset_s: float = 1000.0
    ramp_s: float = 10.0
    end_s: float = 4000.0
    patience_s: float = 0.0
    """Mean time after which a client decides at random whether to abandon its request (`draw_wait`): 60 s in section
    7.6.1; 0: clients never leave."""
    ftp: bool = False
    server_room: int | None = None
    """Requests that may wait at the target's server, which then has the rate SERVER_BYTES_PER_S; None: it answers at
    once."""
    tolerance: float = 0.1
    fast_share: float = 0.1
    step: float = 0.2
    table_size: int = 64
    bucket_s: float = 0.25
    """Parameters of the controller's flash-crowd control. Chen & Heidemann publish values of delta (`tolerance`) and p
    (`fast_share`) only."""
    size: float = 1.0
    """Factor for the number of clients, the requests, and the shared link's rate and queue."""
    others: int = 0
    """Number of destinations beside the target; each is a service with its own server."""
    others_per_s: float = 35.0
    """Total requests per second to the destinations beside the target, distributed at random; multiplied by `size`."""
    others_rise: float = 1.0
    """Factor by which `others_per_s` changes at the onset."""
    further: tuple[Further, ...] = ()
    others_period_s: float = 3600.0
    """Seconds between the controller's balancing decisions for the other destinations. A decision changes nothing
    there, because each destination has a single server."""
    seed: int = 1

    @property
    def settings(self) -> Settings:
        """Return the settings from which `sim.lab.configuration` derives the controller's configuration."""
        return Settings(k=1.0, period_s=self.period_s)


class _BufferServer(SlowServer):
    """A server with a constant rate and a buffer for waiting requests, which it answers in the order of arrival
    (section 7.6.2)."""

    def __init__(self, clock: Clock, room: int) -> None:
        super().__init__(clock, workers=1, backlog=room, turn_s=2048 / SERVER_BYTES_PER_S)


def places(seed: int, clients: int = CLIENTS) -> list[Place]:
    """Return the path (round trip time and access link) of each client; equal seeds give equal paths."""
    source = random.Random(f"{seed} places")

    def log_uniform(low: float, high: float) -> float:
        return low * math.exp(source.random() * math.log(high / low))

    return [Place(2 * log_uniform(*DELAY_S), log_uniform(*BIT_PER_S), number) for number in range(clients)]


def clients(dumbbell: Dumbbell) -> int:
    """Return the number of clients."""
    return max(1, round(CLIENTS * dumbbell.size))


def requests(dumbbell: Dumbbell) -> Iterator[Request]:
    """Return the log of all requests (to the target, to the other destinations, and of further crowds), in the order of
    time. Each response has a size from the World Cup's log; each request comes from a random client."""
    crowd = Crowd(
        dumbbell.quiet_per_s * dumbbell.size,
        dumbbell.crowd_per_s * dumbbell.size,
        dumbbell.onset_s,
        dumbbell.ramp_s,
        dumbbell.end_s,
    )
    source = random.Random(f"{dumbbell.seed} clients")
    target = (
        replace(request, client=source.randrange(clients(dumbbell)))
        for request in synthesise(crowd, TARGET, seed=dumbbell.seed)
    )
    others = [_others(dumbbell)] if dumbbell.others else []
    further = [_further(dumbbell, crowd, number) for number, crowd in enumerate(dumbbell.further)]
    return heapq.merge(target, *others, *further, key=lambda request: request.time_s)


def _others(dumbbell: Dumbbell) -> Iterator[Request]:
    """Yield the requests to the other destinations; at the onset their rate is multiplied by `others_rise`."""
    rate = dumbbell.others_per_s * dumbbell.size
    source = random.Random(f"{dumbbell.seed} others")
    for request in synthesise(
        Crowd(rate, rate * dumbbell.others_rise, dumbbell.onset_s, 0.0, dumbbell.end_s), "others", seed=dumbbell.seed
    ):
        yield replace(
            request, client=source.randrange(clients(dumbbell)), server=other(source.randrange(dumbbell.others)).name
        )


def _further(dumbbell: Dumbbell, crowd: Further, number: int) -> Iterator[Request]:
    """Yield the requests of a further crowd; ``number``, its index in `Dumbbell.further`, determines its seeds."""
    lasts_s = crowd.end_s - crowd.begin_s
    rate = crowd.per_s * dumbbell.size
    name, source = other(crowd.other).name, random.Random(f"{dumbbell.seed} further {number}")
    for request in synthesise(Crowd(rate, rate, lasts_s, 0.0, lasts_s), name, seed=1000 * (number + 1) + dumbbell.seed):
        yield replace(request, time_s=request.time_s + crowd.begin_s, client=source.randrange(clients(dumbbell)))


def plan(dumbbell: Dumbbell) -> CrowdPlan:
    """Return the plan of a simulation."""
    where = places(dumbbell.seed, clients(dumbbell))
    config = configuration(
        NETWORK,
        dumbbell.variant,
        dumbbell.settings,
        dumbbell.static_per_s,
        others=dumbbell.others,
        others_period_s=dumbbell.others_period_s,
    )
    assert config.news is not None
    news = replace(
        config.news,
        tolerance=dumbbell.tolerance,
        fast_share=dumbbell.fast_share,
        step=dumbbell.step,
        table_size=dumbbell.table_size,
        bucket_s=dumbbell.bucket_s,
    )

    def servers(clock: Clock) -> Mapping[str, Sequence[AnswerServer]]:
        target = FastServer() if dumbbell.server_room is None else _BufferServer(clock, dumbbell.server_room)
        rooms = {crowd.other: crowd.server_room for crowd in dumbbell.further}
        others = {
            other(number).name: [FastServer() if (room := rooms.get(number)) is None else _BufferServer(clock, room)]
            for number in range(dumbbell.others)
        }
        return {TARGET: [target], BYSTANDER: [FastServer()], **others}

    return CrowdPlan(
        config=config.model_copy(update={"news": news}),
        requests=requests(dumbbell),
        servers=servers,
        place=lambda request: where[request.client],
        link_bit_per_s=dumbbell.link_bit_per_s * dumbbell.size,
        room_bytes=dumbbell.queue_bytes * dumbbell.size,
        end_s=dumbbell.end_s,
        tcp=TcpPlan(initial_window=2, rto_min_s=1.0, rto_first_s=3.0, window_max=20),
        syn_waits_s=syn.exponential(3.0, 6),
        patience_s=dumbbell.patience_s,
        bulk_bit_per_s=FTP_BIT_PER_S if dumbbell.ftp else 0.0,
        bulk_place=Place(0.1),
        bulk_from=int(OTHER.address),
        sample_s=dumbbell.period_s / 4,
        seed=dumbbell.seed,
    )


def simulate_dumbbell(dumbbell: Dumbbell) -> Records:
    """Run the simulation, and return its records in the lab's format."""
    return recorded(dumbbell, simulate(plan(dumbbell)))


def recorded(dumbbell: Dumbbell, run: CrowdRun) -> Records:
    """Return the records of a run in the lab's format."""
    return records(
        run,
        period_s=dumbbell.period_s,
        onset_s=dumbbell.onset_s,
        end_s=dumbbell.end_s,
        link_bit_per_s=dumbbell.link_bit_per_s * dumbbell.size,
        controls=dumbbell.variant.controls,
    )
