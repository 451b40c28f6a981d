"""What a run is made with.  Values are published or named as this lab's; times and rates are before compression."""

from __future__ import annotations

from dataclasses import dataclass

from topo.plan.synthesis import Crowd

PAPER_PERIOD_S = 64.0
LINK_BIT_PER_S = 2e6
"""Section 8.1."""
FRAME_BYTES = 1514


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that two runs have in common."""

    k: float = 8.0
    """Compression: divides every time below, multiplies every rate."""
    period_s: float = PAPER_PERIOD_S
    """T."""
    before: int = 8
    after: int = 11
    """Intervals before and after the one in which the crowd begins."""
    onset_phase: float = 0.4
    """Where in its interval the crowd begins.  As published, the limit starts from what was admitted in the interval of
    the alarm and then moves up and down around it, so this and the ramp decide how high it is: `make news-phases` shows
    how much (docs/reference/crowds.md)."""
    quiet_per_s: float = 20.0
    crowd_per_s: float = 110.0
    ramp_s: float = 60.0
    """From the quiet to the crowd's rate ("about 5 times in just several minutes"): the link is full after 20 s."""
    link_bit_per_s: float = LINK_BIT_PER_S
    loss: float = 0.0
    """Part of the packets towards the clients that are lost on their way behind r1 (`--loss`); by netem, so only where
    it is."""
    queue_frames: int = 32
    burst_frames: int = 2
    initcwnd: int = 2
    congestion_control: str = "reno"
    patience_s: float = 60.0
    """Section 7.6.1."""
    bulk_bit_per_s: float = 327e3
    """Section 8.6: what the bystander's bulk transfer reaches when it is quiet."""
    web_per_s: float = 5.0
    """Requests of the bystander ("less than 20")."""
    rto_min_s: float = 0.2
    """Linux's; it is a time like any other, so it is compressed too.  The first SYN's second is not: it is fixed."""
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
        """When the crowd begins."""
        return (self.before + self.onset_phase) * self.period_s

    @property
    def slow_turn_us(self) -> float:
        """CPU time of the slow target for a block of an answer, compressed."""
        return self.slow_cost_us / self.k

    @property
    def seconds(self) -> float:
        """Length of the load."""
        return (self.before + self.onset_phase + self.after) * self.period_s
