"""Tests of a balancer's policy, which depends on its mode: the policy's own state, and a change of mode."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import sluice
from model import Pool
from sluice.balance import POLICIES, BalanceOptions, Balancer, Counts, Interval, Member, Mode, Outcome, Policy

PRODUCTION = BalanceOptions(window_s=40)
MEMBERS = [Member(1), Member(2), Member(3)]


class LeastSyns(Policy):
    """A policy that sends all connections to the server with the fewest SYNs."""

    def decide(self, interval: Interval) -> Outcome:
        least = min(interval.windows, key=lambda server: (interval.windows[server].syn, server))
        return Outcome({server: float(server == least) for server in interval.ratios}, "fewest SYNs")


def test_every_mode_has_a_policy() -> None:
    assert POLICIES.keys() == set(Mode)


def test_what_depends_on_a_mode_is_asked_of_its_policy() -> None:
    """Modes are named only in the modules of options and of policies, and in the page's module that preselects one."""
    package = Path(sluice.__file__).parent
    naming = {
        str(file.relative_to(package)) for file in package.rglob("*.py") if re.search(r"Mode\.[A-Z]", file.read_text())
    }
    tables = {"balance/options.py", "balance/policies.py", "news/options.py", "news/modes.py"}
    assert naming == {*tables, "page/elements.py"}


def test_a_policy_of_a_few_lines_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dict_of_policies(), Mode.PAPER, LeastSyns)
    balancer = Balancer(MEMBERS, replace(PRODUCTION, mode=Mode.PAPER))
    balancer.observe(0.0, {i: Counts() for i in (1, 2, 3)})
    decision = balancer.observe(10.0, {1: Counts(30, 30), 2: Counts(20, 20), 3: Counts(25, 25)})
    assert decision is not None
    assert (decision.weights, decision.reason) == ({2: 256}, "fewest SYNs")


def dict_of_policies() -> dict[Mode, type[Policy]]:
    assert isinstance(POLICIES, dict)
    return POLICIES


@pytest.mark.parametrize("mode", list(Mode))
def test_ejections_are_read_back_by_the_policy_that_ejects(mode: Mode) -> None:
    balancer = Balancer(MEMBERS, replace(PRODUCTION, mode=mode))
    balancer.eject([2])
    assert balancer.ejected == ({2} if mode is Mode.PRODUCTION else frozenset())


@pytest.mark.parametrize(("mode", "share"), [(Mode.FIXED, 1 / 3), (Mode.PAPER, 1 / 3), (Mode.PRODUCTION, 0.05 / 3)])
def test_a_policy_decides_what_an_arriving_server_begins_with(mode: Mode, share: float) -> None:
    options = replace(PRODUCTION, mode=mode)
    balancer = Balancer(MEMBERS[:2], options)
    balancer.configure(MEMBERS, options, now_s=0.0)
    assert balancer.ratios[3] == pytest.approx(share)


def test_only_a_policy_that_learns_keeps_the_proportions() -> None:
    for mode in Mode:
        options = replace(PRODUCTION, mode=mode)
        balancer = Balancer(MEMBERS[:2], options, {1: 0.75, 2: 0.25})
        balancer.configure(MEMBERS[:2], options, now_s=0.0)
        assert balancer.ratios == ({1: 0.5, 2: 0.5} if mode is Mode.FIXED else {1: 0.75, 2: 0.25})


def test_a_changed_mode_acts_on_the_window_that_was_measured_before() -> None:
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=600, options=replace(PRODUCTION, mode=Mode.FIXED))
    assert pool.intervals(3).ratios == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    pool.balancer.configure(MEMBERS, PRODUCTION, pool.now)
    pool.capacity[3], pool.waiting[3] = 400, 0
    assert pool.interval().reason.startswith("step: 0.100 of 3 (z"), "this interval lost nothing, those before did"


def test_a_mode_that_is_set_at_run_time_begins_with_what_its_policy_has_learned() -> None:
    pool = Pool({1: 400, 2: 400, 3: 400}, offered=300, options=PRODUCTION)
    pool.intervals(2)
    pool.balancer.configure(MEMBERS[:2], PRODUCTION, pool.now)
    pool.balancer.configure(MEMBERS, PRODUCTION, pool.now)
    pool.balancer.configure(MEMBERS, replace(PRODUCTION, mode=Mode.PAPER), pool.now)
    pool.interval()
    pool.balancer.configure(MEMBERS, PRODUCTION, pool.now)
    assert pool.interval().ratios[3] == pytest.approx(20 / 60 / 3), "it is 20 s into its slow start"
