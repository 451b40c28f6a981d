"""Tests of a new connection's candidate servers: the members of the selector groups, and the model of the draw."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from sluice.balance.looks import SMALL_POOL, Sought, seen_together, sought_idle
from sluice.dataplane.draws import Draws, Group, lightest


def drawn(seed: int) -> dict[int, int]:
    source = random.Random(seed)
    count = source.randint(1, SMALL_POOL) if seed % 4 else source.randint(SMALL_POOL + 1, 60)
    return {server: source.choice((1, 2, 7, 30)) for server in range(1, count + 1)}


@pytest.mark.parametrize("looks", [2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_each_server_is_seen_as_often_as_its_weight_says(looks: int, seed: int) -> None:
    weights = drawn(seed)
    members = list(seen_together(weights, looks))
    firsts: Counter[int] = Counter()
    for places, servers in members:
        firsts[servers[0]] += places
    assert firsts == weights, "the one that is drawn has its places"
    few = sum(weights.values()) // (looks - 1)
    for places, servers in members:
        assert places > 0 and 1 <= len(set(servers)) == len(servers) < looks
        if max(weights.values()) <= few or len(weights) > SMALL_POOL:
            assert len(servers) == looks - 1, "nobody is seen twice"


def test_two_looks_are_the_weights_themselves() -> None:
    weights = {3: 5, 1: 2, 2: 1}
    assert list(seen_together(weights, 2)) == [(5, (3,)), (2, (1,)), (1, (2,))]


@pytest.mark.parametrize("looks", [2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_the_model_sees_whom_the_switch_sees(looks: int, seed: int) -> None:
    weights = drawn(seed)
    draws = Draws(weights, dict.fromkeys(weights, weights), sum(weights.values()), looks)
    table = [servers for places, servers in seen_together(weights, looks) for _ in range(places)]
    source = random.Random(seed)
    for _ in range(200):
        last = source.randrange(1 << 32)
        place = ((last + 2 * 0x9E3779B9 & 0xFFFFFFFF) >> 16) * len(table) >> 16
        assert draws.evenly(last)[1:] == table[place]


def test_a_decision_changes_few_members_of_a_large_pool() -> None:
    weights = dict.fromkeys(range(1, 1001), 16)
    before, after = (list(seen_together(weight_map, 4)) for weight_map in (weights, weights | {500: 8}))
    assert len(before) == len(weights), "a member a server"
    assert [servers for _, servers in before] == [servers for _, servers in after]


@pytest.mark.parametrize(
    ("loads", "weights", "taken"),
    [
        ((1, 0, 0), (1, 1, 9), 2),
        ((0, 0, 0), (1, 1, 9), 1),
        ((0, 0, 0), (1, 9, 1), 2),
        ((1, 1, 0), (1, 1, 9), 3),
        ((1, 1, 1), (1, 1, 1), 1),
        ((3, 2, 1), (1, 1, 1), 3),
        ((3, 1, 2), (1, 1, 1), 2),
        ((3, 1, -1), (1, 1, 1), 3),
    ],
)
def test_a_third_is_looked_at_while_the_lighter_of_two_is_busy(
    loads: tuple[int, ...], weights: tuple[int, ...], taken: int
) -> None:
    of_servers, to_servers = (dict(enumerate(values, 1)) for values in (loads, weights))
    assert lightest((1, 2, 3), of_servers, to_servers) == taken


@pytest.mark.parametrize(
    ("loads", "taken"),
    [
        ((0, 5, 5), 1),
        ((5, 0, 5), 2),
        ((1, 1, 0), 9),
        ((5, 5, 5), 9),
        ((0, 0, 0), 1),
        ((-1, 5, 5), 1),
        ((2, 1), 9),
        ((0, 1), 1),
    ],
)
def test_an_idle_server_is_taken_while_the_lighter_of_two_is_busy(loads: tuple[int, ...], taken: int) -> None:
    of_servers = dict(enumerate(loads, 1))
    assert lightest(tuple(of_servers), of_servers, dict.fromkeys(of_servers, 1), idle=9) == taken


def test_an_idle_server_that_comes_before_any_is_taken_at_once() -> None:
    assert lightest((1, 2), {1: 0, 2: 0}, {1: 1, 2: 1}, idle=9, before_any=True) == 9
    assert lightest((1, 2), {1: 0, 2: 0}, {1: 1, 2: 1}, before_any=True) == 1
    assert lightest((1,), {1: 0}, {1: 1}, idle=9, before_any=True) == 1


def test_a_server_that_is_drawn_alone_is_not_sought_out() -> None:
    assert lightest((1,), {1: 5}, {1: 1}, idle=9) == 1


@pytest.mark.parametrize(
    ("weights", "words", "before_any"),
    [
        ({}, {}, False),
        ({1: 100, 2: 75, 3: 74}, {0: 0b110}, False),
        ({0: 1, 31: 1, 32: 1}, {0: 1 << 31 | 1, 1: 1}, True),
        ({5: 1, 40: 100, 41: 90}, {1: 0b11 << 8}, False),
        ({1: 100, 2: 120}, {0: 0b110}, True),
        ({1: 100, 2: 121}, {0: 0b110}, False),
    ],
)
def test_large_servers_are_sought_out_first_of_all_where_they_are_alike(
    weights: dict[int, int], words: dict[int, int], *, before_any: bool
) -> None:
    sought = sought_idle(weights)
    assert sought == Sought(words, before_any)
    assert {server for server in range(100) if sought.has(server)} == {
        server for server, weight in weights.items() if 4 * weight >= 3 * max(weights.values())
    }


def test_a_group_is_drawn_from_modulo_its_size() -> None:
    group = Group({1: 2, 2: 3})
    assert [group.at(place) for place in range(7)] == [1, 1, 2, 2, 2, 1, 1]
