"""Production mode's limit: a search for the capacity while the limit binds. The limit is lifted when not needed."""

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
"""Number of measurement windows after a degradation in which the queue of the former limit still drains. The responses
in this queue last long and are retransmitted."""
_REST_WINDOWS = 4
"""Number of measurement windows for which a limit stays after two moves down in a row, because the former queue still
drains."""
_STRAINED = 0.9
"""A rise in the number of lasting responses shows a full link only while AR is below this fraction of its reference.
Both AR and the number of lasting responses vary by chance."""
_CLIMB, _BEYOND = 0.5, 0.3
"""Parts of the largest step upward, for steps that are decided by lasting responses, which show the capacity more
exactly than AR. The first part bounds every such step, the second bounds a step beyond a limit that was too high."""


@dataclass(frozen=True, slots=True)
class Health:
    """The measurements that decide the moves of a limit."""

    ar_share: float | None
    """AR (the mean rate of the fastest responses) in parts of its reference; None without evidence."""
    healthy: bool
    """Whether AR is close enough to its reference that more connections could be admitted."""
    degraded: bool
    """Whether AR is so far below its reference that the limit may be too high. AR may be neither healthy nor
    degraded."""
    busier: bool
    """Whether more requests are offered than usual, or the usual rate is unknown."""
    lasting: Portion | None = None
    """The lasting responses of the newest interval (those that also had packets in earlier intervals of the window).
    None if flows have no keys, or there is no earlier interval."""


class ProductionRegulator:
    """The limit of one target.

    After a move the limit stays until the next move can be decided by measurements that all began after the first move.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self._search: CapacitySearch | None = None
        self._floor = 0.0
        self._rest = 0
        self._knee = Knee()
        self._long = LongMean(options.production)
        """The long-term mean of AR since the last queue was drained."""
        self._drains = 0
        self.idle = 0
        """Number of consecutive intervals in which the limit was not needed."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters, and bring the limit within changed bounds."""
        self._options = options
        self._long.configure(options.production)
        if self._search is not None:
            self._search.limit = bounded(self._search.limit, options)

    @property
    def rate(self) -> float | None:
        """The limit in force in connections per second; None while there is no limit."""
        return None if self._search is None else self._search.limit

    def start(self, admitted: float, ar_share: float | None, usual: float) -> None:
        """Limit a target to its present rate of admitted connections, reduced at once in proportion to the fall of AR.

        ``usual`` is the target's usual rate of requests; a part of it is the limit's lower bound. Rates are in
        connections per second.
        """
        self._floor = usual * self._options.production.limit_floor
        search = self._begin(admitted)
        if ar_share is not None:
            search.degraded(ar_share, self._options.production)
        self._moved(drains=_DRAIN_WINDOWS)

    def adopt(self, rate: float, usual: float) -> None:
        """Continue from a limit that is in the switch. ``usual`` is the target's usual rate of requests per second."""
        self._floor = usual * self._options.production.limit_floor
        self._begin(rate)
        self._moved()

    def _begin(self, rate: float) -> CapacitySearch:
        self._search = CapacitySearch(rate)
        self._knee, self._long = Knee(), LongMean(self._options.production)
        return self._search

    def observe(self, health: Health, target: Requests, seconds: float) -> None:
        """Move or lift the limit by the measurements of one interval under the limit. ``target`` are the requests for
        the target in ``seconds``."""
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
        """Move the limit by AR: near a full link by the long-term mean of AR, otherwise by its mean over two
        windows."""
        assert self._search is not None and health.ar_share is not None
        extra, has_lasting = self._options.production, health.lasting is not None
        degraded = health.degraded and not self._knee.denies and (self._long.low or not has_lasting)
        if has_lasting and not degraded and binds and (above := self._above) is not None:
            if not self._rest and (above >= 0 or self._long.blames(self._search.limit)):
                self._search.trim(above, self._knee.room)
                self._moved(up=True)
        elif self._knee.known and binds and not (degraded and not self._rest):
            self._climb(health)
        elif self._rest:
            return
        elif degraded:
            if not binds:
                # Fewer connections are admitted than the limit allows, so the limit is first lowered to their rate.
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
        """The long-term mean of AR minus its target; None while this mean is unknown or does not move the limit."""
        assert self._search is not None
        return self._long.above if self._search.near or self._long.low else None

    def _climb(self, health: Health) -> None:
        """Raise the limit if AR is healthy and the test shows that responses do not last longer."""
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
