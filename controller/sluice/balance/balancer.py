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
from .production import HELD, Situation, production_step
from .ratios import Member, Ratios, fair_shares, normalised
from .recovery import Ceilings
from .silence import SilenceTracker, is_panic
from .slowness import Meetings, Work, together
from .weights import largest_remainder
from .window import Window


@dataclass(frozen=True, slots=True)
class Decision:
    """What a balancer says after one interval."""

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
    """Of the window, for those whose open connections are counted: where production mode takes a second look."""


class Balancer:
    """The ratios of one service and everything they are decided from."""

    def __init__(
        self, members: Iterable[Member], options: BalanceOptions, ratios: Mapping[int, float] | None = None
    ) -> None:
        """Start at the capacities, or at ``ratios`` (those a running switch was found with).

        Raises ValueError when every member is draining.
        """
        self._members = {member.server_id: member for member in members}
        self._options = options
        self._joined: dict[int, float] = {}
        self._windows: dict[int, Window] = {}
        # Losses that have moved no weight yet. A loss is in the window for m periods, and would move weight in each.
        # (What is known of slowness stays: to forget that as well made transfers two fifths longer.)
        self._evidence: dict[int, Window] = {}
        self._work: dict[int, deque[Work]] = {}
        self._ceilings = Ceilings()
        for server in self._members:
            self._forget(server)
        self._meetings = Meetings()
        self._previous: dict[int, Counts] = {}
        self._silence = SilenceTracker()
        self._silent: frozenset[int] = frozenset()
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
        """The present ratios; they sum to 1."""
        return dict(self._ratios)

    @property
    def ejected(self) -> frozenset[int]:
        """Servers whose pending connections are to choose again."""
        return self._ejected

    @property
    def _active(self) -> list[int]:
        return [i for i, member in self._members.items() if not member.draining]

    def _forget(self, server: int) -> None:
        """Begin anew with what is measured of a server."""
        self._windows[server] = Window(self._options.intervals)
        self._evidence[server] = Window(self._options.intervals)
        self._work[server] = deque(maxlen=self._options.intervals)
        self._ceilings.forget([server])

    def weights(self, without: Collection[int] = ()) -> dict[int, int]:
        """The present ratios as selector weights. Production mode keeps every active server measurable.

        Servers ``without`` weight are left out, unless nobody else is active. Where only those have a ratio the others
        share by capacity.
        """
        left = {i: 0.0 if i in without else ratio for i, ratio in self._ratios.items()}
        others = {i: member for i, member in self._members.items() if not member.draining and i not in without}
        if not others:
            left, without = self._ratios, ()
        elif sum(left.values()) <= 0:
            left |= fair_shares(others)
        present = self._active if self._options.mode is Mode.PRODUCTION else ()
        return largest_remainder(left, present=[i for i in present if i not in without])

    def adopt(self, ratios: Mapping[int, float]) -> None:
        """Go on from ratios found in the switch, unless they are what the present ones round to."""
        known = {i: ratios.get(i, 0.0) for i in self._active}
        if sum(known.values()) > 0:
            self._ratios = dict.fromkeys(self._members, 0.0) | normalised(known)

    def eject(self, servers: Collection[int]) -> None:
        """Go on from ejections found in the switch: these servers are silent until they answer."""
        if self._options.mode is Mode.PRODUCTION:
            self._ejected = self._silent = frozenset(servers) & frozenset(self._active)
            self._silence.adopt(self._ejected)

    def rebase(self) -> None:
        """The switch's counters may have been reset: the next reading is a new beginning, for silence too."""
        self._previous = {}
        self._meetings = Meetings()
        self._silence.begin_anew(self._silent | self._ejected)

    def configure(self, members: Iterable[Member], options: BalanceOptions, now_s: float) -> None:
        """Take over a changed pool or changed options; what is known about servers that stay is kept.

        A server that is new, or no longer draining, starts with nothing but its slow start in production mode
        and with its fair share otherwise. The others keep their proportions. Raises ValueError (and changes
        nothing) when every member would be draining.
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
        for kept in (self._windows, self._evidence):
            for server in set(kept) - set(changed):
                del kept[server]
            for window in kept.values():
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
        self._silent = self._silent & frozenset(self._active) if options.mode is Mode.PRODUCTION else frozenset()
        if options.mode is Mode.FIXED or sum(staying.values()) <= 0:
            self._ratios = fair
            return
        floor = options.production.probe_floor if options.mode is Mode.PRODUCTION else 1.0
        if options.production.slow_start_s <= 0:
            floor = 1.0
        new = {i: fair[i] * floor for i in arriving}
        left = 1.0 - sum(new.values())
        kept = {i: share * left for i, share in normalised(staying).items()}
        self._ratios = normalised(dict.fromkeys(changed, 0.0) | kept | new)

    def meet(self, open_now: Mapping[int, int]) -> None:
        """Take in a reading of the open connections, where the switch counts them: production mode sees by those that
        were met since the last decision who takes long. Times: ``slowness.MEETINGS``, and before each ``observe``.
        """
        self._meetings.meet(open_now)

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

        With ``hold`` the ratios stay, whatever was counted: its cause is no server. In production mode a silent server
        is ejected all the same. Servers that were ``full`` since the last reading got fewer connections than others for
        that: they are not taken for slow. By a ``late`` reading no server falls silent: it counts SYNs whose answers
        are still on their way to be counted.
        """
        met = self._meetings.take()
        known = set(self._previous)
        differences: dict[int, Counts] = {}
        for server in self._members:
            reading = cumulative[server]
            try:
                differences[server] = reading.since(self._previous.get(server, reading))
            except CounterReset:
                # The switch restarted between two readings: what it counted since is all there is.
                differences[server] = reading
            self._previous[server] = reading
        if not known:
            return None
        for server, counts in differences.items():
            self._windows[server].push(counts)
            self._evidence[server].push(counts)
            if server in met and server in known and server not in full:
                self._work[server].append(Work(*met[server], counts.synack))
            else:
                self._work[server].clear()
        self._silence.observe(differences)
        if late:
            self._silence.begin_anew(self._silent | self._ejected)
        return self._decide(now_s, differences, hold=hold)

    def _take_back(self, servers: frozenset[int], now_s: float) -> None:
        """Servers answer again: they get windows without the silence, and slow start if they had been ejected."""
        for server in servers:
            self._forget(server)
            if server in self._ejected:
                self._joined[server] = now_s

    def _decide(self, now_s: float, differences: Mapping[int, Counts], *, hold: bool) -> Decision:
        options, extra = self._options, self._options.production
        active = self._active
        silent = frozenset(self._silence.silent(extra.silent_connections)) & frozenset(active)
        if options.mode is Mode.PRODUCTION:
            self._take_back(self._silent - silent, now_s)
            self._silent = silent
        windows = {i: window.total for i, window in self._windows.items()}
        in_play = {i: windows[i] for i in active}
        distinct = {i: counts.distinct for i, counts in in_play.items()}
        panic = is_panic(silent, active, extra.panic)
        diagnosis = diagnose(
            distinct,
            silent,
            min_syn=options.min_syn,
            quiet_r=extra.quiet_r,
            flood_completed=extra.flood_completed,
            flood_r=extra.flood_r,
            panic=panic,
        )
        ratios, ejected = {i: self._ratios[i] for i in active}, frozenset[int]()
        work = {i: together(self._work[i]) for i in active if self._work[i]}
        match options.mode:
            case Mode.PAPER if hold:
                reason = HELD
            case Mode.FIXED:
                fair = fair_shares(self._members)
                ratios, reason = {i: fair[i] for i in active}, "fixed"
            case Mode.PAPER:
                ratios, source = paper_step(ratios, in_play, options)
                reason = "no worst server" if source is None else f"moved {options.delta:g} of server {source}"
            case Mode.PRODUCTION:
                ejected = frozenset() if panic else silent
                if panic:
                    self._joined = {}  # they have their whole share
                ratios, reason = self._produce(now_s, distinct, ejected, diagnosis, work, hold=hold)
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
        diagnosis: Diagnosis,
        work: Mapping[int, Work],
        *,
        hold: bool,
    ) -> tuple[Ratios, str]:
        """Production mode's ratios of the active servers, and their reason."""
        ratios = {i: self._ratios[i] for i in windows}
        ages = {i: now_s - since for i, since in self._joined.items() if i in windows}
        fair = fair_shares({i: self._members[i] for i in windows})
        evidence = {i: self._evidence[i].total.distinct for i in windows}
        aim, tried = self._ceilings.below(fair), self._ceilings.tried
        situation = Situation(ratios, fair, aim, tried, windows, evidence, ejected, ages, diagnosis, hold, work)
        move = production_step(situation, self._options)
        self._ceilings.pass_period()
        for server in move.lost:
            self._evidence[server].clear()
            self._ceilings.lost(server, move.ratios[server], self._options.intervals)
        for server in move.gave:
            self._joined.pop(server, None)  # what it is fit for is known now
        return move.ratios, move.reason
