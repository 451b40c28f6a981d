"""The balancer of one service. Its input is cumulative counts, its output a decision. Pure: the caller passes the
time."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .counts import CounterReset, Counts
from .diagnosis import Diagnosis, diagnose
from .metric import ratio_of_unanswered, ratio_with_every_synack
from .options import BalanceOptions
from .policies import POLICIES
from .policy import Interval, Policy
from .ratios import Member, Ratios, fair_shares, normalised
from .silence import SilenceTracker
from .slowness import OpenSamples, Work, together
from .weights import largest_remainder
from .window import Window


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one interval: new ratios and weights, and the measurements from which they were decided.

    The mappings are by server number. The policy has decided the ratios, weights and ejections.
    """

    time_s: float
    differences: Mapping[int, Counts]
    """The counts of the interval that has ended."""
    windows: Mapping[int, Counts]
    """The counts summed over the window. R is computed from them."""
    r: Mapping[int, float | None]
    """R over the window; None for a server with too few SYNs."""
    r_every_synack: Mapping[int, float | None]
    """R over the window as it would be if repeated SYN-ACKs were counted in addition to first ones."""
    ratios: Mapping[int, float]
    weights: Mapping[int, int]
    ejected: frozenset[int]
    diagnosis: Diagnosis
    reason: str
    work: Mapping[int, Work]
    """Open and new connections over the window. The mapping contains only servers whose open connections the switch
    counts. The switch counts them for the second look, in which a new connection compares several servers."""


class Balancer:
    """The measurements of one service, its ratios, and the policies that decide these ratios.

    The balancer records each server's counts over the window, its open connections, and whether it is silent; it
    diagnoses the service by these measurements. The policy of the mode in force decides the ratios, and stores what it
    needs of its own earlier decisions.
    """

    def __init__(
        self, members: Iterable[Member], options: BalanceOptions, ratios: Mapping[int, float] | None = None
    ) -> None:
        """Start with ratios in proportion to the capacities, or with ``ratios`` read back from a running switch.

        Raises ValueError when every member is draining.
        """
        self._members = {member.server_id: member for member in members}
        self._options = options
        self._windows: dict[int, Window] = {}
        self._work: dict[int, deque[Work]] = {}
        for server in self._members:
            self._measure_anew(server)
        self._policies = {mode: policy(options) for mode, policy in POLICIES.items()}
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
    def policy(self) -> Policy:
        """The policy of the mode in force."""
        return self._policies[self._options.mode]

    @property
    def members(self) -> Mapping[int, Member]:
        """Members of the service by server number."""
        return self._members

    @property
    def ratios(self) -> Ratios:
        """The ratios in force; they sum to 1."""
        return dict(self._ratios)

    @property
    def ejected(self) -> frozenset[int]:
        """Silent servers that the policy has ejected. Their pending connections are assigned to other servers. While
        another server answers, the share of an ejected server is only its probe floor (the least share that keeps a
        server measured)."""
        return self._ejected

    @property
    def _active(self) -> list[int]:
        return [i for i, member in self._members.items() if not member.draining]

    def _measure_anew(self, server: int) -> None:
        """Discard a server's counts over the window, and its open and new connections over the window."""
        self._windows[server] = Window(self._options.intervals)
        self._work[server] = deque(maxlen=self._options.intervals)

    def weights(self, without: Collection[int] = ()) -> dict[int, int]:
        """Return the ratios as selector weights. A policy may require that each active server is measured; the server's
        weight is then at least 1.

        Servers in ``without`` get no weight, unless no other server is active. If only servers in ``without`` have a
        ratio, the other active servers share by capacity.
        """
        ratios = {i: 0.0 if i in without else ratio for i, ratio in self._ratios.items()}
        others = {i: member for i, member in self._members.items() if not member.draining and i not in without}
        if not others:
            ratios, without = self._ratios, ()
        elif sum(ratios.values()) <= 0:
            ratios |= fair_shares(others)
        measured = self._active if self.policy.measures_all else ()
        return largest_remainder(ratios, measured=[i for i in measured if i not in without])

    def adopt(self, ratios: Mapping[int, float]) -> None:
        """Replace the ratios of the servers that do not drain by ratios read back from the switch. If none of these
        servers has a ratio in the switch, nothing changes."""
        known = {i: ratios.get(i, 0.0) for i in self._active}
        if sum(known.values()) > 0:
            self._ratios = dict.fromkeys(self._members, 0.0) | normalised(known)

    def eject(self, servers: Collection[int]) -> None:
        """Take over ejections read back from the switch: these servers count as silent until their next SYN-ACK. If the
        policy ejects no servers, nothing happens."""
        if self.policy.ejects:
            self._ejected = frozenset(servers) & frozenset(self._active)
            self._silence.adopt(self._ejected)

    def rebase(self) -> None:
        """Use the next reading only as a base for later differences, since the switch may have reset its counters.
        Ejected servers stay ejected."""
        self._previous = {}
        self._open = OpenSamples()
        self._silence.restart(self._ejected)

    def configure(self, members: Iterable[Member], options: BalanceOptions, now_s: float) -> None:
        """Take over a changed set of servers or changed options. Servers that stay retain their measurements, except
        the open connections if the period changes.

        If the policy learns, a server that is new, or no longer draining, starts with a part of its fair share; the
        policy states how large this part is. The ratios of the other servers then retain their proportions. If the
        policy does not learn, or no remaining server has a ratio, all ratios are the fair shares. Raises ValueError,
        and then changes nothing, if every member would be draining.
        """
        changed = {member.server_id: member for member in members}
        fair = fair_shares(changed)
        before = set(self._active)
        same_readings = options.period_s == self._options.period_s
        self._members, self._options = changed, options
        arriving = [i for i in self._active if i not in before]
        staying = {i: self._ratios[i] for i in self._active if i in before}
        for server in set(self._windows) - set(changed):
            del self._windows[server], self._work[server]
        for window in self._windows.values():
            window.resize(options.intervals)
        self._work = {
            i: deque(work if same_readings else (), maxlen=options.intervals) for i, work in self._work.items()
        }
        for server in changed:
            if server in arriving or server not in self._windows:
                self._measure_anew(server)
        self._previous = {i: c for i, c in self._previous.items() if i in changed}
        self._ejected &= frozenset(self._active)
        for policy in self._policies.values():
            policy.configure(options, staying)
            for server in arriving:
                policy.begin(server, now_s)
        if not self.policy.learns or sum(staying.values()) <= 0:
            self._ratios = fair
            return
        new = {i: fair[i] * self.policy.first_share for i in arriving}
        rest = 1.0 - sum(new.values())
        old = {i: share * rest for i, share in normalised(staying).items()}
        self._ratios = normalised(dict.fromkeys(changed, 0.0) | old | new)

    def sample_open(self, open_now: Mapping[int, int]) -> None:
        """Add a sample: the number of open connections by server, for services in which the switch counts them.
        Production mode finds slow servers by these samples. They are due at ``slowness.SAMPLE_TIMES`` and before each
        ``observe``."""
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
        """Process a reading of the ledger (each server's counts in the switch), and decide. Returns None for the first
        reading, which is only a base for later differences.

        ``hold``: the ratios stay, because no server is the cause of the counts; production mode still ejects silent
        servers. ``full``: servers that have reached their cap of connections since the last reading. They got fewer new
        connections for that reason, so their open connections are no sign of slowness. ``late``: the reading makes no
        server silent, because it contains SYNs whose SYN-ACKs the next reading will count.
        """
        sampled = self._open.take()
        known = set(self._previous)
        differences: dict[int, Counts] = {}
        for server in self._members:
            reading = cumulative[server]
            try:
                differences[server] = reading.since(self._previous.get(server, reading))
            except CounterReset:
                # The switch restarted between the two readings, and its counters started at 0.
                differences[server] = reading
            self._previous[server] = reading
        if not known:
            return None
        for server, counts in differences.items():
            self._windows[server].push(counts)
            if server in sampled and server in known and server not in full:
                self._work[server].append(Work(*sampled[server], counts.synack))
            else:
                self._work[server].clear()
        counted = {i: differences[i] for i in self._active}
        for policy in self._policies.values():
            policy.observe(now_s, counted)
        self._silence.observe(differences)
        if late:
            self._silence.restart(self._ejected)
        return self._decide(now_s, differences, hold=hold)

    def _decide(self, now_s: float, differences: Mapping[int, Counts], *, hold: bool) -> Decision:
        options, thresholds, active = self._options, self._options.production, self._active
        silent = frozenset(self._silence.silent(thresholds.silent_connections)) & frozenset(active)
        if self.policy.ejects:
            for server in self._ejected - silent:  # the server answers again; its past silence is no evidence
                self._measure_anew(server)
                for policy in self._policies.values():
                    policy.begin(server, now_s)
        windows = {i: window.total for i, window in self._windows.items()}
        diagnosis = diagnose(
            {i: windows[i].distinct for i in active},
            silent,
            min_syn=options.min_syn,
            quiet_r=thresholds.quiet_r,
            flood_completed=thresholds.flood_completed,
            flood_r=thresholds.flood_r,
        )
        work = {i: together(self._work[i]) for i in active if self._work[i]}
        outcome = self.policy.decide(
            Interval(
                now_s=now_s,
                ratios={i: self._ratios[i] for i in active},
                fair=fair_shares({i: self._members[i] for i in active}),
                windows={i: windows[i] for i in active},
                work=work,
                silent=silent,
                hold=hold,
            )
        )
        self._ejected = outcome.ejected
        self._ratios = dict.fromkeys(self._members, 0.0) | outcome.ratios
        return Decision(
            time_s=now_s,
            differences=dict(differences),
            windows=windows,
            r={i: ratio_of_unanswered(w, options.min_syn) for i, w in windows.items()},
            r_every_synack={i: ratio_with_every_synack(w, options.min_syn) for i, w in windows.items()},
            ratios=self.ratios,
            weights=self.weights(),
            ejected=outcome.ejected,
            diagnosis=diagnosis,
            reason=outcome.reason,
            work=work,
        )
