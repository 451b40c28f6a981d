"""Plans of flash-crowd runs: settings, loads (scenarios), and treatments of the load (variants).

Values that Chen & Heidemann publish are used; other values are of this lab. Times and rates are before compression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sluice.addresses import Address

from topo.plan.crowd.network import BULK_PORT, BYSTANDER_ADDRESS, FAST, SLOW
from topo.plan.network import HostPlan
from topo.plan.synthesis import Crowd

PAPER_PERIOD_S = 64.0
LINK_BIT_PER_S = 2e6
"""Rate of the bottleneck (Chen & Heidemann, section 8.1)."""
FRAME_BYTES = 1514
PRODUCTION_TIMES_S = {"detection_s": 1.0, "window_s": 4.0, "baseline_s": 64.0}
BUCKET_S = 0.25
POLL_S = 2.0
RATE_WINDOW_S = 1.0
"""Times of the controller before the division by k. They are the controller's defaults, except POLL_S: without
production mode the controller reads the switch only every 2 s."""
MODEM_BYTES_PER_S = 7_000
"""Rate of a slow client's link: 56 kbit/s."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run; a scenario may replace some of them (`Scenario.settle`)."""

    k: float = 8.0
    """Compression factor: in a run, all times below are divided by k and all rates are multiplied by k."""
    period_s: float = PAPER_PERIOD_S
    """The detection interval T in seconds."""
    before: int = 8
    after: int = 11
    """Number of intervals before the interval in which the crowd begins, and from the onset to the load's end."""
    onset_phase: float = 0.4
    """Position of the crowd's onset in its interval, 0 to 1.  The published control takes the rate admitted in the
    interval of the alarm as its first limit, so the limit depends on onset and ramp. `make news-phases` measures the
    effect (docs/reference/crowds.md)."""
    quiet_per_s: float = 20.0
    crowd_per_s: float = 110.0
    ramp_s: float = 60.0
    """Seconds in which the rate rises from the quiet rate to the crowd's rate (Chen & Heidemann: "about 5 times in just
    several minutes"). The link is full after 20 s."""
    link_bit_per_s: float = LINK_BIT_PER_S
    loss: float = 0.0
    """Share of the packets towards the clients that netem drops between r1 and the client hosts (`--loss`); the kernel
    must have netem."""
    queue_frames: int = 32
    burst_frames: int = 2
    initcwnd: int = 2
    congestion_control: str = "reno"
    patience_s: float = 60.0
    """Mean seconds after which a client considers giving up (`draw_wait`; section 7.6.1)."""
    bulk_bit_per_s: float = 327e3
    """Rate of the bulk transfer from the bystander's server while there is no crowd (section 8.6)."""
    web_per_s: float = 5.0
    """Requests to the bystander per second (Chen & Heidemann: "less than 20")."""
    rto_min_s: float = 0.2
    """Linux's minimum retransmission timeout in seconds; it is compressed like all times, but the kernel's timeout of 1
    s for a SYN is not."""
    slow_cpus: float = 0.4
    slow_cost_us: float = 3040.0
    slow_workers: int = 150
    slow_backlog: int = 128
    slow_memory_mb: float = 42.0
    slow_answer_kb: float = 128.0
    """The slow target server, by field: CPUs granted by the cgroup; CPU time for a block of an answer; simultaneous
    answers (Apache 1.3's MaxClients); waiting connections (Linux 2.4's SOMAXCONN); memory granted by the cgroup; memory
    that an answer occupies. Nearly 150 answers fill the memory. The server answers some 43 requests per second, nine
    tenths of the link's capacity. The CPU time is compressed, so that the relation is the same at every k."""
    seed: int = 1
    log: str = ""
    """Path of a World Cup 98 binary log whose requests are sent to the target in place of synthesised requests."""
    log_region: int | None = None
    """The region (0 to 7) whose requests are selected from the log; None: all regions. Chen & Heidemann use Santa Clara
    only (section 7.1)."""
    log_onset_s: float = 1000.0
    """Seconds from the log's beginning to its crowd ("at t = 1000 s", section 8.1). The log is replayed such that its
    crowd begins at the run's onset."""

    def crowd(self) -> Crowd:
        """Return the rate of the requests to the target over time, in seconds since the request log begins."""
        return Crowd(self.quiet_per_s, self.crowd_per_s, self.onset_s, self.ramp_s, self.seconds)

    @property
    def onset_s(self) -> float:
        """Seconds from the beginning of the load to the beginning of the crowd."""
        return (self.before + self.onset_phase) * self.period_s

    @property
    def slow_turn_us(self) -> float:
        """CPU time of the slow target for a block of an answer, in us, after compression."""
        return self.slow_cost_us / self.k

    @property
    def seconds(self) -> float:
        """Duration of the load in seconds, before compression."""
        return (self.before + self.onset_phase + self.after) * self.period_s


@dataclass(frozen=True, slots=True)
class Further:
    """A further service and its request rates.  Times and rates are before compression."""

    number: int
    """Number from 1 on, unique in a scenario."""
    server: HostPlan
    """The host of the server program; programs on the slow host share its CPUs and memory."""
    quiet_per_s: float
    crowd_per_s: float
    """Requests per second during the service's crowd, once the rate has risen for `Settings.ramp_s` seconds."""
    begins_s: float = 0.0
    """Seconds from the scenario's onset (the beginning of its first crowd) to the beginning of this service's crowd."""
    lasts_s: float = math.inf
    """Duration of the service's crowd in seconds."""

    @property
    def name(self) -> str:
        """The service's name."""
        return f"further-{self.number}"

    @property
    def address(self) -> Address:
        """The service's address."""
        return BYSTANDER_ADDRESS + self.number

    @property
    def port(self) -> int:
        """The port of the server program; the service itself has the same port as all services."""
        return BULK_PORT + self.number

    def crowd(self, settings: Settings) -> Crowd:
        """Return the service's request rate over time."""
        begin = settings.onset_s + self.begins_s
        return Crowd(
            self.quiet_per_s, self.crowd_per_s, begin, settings.ramp_s, settings.seconds, over_s=begin + self.lasts_s
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load on the target and, optionally, on further services."""

    name: str
    title: str
    server: HostPlan
    crowd_per_s: float | None = None
    """Requests to the target per second after the onset; None: the rate of the settings."""
    ramp_s: float | None = None
    slow_clients: bool = False
    """Whether all requests to the target after the onset come from clients with slow links."""
    false_alarm: bool = False
    """Whether the scenario has no crowd, so that every alarm is false."""
    bulk: bool = True
    web: bool = True
    """Whether the load includes a bulk transfer (`bulk`), and requests to the bystander (`web`)."""
    lasts_s: float = math.inf
    """Seconds from the onset to the end of the target's synthesised crowd, before compression."""
    further: tuple[Further, ...] = ()
    """Further services. Scenarios with different services need different names, because a run's identity contains only
    the scenario's name."""

    def settle(self, settings: Settings) -> Settings:
        """Return the settings of a run of this scenario."""
        if self.crowd_per_s is not None:
            settings = replace(settings, crowd_per_s=self.crowd_per_s)
        if self.ramp_s is not None:
            settings = replace(settings, ramp_s=self.ramp_s)
        if not self.web:
            settings = replace(settings, web_per_s=0.0)
        return settings if self.bulk else replace(settings, bulk_bit_per_s=0.0)


NETWORK = Scenario("network-limited", "network-limited: the answers do not fit into the bottleneck", FAST)
SERVER = Scenario("server-limited", "server-limited: the slow target cannot keep up", SLOW)
SLOW_CLIENTS = Scenario(
    "false-alarm-slow-clients",
    "no crowd: only clients on slow lines are left",
    FAST,
    crowd_per_s=20.0,
    slow_clients=True,
    false_alarm=True,
)
RISING_LOAD = Scenario(
    "false-alarm-rising-load",
    "no crowd: the load doubles, and everything has room for it",
    FAST,
    crowd_per_s=36.0,
    ramp_s=256.0,
    false_alarm=True,
)
BULK = Scenario("bystander-bulk", "network-limited, with a bulk transfer as the only bystander", FAST, web=False)
WEB = Scenario("bystander-web", "network-limited, with web requests as the only bystander", FAST, bulk=False)
SCENARIOS = {scenario.name: scenario for scenario in (NETWORK, SERVER, BULK, WEB, SLOW_CLIENTS, RISING_LOAD)}


@dataclass(frozen=True, slots=True)
class Variant:
    """A treatment of the load: flash-crowd control, a static limit, or neither."""

    name: str
    title: str
    mode: str = "static"
    """Mode of flash-crowd control; `static` only measures."""
    identify: bool = True
    static_per_s: float | None = None
    """A constant limit on the target in requests per second, before compression."""
    static_from: str = ""
    """The variant whose mean limit becomes this variant's constant limit."""

    @property
    def controls(self) -> bool:
        """Whether flash-crowd control sets limits, not only measures."""
        return self.mode != "static"

    def news(self, settings: Settings) -> dict[str, object]:
        """Return the block `news` of sluice.yaml, with all times divided by k and all rates multiplied by k."""
        k = settings.k
        production = {name: seconds / k for name, seconds in PRODUCTION_TIMES_S.items()}
        return {
            "mode": self.mode,
            "period_s": settings.period_s / k,
            "bucket_s": BUCKET_S / k,
            "identify": self.identify,
            "poll_s": POLL_S / k,
            "rate_window_s": RATE_WINDOW_S / k,
            "limit_min": k,
            "production": production,
        }


NONE = Variant("none", "no control")
NEWS = Variant("news", "NEWS", mode="paper", identify=False)
HOT_SPOT = Variant("news-hsi", "NEWS + hot spot", mode="paper")
PRODUCTION = Variant("production", "NEWS, production", mode="production")
STATIC = tuple(Variant(f"static-{rate}", f"static {rate}/s", static_per_s=float(rate)) for rate in (30, 40, 60))
STATIC_SAME = Variant("static-news", "static as NEWS + hot spot", static_from=HOT_SPOT.name)
VARIANTS = {variant.name: variant for variant in (NONE, NEWS, HOT_SPOT, PRODUCTION, *STATIC, STATIC_SAME)}
