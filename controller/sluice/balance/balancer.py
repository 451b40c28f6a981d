"""One service's balancer: cumulative counts in, a decision out. Virtual time, no switch, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .counts import CounterReset, Counts
from .diagnosis import Diagnosis, diagnose
from .metric import ratio_of_unanswered, ratio_with_every_synack
from .options import BalanceOptions, Mode
from .paper import paper_step
from .production import Situation, production_step
from .ratios import Member, Ratios, fair_shares, normalised
from .silence import SilenceTracker, is_panic
from .slowness import Meetings, Work
from .weights import largest_remainder, weight_sum
from .window import Window

_LONG_AGO = float("-inf")


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
        self._windows = {i: Window(options.intervals) for i in self._members}
        self._evidence = {i: Window(options.intervals) for i in self._members}
        self._meetings = Meetings()
        self._open = self._rings()
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
        """The present ratios; they sum to 1."""
        return dict(self._ratios)

    @property
    def ejected(self) -> frozenset[int]:
        """Servers whose pending connections are to choose again."""
        return self._ejected

    @property
    def _active(self) -> list[int]:
        return [i for i, member in self._members.items() if not member.draining]

    def _rings(self) -> dict[int, deque[tuple[int, int]]]:
        return {i: deque[tuple[int, int]](maxlen=self._options.intervals) for i in self._members}

    def weights(self) -> dict[int, int]:
        """The present ratios as selector weights. Production mode keeps every active server measurable."""
        present = self._active if self._options.mode is Mode.PRODUCTION else ()
        return largest_remainder(self._ratios, weight_sum(len(self._members)), present=present)

    def adopt(self, ratios: Mapping[int, float]) -> None:
        """Go on from ratios found in the switch, unless they are what the present ones round to."""
        known = {i: ratios.get(i, 0.0) for i in self._active}
        if sum(known.values()) > 0:
            self._ratios = dict.fromkeys(self._members, 0.0) | normalised(known)

    def rebase(self) -> None:
        """The switch's counters may have been reset: the next reading is a new beginning."""
        self._previous = {}
        self._meetings = Meetings()

    def configure(self, members: Iterable[Member], options: BalanceOptions, now_s: float) -> None:
        """Take over a changed pool or changed options; what is known about servers that stay is kept.

        A server that is new, or no longer draining, starts with nothing but its slow start in production mode
        and with its fair share otherwise. The others keep their proportions. Raises ValueError (and changes
        nothing) when every member would be draining.
        """
        changed = {member.server_id: member for member in members}
        fair = fair_shares(changed)
        before = set(self._active)
        self._members, self._options = changed, options
        arriving = [i for i in self._active if i not in before]
        staying = {i: self._ratios[i] for i in self._active if i in before}
        for server in arriving:
            self._joined[server] = now_s
        for server in set(self._joined) - set(changed):
            del self._joined[server]
        self._windows = {i: self._windows.get(i) or Window(options.intervals) for i in changed}
        self._evidence = {i: self._evidence.get(i) or Window(options.intervals) for i in changed}
        for window in (*self._windows.values(), *self._evidence.values()):
            window.resize(options.intervals)
        self._open = self._rings()
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
        kept = {i: share * left for i, share in normalised(staying).items()}
        self._ratios = normalised(dict.fromkeys(changed, 0.0) | kept | new)

    def meet(self, open_now: Mapping[int, int]) -> None:
        """Take in a reading of the open connections, where the switch counts them: production mode sees by those that
        were met since the last decision who takes long. Times: ``slowness.MEETINGS``, and before each ``observe``.
        """
        self._meetings.meet(open_now)

    def observe(self, now_s: float, cumulative: Mapping[int, Counts], *, hold: bool = False) -> Decision | None:
        """Take in a reading of the ledger and decide. None for the first reading, which is only a base.

        With ``hold`` the ratios and whoever is ejected stay, whatever was counted: its cause is no server.
        """
        met = self._meetings.take()
        first = not self._previous
        differences: dict[int, Counts] = {}
        for server in self._members:
            reading = cumulative[server]
            try:
                differences[server] = reading.since(self._previous.get(server, reading))
            except CounterReset:
                # The switch restarted between two readings: what it counted since is all there is.
                differences[server] = reading
            self._previous[server] = reading
        if first:
            return None
        for server, counts in differences.items():
            self._windows[server].push(counts)
            self._evidence[server].push(counts)
            if server in met:
                self._open[server].append(met[server])
            else:
                self._open[server].clear()
        self._silence.observe(differences)
        return self._decide(now_s, differences, hold=hold)

    def _decide(self, now_s: float, differences: Mapping[int, Counts], *, hold: bool) -> Decision:
        options, extra = self._options, self._options.production
        active = self._active
        windows = {i: window.total for i, window in self._windows.items()}
        in_play = {i: windows[i] for i in active}
        silent = frozenset(self._silence.silent(extra.silent_syn)) & frozenset(active)
        panic = is_panic(silent, active, extra.panic)
        diagnosis = diagnose(
            in_play,
            silent,
            min_syn=options.min_syn,
            quiet_r=extra.quiet_r,
            flood_completed=extra.flood_completed,
            flood_r=extra.flood_r,
            panic=panic,
        )
        ratios = {i: self._ratios[i] for i in active}
        ejected: frozenset[int] = frozenset()
        work = {i: self._worked(i, windows[i]) for i in active if self._open[i]}
        match options.mode:
            case _ if hold and options.mode is not Mode.FIXED:
                ejected, reason = self._ejected & frozenset(active), "held: no server is the cause"
            case Mode.FIXED:
                fair = fair_shares(self._members)
                ratios, reason = {i: fair[i] for i in active}, "fixed"
            case Mode.PAPER:
                ratios, source = paper_step(ratios, in_play, options)
                reason = "no worst server" if source is None else f"moved {options.delta:g} of server {source}"
            case Mode.PRODUCTION:
                ejected = frozenset() if panic else silent
                for server in self._ejected - ejected:
                    # It answers again: slow start, and a window without the silence.
                    self._joined[server] = now_s
                    self._windows[server].clear()
                    self._evidence[server].clear()
                ages = {i: now_s - self._joined.get(i, _LONG_AGO) for i in active}
                fair = fair_shares({i: self._members[i] for i in active})
                evidence = {i: self._evidence[i].total for i in active}
                situation = Situation(ratios, fair, in_play, evidence, ejected, ages, diagnosis, work)
                move = production_step(situation, options)
                ratios, reason = move.ratios, move.reason
                for server in move.gave:
                    self._evidence[server].clear()
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

    def _worked(self, server: int, window: Counts) -> Work:
        met = self._open[server]
        return Work(sum(number for number, _ in met), sum(rises for _, rises in met), window.synack)
