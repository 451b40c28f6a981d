"""One service's balancer: cumulative counts in, a decision out. Virtual time, no switch, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .counts import CounterReset, Counts
from .diagnosis import Diagnosis, diagnose
from .metric import ratio_of_unanswered, ratio_with_every_synack
from .options import BalanceOptions, Mode
from .paper import paper_step
from .production import HOLD, Situation, production_step
from .ratios import Member, Ratios, fair_shares, normalised
from .recovery import Ceilings
from .silence import SilenceTracker
from .slowness import OpenSamples, Work, together
from .weights import largest_remainder
from .window import Window


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one interval: new ratios and weights, and the measurements behind them."""

    time_s: float
    differences: Mapping[int, Counts]
    """The newest interval."""
    windows: Mapping[int, Counts]
    """Sums over the window, the base of R."""
    r: Mapping[int, float | None]
    r_every_synack: Mapping[int, float | None]
    ratios: Mapping[int, float]
    weights: Mapping[int, int]
    ejected: frozenset[int]
    diagnosis: Diagnosis
    reason: str
    work: Mapping[int, Work]
    """Over the window; only of servers whose open connections the switch counts, which it does for the second look."""


class Balancer:
    """The ratios of one service, and the measurements that decide them."""

    def __init__(
        self, members: Iterable[Member], options: BalanceOptions, ratios: Mapping[int, float] | None = None
    ) -> None:
        """Start at the capacities, or at ``ratios`` read back from a running switch.

        Raises ValueError when every member is draining.
        """
        self._members = {member.server_id: member for member in members}
        self._options = options
        self._joined: dict[int, float] = {}
        self._windows: dict[int, Window] = {}
        # Losses that have moved no weight yet. A loss stays in the window for m periods and would move weight in each.
        # (Open connections are not cleared after a move: clearing them made transfers two fifths longer.)
        self._evidence: dict[int, Window] = {}
        self._work: dict[int, deque[Work]] = {}
        self._ceilings = Ceilings()
        for server in self._members:
            self._forget(server)
        self._open = OpenSamples()
        self._previous: dict[int, Counts] = {}
        self._silence = SilenceTracker()
        self._ejected: frozenset[int] = frozenset()
        fair = fair_shares(self._members)
        known = {i: ratios.get(i, 0.0) for i in self._active} if ratios else {}
        self._ratios: Ratios = fair | normalised(known) if sum(known.values()) > 0 else fair

    @property
    def options(self) -> BalanceOptions:
        """The options in force."""
        return self._options

    @property
    def members(self) -> Mapping[int, Member]:
        """The servers by id."""
        return self._members

    @property
    def ratios(self) -> Ratios:
        """The ratios in force; they sum to 1."""
        return dict(self._ratios)

    @property
    def ejected(self) -> frozenset[int]:
        """Silent servers: each has its probe floor, and its pending connections choose again."""
        return self._ejected

    @property
    def _active(self) -> list[int]:
        return [i for i, member in self._members.items() if not member.draining]

    def _forget(self, server: int) -> None:
        """Drop all measurements of a server."""
        self._windows[server] = Window(self._options.intervals)
        self._evidence[server] = Window(self._options.intervals)
        self._work[server] = deque(maxlen=self._options.intervals)
        self._ceilings.forget([server])

    def weights(self, without: Collection[int] = ()) -> dict[int, int]:
        """The ratios as selector weights. In production mode each active server has a weight of at least 1, so that it
        is still measured.

        Servers in ``without`` get no weight, unless no other server is active. If only those have a ratio, the others
        share by capacity.
        """
        left = {i: 0.0 if i in without else ratio for i, ratio in self._ratios.items()}
        others = {i: member for i, member in self._members.items() if not member.draining and i not in without}
        if not others:
            left, without = self._ratios, ()
        elif sum(left.values()) <= 0:
            left |= fair_shares(others)
        measured = self._active if self._options.mode is Mode.PRODUCTION else ()
        return largest_remainder(left, present=[i for i in measured if i not in without])

    def adopt(self, ratios: Mapping[int, float]) -> None:
        """Replace the ratios by those read back from the switch; of servers that do not drain."""
        known = {i: ratios.get(i, 0.0) for i in self._active}
        if sum(known.values()) > 0:
            self._ratios = dict.fromkeys(self._members, 0.0) | normalised(known)

    def eject(self, servers: Collection[int]) -> None:
        """Take over ejections read back from the switch: these servers are silent until their next SYN-ACK."""
        if self._options.mode is Mode.PRODUCTION:
            self._ejected = frozenset(servers) & frozenset(self._active)
            self._silence.adopt(self._ejected)

    def rebase(self) -> None:
        """Take the next reading as a base: the switch may have reset its counters. Ejected servers stay ejected."""
        self._previous = {}
        self._open = OpenSamples()
        self._silence.restart(self._ejected)

    def configure(self, members: Iterable[Member], options: BalanceOptions, now_s: float) -> None:
        """Take over a changed pool or changed options; servers that stay keep their measurements.

        A server that is new, or no longer draining, begins a slow start in production mode and has its fair share in
        the others. The other servers keep their proportions. Raises ValueError (and changes nothing) when every member
        would be draining.
        """
        changed = {member.server_id: member for member in members}
        fair = fair_shares(changed)
        before = set(self._active)
        same_readings = options.period_s == self._options.period_s
        self._members, self._options = changed, options
        arriving = [i for i in self._active if i not in before]
        staying = {i: self._ratios[i] for i in self._active if i in before}
        self._joined = {i: since for i, since in self._joined.items() if i in staying}
        self._ceilings.forget(before - changed.keys())
        for windows in (self._windows, self._evidence):
            for server in set(windows) - set(changed):
                del windows[server]
            for window in windows.values():
                window.resize(options.intervals)
        self._work = {
            i: deque(work if same_readings else (), maxlen=options.intervals)
            for i, work in self._work.items()
            if i in changed
        }
        for server in changed:
            if server in arriving or server not in self._windows:
                self._forget(server)
        for server in arriving:
            self._joined[server] = now_s
        self._previous = {i: c for i, c in self._previous.items() if i in changed}
        self._ejected &= frozenset(self._active)
        if options.mode is Mode.FIXED or sum(staying.values()) <= 0:
            self._ratios = fair
            return
        floor = options.production.probe_floor if options.mode is Mode.PRODUCTION else 1.0
        if options.production.slow_start_s <= 0:
            floor = 1.0
        new = {i: fair[i] * floor for i in arriving}
        left = 1.0 - sum(new.values())
        old = {i: share * left for i, share in normalised(staying).items()}
        self._ratios = normalised(dict.fromkeys(changed, 0.0) | old | new)

    def sample_open(self, open_now: Mapping[int, int]) -> None:
        """Take in each server's number of open connections, where the switch counts them. Production mode finds slow
        servers from these samples. They are due at ``slowness.SAMPLE_TIMES`` and before each ``observe``.
        """
        self._open.add(open_now)

    def observe(
        self,
        now_s: float,
        cumulative: Mapping[int, Counts],
        *,
        hold: bool = False,
        full: Collection[int] = (),
        late: bool = False,
    ) -> Decision | None:
        """Take in a reading of the ledger and decide. None for the first reading, which is only a base.

        ``hold`` keeps the ratios: no server is the cause of the counts. In production mode a silent server is ejected
        all the same. Servers that were ``full`` since the last reading got fewer new connections for that reason, so
        their open connections are no sign of slowness. A ``late`` reading makes no server silent: it holds SYNs whose
        SYN-ACKs the next reading will count.
        """
        sampled = self._open.take()
        known = set(self._previous)
        differences: dict[int, Counts] = {}
        for server in self._members:
            reading = cumulative[server]
            try:
                differences[server] = reading.since(self._previous.get(server, reading))
            except CounterReset:
                # The switch restarted between two readings; it has counted only since then.
                differences[server] = reading
            self._previous[server] = reading
        if not known:
            return None
        for server, counts in differences.items():
            self._windows[server].push(counts)
            self._evidence[server].push(counts)
            if server in sampled and server in known and server not in full:
                self._work[server].append(Work(*sampled[server], counts.synack))
            else:
                self._work[server].clear()
        self._silence.observe(differences)
        if late:
            self._silence.restart(self._ejected)
        return self._decide(now_s, differences, hold=hold)

    def _take_back(self, servers: frozenset[int], now_s: float) -> None:
        """Start servers that answer again: with windows that do not hold the silence, and slowly."""
        for server in servers:
            self._forget(server)
            self._joined[server] = now_s

    def _decide(self, now_s: float, differences: Mapping[int, Counts], *, hold: bool) -> Decision:
        options, extra = self._options, self._options.production
        active = self._active
        silent = frozenset(self._silence.silent(extra.silent_connections)) & frozenset(active)
        if options.mode is Mode.PRODUCTION:
            self._take_back(self._ejected - silent, now_s)
        windows = {i: window.total for i, window in self._windows.items()}
        in_play = {i: windows[i] for i in active}
        distinct = {i: counts.distinct for i, counts in in_play.items()}
        diagnosis = diagnose(
            distinct,
            silent,
            min_syn=options.min_syn,
            quiet_r=extra.quiet_r,
            flood_completed=extra.flood_completed,
            flood_r=extra.flood_r,
        )
        ratios, ejected = {i: self._ratios[i] for i in active}, frozenset[int]()
        work = {i: together(self._work[i]) for i in active if self._work[i]}
        match options.mode:
            case Mode.PAPER if hold:
                reason = HOLD
            case Mode.FIXED:
                fair = fair_shares(self._members)
                ratios, reason = {i: fair[i] for i in active}, "fixed"
            case Mode.PAPER:
                ratios, source = paper_step(ratios, in_play, options)
                reason = "no worst server" if source is None else f"moved {options.delta:g} of server {source}"
            case Mode.PRODUCTION:
                ejected = silent
                ratios, reason = self._produce(now_s, distinct, ejected, work, hold=hold)
        self._joined = {i: since for i, since in self._joined.items() if now_s - since < extra.slow_start_s}
        self._ejected = ejected
        self._ratios = dict.fromkeys(self._members, 0.0) | ratios
        return Decision(
            time_s=now_s,
            differences=dict(differences),
            windows=windows,
            r={i: ratio_of_unanswered(w, options.min_syn) for i, w in windows.items()},
            r_every_synack={i: ratio_with_every_synack(w, options.min_syn) for i, w in windows.items()},
            ratios=self.ratios,
            weights=self.weights(),
            ejected=ejected,
            diagnosis=diagnosis,
            reason=reason,
            work=work,
        )

    def _produce(
        self,
        now_s: float,
        windows: Mapping[int, Counts],
        ejected: frozenset[int],
        work: Mapping[int, Work],
        *,
        hold: bool,
    ) -> tuple[Ratios, str]:
        """Production mode's ratios of the active servers, and their reason."""
        ratios = {i: self._ratios[i] for i in windows}
        ages = {i: now_s - since for i, since in self._joined.items() if i in windows}
        fair = fair_shares({i: self._members[i] for i in windows})
        evidence = {i: self._evidence[i].total.distinct for i in windows}
        aim, carried = self._ceilings.below(fair), self._ceilings.carried
        situation = Situation(ratios, fair, aim, carried, windows, evidence, ejected, ages, hold, work)
        move = production_step(situation, self._options)
        self._ceilings.pass_period()
        for server in move.lost:
            self._evidence[server].clear()
            self._ceilings.lost(server, move.ratios[server], self._options.intervals)
        for server in move.gave:
            self._joined.pop(server, None)  # its slow start has found the share that it can carry
        return move.ratios, move.reason
