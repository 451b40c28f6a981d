"""What happens in a run (scenarios), and what is done about it (variants)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from topo.plan.crowd.further import Further
from topo.plan.crowd.network import FAST, SLOW
from topo.plan.crowd.settings import Settings
from topo.plan.network import HostPlan

PRODUCTION_TIMES_S = {"detection_s": 1.0, "window_s": 4.0, "baseline_s": 64.0}
BUCKET_S = 0.25
POLL_S = 2.0
RATE_WINDOW_S = 1.0
"""To be divided by k: the controller's defaults, but without production mode the switch is read every 2 s only."""
MODEM_BYTES_PER_S = 7_000
"""A 56 kbit/s line."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One load on one target, and on further services where there are any."""

    name: str
    title: str
    server: HostPlan
    crowd_per_s: float | None = None
    """The target's rate after the onset, if it is not the settings'."""
    ramp_s: float | None = None
    slow_clients: bool = False
    """After the onset only clients with slow links ask."""
    false_alarm: bool = False
    """There is no crowd: an alarm is a false one."""
    bulk: bool = True
    web: bool = True
    """Which bystanders there are."""
    lasts_s: float = math.inf
    """Seconds from the onset to the end of the target's synthesised crowd, before compression."""
    further: tuple[Further, ...] = ()
    """A scenario with other ones needs a name of its own: a run's identity has the name only."""

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
SCENARIOS = {one.name: one for one in (NETWORK, SERVER, BULK, WEB, SLOW_CLIENTS, RISING_LOAD)}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to treat the load."""

    name: str
    title: str
    mode: str = "static"
    """Of flash-crowd control; `static` only measures."""
    identify: bool = True
    static_per_s: float | None = None
    """A limit on the target that never changes, per second before compression."""
    static_from: str = ""
    """The variant whose mean limit is this one's static limit."""

    @property
    def controls(self) -> bool:
        """Whether flash-crowd control limits anything."""
        return self.mode != "static"

    def news(self, settings: Settings, trace: str) -> dict[str, object]:
        """Return the `news` mapping of sluice.yaml, all times divided by k and rates multiplied."""
        k = settings.k
        production = {name: seconds / k for name, seconds in PRODUCTION_TIMES_S.items()}
        return {
            "mode": self.mode,
            "trace_file": trace,
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
VARIANTS = {one.name: one for one in (NONE, NEWS, HOT_SPOT, PRODUCTION, *STATIC, STATIC_SAME)}
