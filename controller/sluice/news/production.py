"""Production mode's control of the limit: search for the capacity while it binds, lift it when it is not needed."""

from __future__ import annotations

from dataclasses import dataclass

from .baseline_detector import HEALTH_WINDOWS
from .knee import Knee
from .lasting import Portion
from .limit import bounded
from .options import NewsOptions
from .requests import Requests
from .search import CapacitySearch

_DRAIN_WINDOWS = 6
"""For so many measurement windows after a degradation responses of its queue last, and wait for their repetitions."""
_BEYOND = 0.3
"""Of the largest step upward: past a limit that was too high, responses are watched more closely than AR can."""


@dataclass(frozen=True, slots=True)
class Health:
    """What the limit is steered by."""

    ar_share: float | None
    """AR in parts of its reference; None when there is no evidence."""
    healthy: bool
    """AR is so close to its reference that more could be admitted."""
    degraded: bool
    """AR is below its reference by more than the tolerance. Neither: the limit holds."""
    busier: bool
    """More requests are offered than usual, or it is not known what is usual."""
    lasting: Portion | None = None
    """The responses of the newest interval that last; None where nobody can tell."""


class ProductionRegulator:
    """The limit of one target, connections per second; None while nothing is limited.

    After a move the limit rests until what the next is decided by holds nothing from before it.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self._search: CapacitySearch | None = None
        self._floor = 0.0
        self._rest = 0
        self._knee = Knee()
        self._look = True
        """The first healthy limit is to be lowered once: nothing is known of lower ones."""
        self.idle = 0
        """Intervals in a row in which the limit was not needed."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; the limit is brought within changed bounds."""
        self._options = options
        if self._search is not None:
            self._search.limit = bounded(self._search.limit, options)

    @property
    def rate(self) -> float | None:
        """The limit in force."""
        return None if self._search is None else self._search.limit

    def start(self, admitted: float, ar_share: float | None, usual: float) -> None:
        """Limit a target: at its currently admitted rate, at once backed off by how far AR is down.

        ``usual`` is its usual request rate, connections per second; the limit's floor is a part of it.
        """
        self._floor = usual * self._options.production.limit_floor
        self._search, self._knee, self._look = CapacitySearch(admitted), Knee(), True
        if ar_share is not None:
            self._search.degraded(ar_share, self._options.production)
        self._moved(drains=_DRAIN_WINDOWS)

    def adopt(self, rate: float, usual: float) -> None:
        """Go on from a limit found in the switch; ``usual`` as for ``start``."""
        self._floor = usual * self._options.production.limit_floor
        self._search, self._knee, self._look = CapacitySearch(rate), Knee(), True
        self._moved()

    def observe(self, health: Health, target: Requests, seconds: float) -> None:
        """One interval under the limit: ``target`` are its requests in it."""
        if self._search is None:
            return
        extra = self._options.production
        binds = target.refused_share > extra.binding_share
        self.idle = 0 if binds and health.busier else self.idle + 1
        if self.idle >= extra.lift_intervals:
            self._search = None
            return
        self._rest = max(0, self._rest - 1)
        self._knee.add(health.lasting, degraded=health.degraded)
        if health.ar_share is None or not health.busier:
            return
        degraded = health.degraded and not self._knee.denies
        if self._knee.known and binds and not (degraded and not self._rest):
            self._follow_knee(health)
        elif self._rest:
            return
        elif degraded:
            if not binds:
                # What is admitted is already less than the limit, so the limit has to come down to it first.
                self._search.limit = min(self._search.limit, target.admitted / seconds)
            self._search.degraded(health.ar_share, extra)
            self._look = False
            self._moved(drains=_DRAIN_WINDOWS)
        elif health.healthy and binds:
            if self._look and health.lasting is not None:
                self._look = False
                self._search.look_below()
                self._moved(drains=1)
            else:
                self._search.healthy(extra)
                self._moved(up=True)

    def _follow_knee(self, health: Health) -> None:
        """Up where responses last no longer, down where they do; as long as neither is certain the limit holds."""
        assert self._search is not None
        extra = self._options.production
        if self._knee.strained:
            self._search.strained(extra)
            self._moved(drains=HEALTH_WINDOWS)
        elif health.healthy and (room := self._knee.room) > 0:
            self._search.healthy(extra, room, _BEYOND)
            self._moved(up=True)

    def _moved(self, *, up: bool = False, drains: int | None = None) -> None:
        assert self._search is not None
        self._search.limit = bounded(max(self._search.limit, self._floor), self._options)
        window = self._options.production.intervals
        self._knee.moved(self._search.limit, window if up else HEALTH_WINDOWS * window, drains and drains * window)
        self._rest = HEALTH_WINDOWS * self._options.production.intervals
        self.idle = 0
