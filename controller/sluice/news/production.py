"""Production mode's control of the limit: search for the capacity while it binds, lift it when it is not needed."""

from __future__ import annotations

from dataclasses import dataclass

from .baseline_detector import HEALTH_WINDOWS
from .knee import Knee
from .lasting import Portion
from .limit import bounded
from .longmean import LongMean
from .options import NewsOptions
from .requests import Requests
from .search import CapacitySearch

_DRAIN_WINDOWS = 6
"""For so many measurement windows after a degradation responses of its queue last, and wait for their repetitions."""
_REST_WINDOWS = 4
"""So long a limit rests that went down twice in a row: what queued before the first is still on its way."""
_STRAINED = 0.9
"""More responses that last mean a full link only while AR is below this part of its reference: both scatter."""
_CLIMB, _BEYOND = 0.5, 0.3
"""Of the largest step upward, where responses are watched more closely than AR can; and past a limit that was too
high."""


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
        self._long = LongMean(options.production)
        """Since the last queue has drained."""
        self._drains = 0
        self.idle = 0
        """Intervals in a row in which the limit was not needed."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; the limit is brought within changed bounds."""
        self._options = options
        self._long.configure(options.production)
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
        search = self._begin(admitted)
        if ar_share is not None:
            search.degraded(ar_share, self._options.production)
        self._moved(drains=_DRAIN_WINDOWS)

    def adopt(self, rate: float, usual: float) -> None:
        """Go on from a limit found in the switch; ``usual`` as for ``start``."""
        self._floor = usual * self._options.production.limit_floor
        self._begin(rate)
        self._moved()

    def _begin(self, rate: float) -> CapacitySearch:
        self._search = CapacitySearch(rate)
        self._knee, self._long = Knee(), LongMean(self._options.production)
        return self._search

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
        self._drains = max(0, self._drains - 1)
        if health.ar_share is not None and not self._drains:
            self._long.fold(health.ar_share)
        self._knee.add(health.lasting, degraded=health.degraded)
        if health.ar_share is None or not health.busier:
            return
        if binds and self._knee.known and self._knee.strained and health.ar_share < _STRAINED:
            self._search.strained(extra)
            self._moved(drains=HEALTH_WINDOWS)
        else:
            self._follow_ar(health, target, seconds, binds=binds)

    def _follow_ar(self, health: Health, target: Requests, seconds: float, *, binds: bool) -> None:
        """Near a full link its long mean moves the limit, elsewhere what it is over two windows does."""
        assert self._search is not None and health.ar_share is not None
        extra, tells = self._options.production, health.lasting is not None
        degraded = health.degraded and not self._knee.denies and (self._long.low or not tells)
        if tells and not degraded and binds and (above := self._above) is not None:
            if not self._rest and (above >= 0 or self._long.blames(self._search.limit)):
                self._search.trim(above, self._knee.room)
                self._moved(up=True)
        elif self._knee.known and binds and not (degraded and not self._rest):
            self._climb(health)
        elif self._rest:
            return
        elif degraded:
            if not binds:
                # What is admitted is already less than the limit, so the limit has to come down to it first.
                self._search.limit = min(self._search.limit, target.admitted / seconds)
            again = self._search.ar_share is not None
            self._search.degraded(health.ar_share, extra)
            self._moved(drains=_DRAIN_WINDOWS)
            if again:
                self._rest = _REST_WINDOWS * extra.intervals
        elif health.healthy and binds:
            self._search.healthy(extra)
            self._moved(up=True)

    @property
    def _above(self) -> float | None:
        """How far AR's long mean is above what it is to be, where that moves the limit."""
        assert self._search is not None
        return self._long.above if self._search.near or self._long.low else None

    def _climb(self, health: Health) -> None:
        """Up where responses last no longer; as long as that is not certain the limit holds."""
        assert self._search is not None
        if health.healthy and (room := self._knee.room) > 0:
            self._search.healthy(self._options.production, _CLIMB * room, _BEYOND)
            self._moved(up=True)

    def _moved(self, *, up: bool = False, drains: int | None = None) -> None:
        assert self._search is not None
        self._search.limit = bounded(max(self._search.limit, self._floor), self._options)
        window = self._options.production.intervals
        if drains == _DRAIN_WINDOWS:
            self._drains = drains * window
            self._long.begin_anew()
        self._knee.moved(self._search.limit, window if up else HEALTH_WINDOWS * window, drains and drains * window)
        self._rest = HEALTH_WINDOWS * self._options.production.intervals
        self.idle = 0
