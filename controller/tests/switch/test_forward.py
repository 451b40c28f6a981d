"""Tests of routes and neighbours, and of the ids by which routes lead to neighbours."""

from __future__ import annotations

import random
from typing import Any

import pytest
from configs import web
from finsy import P4TableAction
from sluice.addresses import IPV4_BITS, Address, from_number, from_text
from sluice.config.load import parse
from sluice.names import Action
from sluice.switch.forward import neighbours, routes
from sluice.switch.neighbourids import LARGEST, NeighbourIds
from sluice.switch.programmer import initial_state
from sluice.switch.state import State

A, B, C = map(from_text, ("10.0.2.2", "10.0.2.3", "2001:db8::1"))


def _state(more: str = "") -> State:
    """Return a state with a neighbour at 10.0.2.2, and further routes besides the one through 10.0.1.9."""
    text = web().replace("via: 10.0.1.9}]", f"via: 10.0.1.9}}{more}]")
    return initial_state(parse(text), {"10.0.2.2": (2, "02:aa:00:00:00:02")})


def _hops(state: State) -> dict[str, Any]:
    """Return the next hop's id of every route, by prefix; None if the prefix is directly connected."""
    hops: dict[str, Any] = {}
    for entry in routes(state):
        assert isinstance(entry.action, P4TableAction)
        prefix = str((entry.match or {}).get("destination", "0.0.0.0/0"))
        hops[prefix] = entry.action.args["neighbour"] if entry.action.name == Action.VIA else None
    return hops


def test_routes_lead_to_ids_and_a_neighbour_has_a_host_route() -> None:
    state = _state()
    gateway, host = (state.neighbour_ids[from_text(address)] for address in ("10.0.1.9", "10.0.2.2"))
    assert gateway != host
    assert _hops(state) == {
        "0.0.0.0/0": gateway,
        "10.0.1.0/24": None,
        "10.0.2.0/24": None,
        "10.0.3.0/24": None,
        "10.0.1.9/32": gateway,
        "10.0.2.2/32": host,
    }
    (entry,) = neighbours(state)
    assert entry.match is not None
    assert (entry.match["neighbour"], entry.metadata) == (host, b"10.0.2.2")


@pytest.mark.parametrize("to", ["10.0.2.0/25", "10.0.2.2/32"])
def test_a_configured_route_for_a_neighbours_address_is_not_hidden_by_a_host_route(to: str) -> None:
    state = _state(f", {{to: {to}, via: 10.0.3.9}}")
    through = state.neighbour_ids[from_text("10.0.3.9")]
    assert {prefix: hop for prefix, hop in _hops(state).items() if prefix.startswith("10.0.2.")} == {
        "10.0.2.0/24": None,
        to: through,
    }


def test_the_longest_prefix_leads_to_the_next_hop() -> None:
    plan = _state(", {to: 99.0.0.0/8, via: 10.0.1.8}, {to: 99.1.0.0/16, via: 10.0.2.2}").plan
    for address, hop in (
        ("99.1.2.3", "10.0.2.2"),
        ("99.2.2.3", "10.0.1.8"),
        ("98.0.0.1", "10.0.1.9"),
        ("10.0.2.9", "10.0.2.9"),
    ):
        assert plan.next_hop(from_text(address)) == from_text(hop)
    assert plan.next_hop(C) is None


def test_ids_stay_and_freed_ids_are_assigned_last() -> None:
    ids = NeighbourIds()
    assert ids.assign([A, C]) == {A: 1, C: 2}
    assert ids.assign([B, C]) == {B: 3, C: 2}
    assert [ids.address(number) for number in range(4)] == [None, None, C, B]
    assert ids.assign([A, B, C]) == {A: 4, B: 3, C: 2}


def test_adopted_ids_are_taken_over_and_ids_in_use_are_avoided() -> None:
    ids = NeighbourIds()
    ids.adopt({A: 2, B: 9}, used={1, 2, 9})
    assert ids.assign([A, C]) == {A: 2, C: 3}
    ids.adopt({A: 3, B: 2}, used={2, 3})
    assert ids.assign([A, B, C]) == {A: 3, B: 2, C: 4}, "the switch's ids replace those that were assigned before"
    assert [ids.address(number) for number in (2, 3, 4)] == [B, A, C]


@pytest.mark.parametrize("ids", [{A: 0, B: 5}, {B: 5, A: 5}])
def test_ids_that_are_zero_or_noted_twice_are_not_adopted(ids: dict[Address, int]) -> None:
    numbers = NeighbourIds()
    numbers.adopt(ids, used=set(ids.values()))
    assert numbers.assign([A, B]) == {A: 1, B: 5}


def test_ids_wrap_and_end() -> None:
    ids = NeighbourIds()
    ids.adopt({}, used=set(range(3, LARGEST + 1)))
    assert [*ids.assign([A, B]).values()] == [1, 2]
    with pytest.raises(OverflowError, match="65535"):
        ids.assign([A, B, C])
    ids.assign([B])
    assert ids.assign([B, C])[C] == 1


def test_ids_are_different_and_stay_in_random_histories() -> None:
    for seed in range(50):
        rng, ids, before = random.Random(seed), NeighbourIds(), dict[Address, int]()
        for _ in range(40):
            chosen = {from_number(rng.randrange(12), IPV4_BITS) for _ in range(rng.randrange(8))}
            after = ids.assign(chosen)
            assert after.keys() == chosen
            assert len(set(after.values())) == len(after)
            assert all(after[address] == number for address, number in before.items() if address in chosen)
            assert not {number for address, number in after.items() if address not in before} & set(before.values())
            before = dict(after)
