"""Runs of flash crowds as data: their settings, what happens in them (scenarios), and what is done about it (variants).

Values are published or named as this lab's; times and rates are before compression.
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
"""Section 8.1."""
FRAME_BYTES = 1514
PRODUCTION_TIMES_S = {"detection_s": 1.0, "window_s": 4.0, "baseline_s": 64.0}
BUCKET_S = 0.25
POLL_S = 2.0
RATE_WINDOW_S = 1.0
"""To be divided by k: the controller's defaults, but without production mode the switch is read every 2 s only."""
MODEM_BYTES_PER_S = 7_000
"""A 56 kbit/s line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that runs share."""

    k: float = 8.0
    """Compression factor: divides every time below, multiplies every rate."""
    period_s: float = PAPER_PERIOD_S
    """The detection interval T in seconds."""
    before: int = 8
    after: int = 11
    """Intervals before and after the one in which the crowd begins."""
    onset_phase: float = 0.4
    """Position of the crowd's onset in its interval, 0 to 1.  As published, the first limit is the rate admitted in the
    interval of the alarm, so onset and ramp decide its height: `make news-phases` shows how much
    (docs/reference/crowds.md)."""
    quiet_per_s: float = 20.0
    crowd_per_s: float = 110.0
    ramp_s: float = 60.0
    """Seconds from the quiet to the crowd's rate ("about 5 times in just several minutes"); the link fills in 20 s."""
    link_bit_per_s: float = LINK_BIT_PER_S
    loss: float = 0.0
    """Share of the packets towards the clients that netem drops behind r1 (`--loss`); the kernel must have netem."""
    queue_frames: int = 32
    burst_frames: int = 2
    initcwnd: int = 2
    congestion_control: str = "reno"
    patience_s: float = 60.0
    """Mean seconds before a client gives up (section 7.6.1)."""
    bulk_bit_per_s: float = 327e3
    """Rate of the bystander's bulk transfer without a crowd (section 8.6)."""
    web_per_s: float = 5.0
    """Requests of the bystander per second ("less than 20")."""
    rto_min_s: float = 0.2
    """Linux's minimum retransmission timeout, compressed as all times; the first SYN's timeout of 1 s is fixed."""
    slow_cpus: float = 0.4
    slow_cost_us: float = 3040.0
    slow_workers: int = 150
    slow_backlog: int = 128
    slow_memory_mb: float = 42.0
    slow_answer_kb: float = 128.0
    """The slow target: CPUs by cgroup, CPU time for a block of an answer, answers at once, connections that wait (those
    of 2005: Apache 1.3's MaxClients and Linux 2.4's SOMAXCONN), memory by cgroup, memory that an answer
    holds: nearly 150 of them use it up.  It answers some 43 requests per second, nine tenths of what the link has room
    for; the CPU time is compressed like any other, so that this is so at every k."""
    seed: int = 1
    log: str = ""
    """A World Cup 98 binary log whose requests the target gets in place of the synthesised ones."""
    log_region: int | None = None
    """The site whose requests of the log are taken, 0 to 7 (section 7.1: Santa Clara only); None is all of them."""
    log_onset_s: float = 1000.0
    """When the crowd begins in the log ("at t = 1000 s", section 8.1), which is replayed so that it begins there."""

    def crowd(self) -> Crowd:
        """Return the rates of the target's requests; zero is the log's."""
        return Crowd(self.quiet_per_s, self.crowd_per_s, self.onset_s, self.ramp_s, self.seconds)

    @property
    def onset_s(self) -> float:
        """Seconds from the load's beginning to the crowd's."""
        return (self.before + self.onset_phase) * self.period_s

    @property
    def slow_turn_us(self) -> float:
        """CPU time of the slow target for a block of an answer, compressed."""
        return self.slow_cost_us / self.k

    @property
    def seconds(self) -> float:
        """Length of the load."""
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
    """Requests per second during the service's crowd, behind the settings' ramp."""
    begins_s: float = 0.0
    """Seconds from the onset to the beginning of the service's crowd."""
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
        """Return the course of the service's request rate."""
        begin = settings.onset_s + self.begins_s
        return Crowd(
            self.quiet_per_s, self.crowd_per_s, begin, settings.ramp_s, settings.seconds, over_s=begin + self.lasts_s
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load on the target, and on further services if there are any."""

    name: str
    title: str
    server: HostPlan
    crowd_per_s: float | None = None
    """The target's rate after the onset; None: the settings' rate."""
    ramp_s: float | None = None
    slow_clients: bool = False
    """Whether only clients with slow links send requests after the onset."""
    false_alarm: bool = False
    """Whether the scenario has no crowd, so that every alarm is false."""
    bulk: bool = True
    web: bool = True
    """Whether there is a bulk transfer, and a bystander's web load."""
    lasts_s: float = math.inf
    """Seconds from the onset to the end of the target's synthesised crowd, before compression."""
    further: tuple[Further, ...] = ()
    """Further services.  Scenarios with different services need different names: a run's identity has only the name."""

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
    """A constant limit on the target, per second before compression."""
    static_from: str = ""
    """The variant whose mean limit becomes this variant's constant limit."""

    @property
    def controls(self) -> bool:
        """Whether flash-crowd control limits anything."""
        return self.mode != "static"

    def news(self, settings: Settings) -> dict[str, object]:
        """Return the `news` mapping of sluice.yaml, all times divided by k and rates multiplied."""
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
