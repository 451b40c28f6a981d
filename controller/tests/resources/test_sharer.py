"""Tests of caps that are decided from readings of transfers: invariants, and writes to the switch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import MSS, Seen
from sluice.names import TRANSFERS
from sluice.resources.direction import LARGEST, SMALL, Budget, default_cap
from sluice.resources.need import GROWTH, Needs
from sluice.resources.receive import ReceiveBudget
from sluice.resources.sharer import Caps, Decision, Defaults, Managed, Sharer, slotted
from sluice.resources.shares import abt, equal, fixed, sabt
from sluice.resources.throughput import Column

SERVER = 3
PAPER = Budget(1e6, sabt, needs=Needs.PAPER)


def columns(flight: list[float], **other: object) -> Seen:
    """Return readings of one server's transfers without losses; `flight` has the largest bytes in flight of each."""
    many = len(flight)
    whole = Seen(
        flow=np.arange(many) + 100,
        server=np.full(many, SERVER),
        fingerprint=np.arange(many) + 7,
        sent=np.full(many, 1_000_000),
        flight=np.array(flight),
    )
    return replace(whole, **other)  # type: ignore[arg-type]


def sharer(send: Budget | None = PAPER, receive: ReceiveBudget | None = None, sampling: int = 0) -> Sharer:
    return Sharer({SERVER: Managed(send, receive, sampling)})


def step(decider: Sharer, *seen: Seen) -> Decision:
    """Decide on each reading, and confirm that each decision was written; return the last decision."""
    decisions: list[Decision] = []
    for now in seen:
        decisions.append(decider.observe(now, {}))
        decider.wrote(decisions[-1])
    return decisions[-1]


def sends(decision: Decision) -> list[int]:
    return decision.caps.size[np.argsort(decision.caps.flow)].tolist()


def written(caps: Caps) -> dict[int, tuple[int, int]]:
    """Return fingerprint and cap in bytes, by connection number."""
    flow, *columns = (column.tolist() for column in caps)
    return dict(zip(flow, zip(*columns, strict=True), strict=True))


LOSSY = np.array([0.005, *[0.0] * 7])


FLIGHTS = st.lists(st.floats(3000.0, 1e8), min_size=1, max_size=30)
SHARING = st.sampled_from([sabt, abt, equal])
NEEDS = st.sampled_from(list(Needs))


@given(st.lists(FLIGHTS, min_size=1, max_size=5), SHARING, NEEDS, st.floats(1e5, 1e9))
def test_the_caps_in_the_switch_never_exceed_the_budget(
    rounds: list[list[float]], sharing: object, needs: Needs, budget: float
) -> None:
    """The sum of the caps in the switch stays within the budget, although small changes of caps are not written.

    The sum may exceed the budget by 1 byte for each transfer, because a cap is at least 1 byte.
    """
    decider = sharer(Budget(budget, sharing, needs=needs))  # type: ignore[arg-type]
    many = max(map(len, rounds))
    caps: dict[int, int] = {}
    for flight in rounds:
        decision = step(decider, columns(flight + [0.0] * (many - len(flight))))
        caps |= {flow: size for flow, (_, size) in written(decision.caps).items()}
        assert sum(caps.values()) <= budget + many


@given(FLIGHTS, NEEDS, st.floats(1e5, 1e9))
def test_caps_under_abt_are_max_min_fair(flight: list[float], needs: Needs, budget: float) -> None:
    """Max-min fairness: a transfer whose cap is below its need has the largest cap, to within one segment."""
    decision = step(sharer(Budget(budget, abt, needs=needs)), columns(flight))
    status = decision.send[SERVER]
    caps = np.array(sends(decision))
    need = np.minimum(np.array(flight) * GROWTH, (1 << 30) - 1)
    split = 2 if needs is Needs.PAPER else MSS
    lacking = caps < need * (1 - 1e-6) - split
    assert (caps[lacking] >= caps.max() - split).all() if status.need > budget else not lacking.any()


@given(FLIGHTS, SHARING, st.integers(2, 50))
def test_the_unit_does_not_matter(flight: list[float], sharing: object, times: int) -> None:
    """If all flights and the budget are multiplied by `times`, so are the caps.

    Only rounding to bytes and the upper bound of a cap make a difference.
    """
    few = [max(window, 8 * MSS) for window in flight]
    budget = Budget(sum(few), sharing, needs=Needs.PAPER)  # type: ignore[arg-type]
    small = np.array(sends(step(sharer(budget), columns(few))))
    large = columns([times * window for window in few])
    caps = np.array(sends(step(sharer(replace(budget, size=times * budget.size)), large)))
    ceiling = (1 << 30) - 1
    assert caps == pytest.approx(np.minimum(small * times, ceiling), abs=times + 1) or caps.max() == ceiling


def test_what_may_have_been_written_is_written_again() -> None:
    """A write was interrupted, so the switch may have old or new caps; the next decision writes all caps again."""
    decider = sharer(Budget(1e8, sabt, needs=Needs.PAPER))
    first = step(decider, columns([1e5, 2e5]))
    decider.observe(columns([9e5, 2e5]), {})
    again = step(decider, columns([1e5, 2e5]))
    assert written(again.caps)[100] == written(first.caps)[100]


def test_a_fixed_size_fits_the_switch() -> None:
    assert default_cap(1e6, 9e9, 5, 0) == LARGEST


@given(FLIGHTS, st.integers(0, 9))
def test_noise_below_an_eighth_is_not_written(flight: list[float], seed: int) -> None:
    """The budget exceeds all needs, so the caps equal the needs, which scatter by a twentieth."""
    decider = sharer(Budget(3 * GROWTH * sum(flight), sabt, needs=Needs.PAPER))
    step(decider, columns(flight))
    noise = np.random.default_rng(seed).uniform(0.95, 1.05, len(flight))
    noisy = np.maximum(np.array(flight) * noise, 2 * MSS)
    assert sends(step(decider, columns(list(noisy)))) == []


def test_small_changes_are_written_when_a_budget_would_stay_unused() -> None:
    """A transfer ends, and each other cap may grow by a ninth. All are written, or the free share would stay unused.

    A change of a single cap by less than an eighth is not written.
    """
    decider = sharer(replace(PAPER, size=1e6, sharing=equal, needs=Needs.PRODUCTION))
    step(decider, columns([500e3] * 10))
    decision = step(decider, columns([500e3] * 9 + [0.0]))
    assert sends(decision)[:-1] == pytest.approx([1e6 / 9] * 9, abs=MSS)


def test_a_surplus_is_left_free_in_paper_mode_and_room_to_grow_in_production() -> None:
    flight = [100e3, 50e3]
    assert sends(step(sharer(), columns(flight))) == [200_000, 100_000]
    grown = step(sharer(replace(PAPER, needs=Needs.PRODUCTION)), columns(flight))
    assert sends(grown) == pytest.approx([666_666, 333_333], abs=MSS)
    assert grown.send[SERVER].capped == 0


def test_small_transfers_are_left_alone() -> None:
    decision = step(sharer(), columns([100e3, 50e3], sent=np.array([SMALL - 1, SMALL])))
    assert sends(decision) == [0, 100_000], "after a restart nobody knows what an earlier controller wrote"
    assert decision.send[SERVER].transfers == 1


def test_a_transfer_that_sends_nothing_gives_its_cap_back_once() -> None:
    decider = sharer()
    assert sends(step(decider, columns([100e3, 50e3]))) == [200_000, 100_000]
    idle = columns([0.0, 50e3])
    assert written(step(decider, idle).caps) == {100: (7, 0)}
    assert written(step(decider, idle).caps) == {}


def test_another_connection_in_a_slot_has_no_cap_yet_and_its_own_fingerprint() -> None:
    decider = sharer()
    step(decider, columns([100e3]))
    other = columns([100e3], fingerprint=np.array([99]))
    assert written(step(decider, other).caps) == {100: (99, 200_000)}


def test_what_the_proxys_other_side_leaves_unused_goes_to_others() -> None:
    """Azuma et al., section 2.1.3: a flight far below the cap indicates a slow reader, whose share is redistributed."""
    decider = sharer(replace(PAPER, size=400e3))
    before = sends(step(decider, columns([200e3, 200e3])))
    after = step(decider, columns([10e3, 200e3]))
    assert before == [200_000, 200_000]
    assert sends(after) == [20_000, 380_000]


def test_a_cap_that_is_not_written_is_written_the_next_time() -> None:
    decider = sharer()
    lost = decider.observe(columns([100e3]), {})
    assert sends(decider.observe(columns([100e3]), {})) == sends(lost) == [200_000]


def test_after_a_restart_everything_is_written_again() -> None:
    decider = sharer()
    first = step(decider, columns([100e3, 50e3]))
    decider.rebase({SERVER: Defaults(70_000, 0)})
    again = decider.observe(columns([100e3, 50e3]), {})
    assert written(again.caps) == written(first.caps)
    assert again.defaults[SERVER] == first.defaults[SERVER] == Defaults(333_333, 0)


def test_others_have_room_for_one_more_and_a_small_transfer_at_least() -> None:
    decider = sharer()
    assert step(decider, columns([0.0] * 4)).defaults == {SERVER: Defaults(1_000_000, 0)}
    assert step(decider, columns([50e3] * 4)).defaults == {SERVER: Defaults(200_000, 0)}
    assert step(decider, columns([50e3] * 4)).defaults == {SERVER: Defaults(200_000, 0)}
    crowd = sharer(sampling=3)
    assert step(crowd, columns([50e3] * 30)).defaults == {SERVER: Defaults(SMALL, 0)}


def test_of_a_sample_its_part_of_the_budget_is_shared() -> None:
    decision = step(sharer(replace(PAPER, sharing=equal), sampling=2), columns([50e3] * 5))
    assert sends(decision) == [50_000] * 5
    assert decision.defaults == {SERVER: Defaults(SMALL, 0)}


@pytest.mark.parametrize("budget", [1e9, 100e6, 10e6])
@pytest.mark.parametrize("needs", list(Needs))
def test_a_budget_holds_for_connections_without_a_slot_too(budget: float, needs: Needs) -> None:
    """4,000 connections are hashed to 4,096 slots; a connection whose slot is occupied has the default cap."""
    many = 4000
    slot = np.random.default_rng(3).integers(0, TRANSFERS, many)
    measured = len(np.unique(slot))
    decider = sharer(Budget(budget, sabt, needs=needs))
    decision = decider.observe(columns([400e3] * measured), {SERVER: many})
    status = decision.send[SERVER]
    whole = status.share + (many - measured) * status.default
    assert whole <= budget * 1.03, "as far as chance spreads them evenly"
    assert whole > budget * 0.8, "nor is it left unused"


def test_of_few_connections_all_find_a_slot() -> None:
    assert slotted(TRANSFERS, 10) > 0.998 and slotted(TRANSFERS, 0) == 1.0
    assert slotted(TRANSFERS, 4000) == pytest.approx(0.638, abs=0.001)
    assert sends(step(sharer(replace(PAPER, sharing=equal)), columns([900e3] * 4))) == [250_000] * 4
    decision = sharer(replace(PAPER, sharing=equal)).observe(columns([900e3] * 4), {SERVER: 40})
    assert sends(decision) == [250_000] * 4


def test_a_need_does_not_feed_on_its_cap() -> None:
    """Two transfers need 500 KB each and have equal caps in the end, although one of them has losses.

    That transfer's sender ignores losses (BBR). Six more transfers need 10 KB each.
    """
    decider, wants = sharer(Budget(400e3, sabt)), np.array([500e3, 500e3, *[10e3] * 6])
    caps = np.full(8, np.inf)
    for _ in range(60):
        flight = np.minimum(wants, caps)
        segments = flight / MSS * 20
        decision = decider.observe(columns(list(flight), segments=segments, losses=segments * LOSSY), {})
        decider.wrote(decision)
        caps = np.where(decision.installed > 0, decision.installed, decision.defaults[SERVER].send)
    lossy, clean = caps[:2]
    assert lossy == pytest.approx(clean, rel=0.1)
    assert lossy + clean + 6 * 2 * 10e3 == pytest.approx(400e3, rel=0.01)


def test_fixed_shares_heed_no_budget() -> None:
    decision = step(sharer(Budget(100e3, fixed(65536), 65536.0)), columns([500e3] * 5))
    assert sends(decision) == [65536] * 5
    assert decision.defaults == {SERVER: Defaults(65536, 0)}


def test_every_server_has_a_budget_of_its_own_and_others_are_left_alone() -> None:
    seen = columns([500e3] * 6, server=np.array([1, 1, 1, 2, 2, 5]))
    budgets = {1: Managed(Budget(300e3, sabt)), 2: Managed(Budget(1e6, sabt))}
    decision = step(Sharer(budgets), seen)
    assert sends(decision) == pytest.approx([100_000] * 3 + [500_000] * 2, abs=MSS)
    assert sum(sends(decision)[:3]) <= 300e3 and sum(sends(decision)[3:]) <= 1e6
    assert sorted(written(decision.caps)) == [100, 101, 102, 103, 104]


def test_receive_buffers_are_shared_by_all_open_connections_and_small_changes_wait() -> None:
    decider = sharer(send=None, receive=ReceiveBudget(1e6))

    def default(connections: int) -> int:
        decision = decider.observe(columns([100e3]), {SERVER: connections})
        decider.wrote(decision)
        assert sends(decision) == [] or written(decision.caps) == {100: (7, 0)}
        return decision.defaults[SERVER].receive

    assert [default(many) for many in (0, 10, 11, 12, 1000)] == [1_000_000, 100_000, 100_000, 83_333, SMALL]
    fixed_size = sharer(send=None, receive=ReceiveBudget(1e6, 65536.0))
    assert fixed_size.observe(columns([100e3]), {SERVER: 1}).defaults == {SERVER: Defaults(0, 65536)}


def test_no_transfers_give_no_caps() -> None:
    seen: Column = np.zeros(2)
    decision = step(sharer(), columns(list(seen), flow=np.array([-1, -1])))
    assert sends(decision) == [] and decision.send[SERVER].transfers == 0
