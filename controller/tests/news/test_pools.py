"""Tests of verdicts on several services: each service is judged by its own servers; one sentence covers all."""

from collections.abc import Mapping

import numpy as np
from sluice.addresses import IPV4_BITS, Packed, packed
from sluice.balance import BalanceOptions, Counts
from sluice.news import Cause, Decision, News, NewsOptions, Observation, Pool, Requests, Verdict
from sluice.news.pools import LASTING_WINDOWS, Pools, together

FINE = Counts(syn=100, synack=100, completed=99)
LOSSY = Counts(syn=100, synack=60, completed=59)
DROWNED = Counts(syn=300, synack=60, completed=58)
SPOOFED = Counts(syn=500, synack=490, completed=100)
A, B, HOST = (packed(0x0A000000 + number, IPV4_BITS) for number in (1, 2, 3))
POOLS = {1: Pool("a", A, frozenset({1, 2})), 2: Pool("b", B, frozenset({3, 4}))}


def lasting(services: Mapping[int, Pool], ledger: Mapping[int, Counts]) -> Pools:
    """Return pools that have observed these counts for so many windows that the verdict no longer changes."""
    pools = Pools(services, gain=0.9, intervals=1)
    for _ in range(LASTING_WINDOWS + 1):
        pools.examine(ledger, 1.0, ())
    return pools


def verdicts(b: Counts, *crowds: Packed | None, slower: bool = False, second: Counts | None = None) -> list[Verdict]:
    """Return the verdicts on service a, whose servers are healthy, and on service b, whose servers have counts `b`.

    If `second` is given, it replaces the counts of the second server of service b.
    """
    ledger = {1: FINE, 2: FINE, 3: b, 4: second or b}
    return list(lasting(POOLS, ledger).judge(crowds=crowds, slower=slower).values())


def test_a_drowned_service_and_a_fine_one_are_no_weak_servers_of_one_pool() -> None:
    assert verdicts(DROWNED, B, slower=True) == [Verdict(Cause.NORMAL), Verdict(Cause.CROWD, freeze=True)]


def test_a_crowd_of_unknown_aim_may_be_at_any_service_and_one_at_a_host_is_at_none() -> None:
    assert [verdict.freeze for verdict in verdicts(FINE, None)] == [True, True]
    assert [verdict.freeze for verdict in verdicts(FINE, HOST)] == [False, False]
    assert [verdict.freeze for verdict in verdicts(FINE, A, B)] == [True, True]


def test_a_weak_server_sets_its_own_service_free_and_no_other() -> None:
    of_a, of_b = verdicts(LOSSY, None, second=FINE)
    assert of_a == Verdict(Cause.CROWD, freeze=True)
    assert of_b == Verdict(Cause.CROWD, (3,), freeze=False)


def test_a_service_that_is_lossy_throughout_has_no_sick_server() -> None:
    assert verdicts(LOSSY) == [Verdict(Cause.NORMAL), Verdict(Cause.NORMAL)]


def test_a_services_own_thresholds_count() -> None:
    deaf = POOLS | {2: Pool("b", B, frozenset({3, 4}), BalanceOptions(min_syn=1000))}
    ledger = {1: FINE, 2: FINE, 3: LOSSY, 4: FINE}
    assert lasting(POOLS, ledger).judge(crowds=(), slower=False)[2] == Verdict(Cause.SICK, (3,))
    assert lasting(deaf, ledger).judge(crowds=(), slower=False)[2] == Verdict(Cause.NORMAL)


def test_what_is_said_of_all() -> None:
    fine, sick = Verdict(Cause.NORMAL), Verdict(Cause.SICK, (4,))
    crowd, flood = Verdict(Cause.CROWD, (1,), freeze=True), Verdict(Cause.FLOOD, freeze=True)
    assert together([fine, fine], crowd=False) == fine
    assert together([fine, sick], crowd=False) == sick
    assert together([sick, crowd], crowd=True) == Verdict(Cause.CROWD, (1, 4), freeze=True)
    assert together([fine, fine], crowd=True) == Verdict(Cause.CROWD), "at a host"
    assert together([crowd, flood], crowd=True) == flood
    assert together([], crowd=True) == Verdict(Cause.CROWD)


def run(b: Counts, seconds: int) -> Decision:
    """Observe `seconds` seconds of healthy responses, and in each second the counts `b` of both servers of service b.

    Return the last decision.
    """
    news = News(NewsOptions(), POOLS)
    requests, mine, theirs = Requests(), Counts(), Counts()
    decision = None
    for time in range(seconds):
        requests, mine, theirs = requests + Requests(40, 40), mine + FINE, theirs + b
        ledger = {1: mine, 2: mine, 3: theirs, 4: theirs}
        decision = news.observe(Observation(float(time), np.full(20, 1e5 + time), {A: requests}, ledger))
    assert decision is not None
    return decision


def test_a_lossy_service_does_not_keep_the_baseline_from_learning() -> None:
    early, late = run(LOSSY, 20).detection.ar_average, run(LOSSY, 60).detection.ar_average
    assert early is not None and late is not None and late > early


def test_a_flood_at_one_service_names_whose_weights_are_held() -> None:
    decision = run(SPOOFED, 20)
    assert decision.frozen == {2}
    assert decision.sentence == "Flood of connection requests, 40.0/s; the weights of b are frozen."


def test_one_servers_queue_that_is_full_before_the_others_makes_no_server_sick() -> None:
    pools = Pools({1: Pool()}, gain=0.9, intervals=2)
    for interval in range(2 * LASTING_WINDOWS + 1):
        pools.examine({1: FINE, 2: FINE, 3: LOSSY}, 1.0, ())
        assert pools.judge(crowds=[None], slower=True)[1].servers == ((3,) if interval == 2 * LASTING_WINDOWS else ())
    pools.examine({1: FINE, 2: FINE, 3: FINE}, 1.0, ())
    pools.examine({1: FINE, 2: FINE, 3: LOSSY}, 1.0, ())
    assert pools.judge(crowds=[None], slower=True)[1].servers == (), "from the beginning"


def test_what_a_server_answers_is_held_against_the_ratios_of_the_whole_window() -> None:
    """A server's answers are compared with its ratios over the whole window, not with a ratio that just changed."""
    pools = Pools({1: Pool()}, gain=0.9, intervals=2)
    weak = {1: FINE, 2: Counts(syn=150, synack=50, completed=49)}
    ratios = [{1: 0.5, 2: 0.5}] * (2 * LASTING_WINDOWS + 1) + [{1: 0.7, 2: 0.3}] * 2
    limited: list[tuple[int, ...]] = []
    for ratio in ratios:
        pools.examine(weak, 1.0, (), {1: ratio})
        limited.append(pools.judge(crowds=[None], slower=True)[1].servers)
    assert limited[-3:] == [(2,), (2,), ()]


def test_what_failing_servers_clients_repeat_is_counted_and_a_starved_service_refutes_a_crowd() -> None:
    pools = Pools(POOLS, gain=0.9, intervals=1)
    healthy: dict[int, Counts] = dict.fromkeys((1, 2, 3, 4), FINE)
    pools.examine(healthy, 2.0, ())
    pools.learn()
    assert pools.repeated == 0 and not pools.refutes(B)
    pools.examine({**healthy, 3: LOSSY}, 2.0, ())
    assert pools.repeated == 40 / 2.0
    pools.examine({**healthy, 3: Counts(syn=900), 4: Counts(syn=900)}, 2.0, ())
    assert pools.refutes(B) and not pools.refutes(A) and not pools.refutes(None) and not pools.refutes(HOST)


def test_a_service_that_a_reload_takes_away_is_asked_about_no_more() -> None:
    pools = lasting(POOLS, dict.fromkeys((1, 2, 3, 4), FINE))
    pools.configure({1: POOLS[1]}, gain=0.9, intervals=1)
    assert not pools.refutes(A) and not pools.refutes(B)
