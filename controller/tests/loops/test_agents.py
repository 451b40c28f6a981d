"""Tests of a controller with agents: configuration, reports, dead and returning agents, reloads."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from content import content
from fakeagent import FakeAgent
from fakeswitch import FakeSwitch
from live import Running, running, until
from sluice.agents import cookies
from sluice.agents.cookies import LIFE_S, Cookies
from sluice.agents.messages import make
from sluice.features import Content
from sluice.features.content import agents as agents_task
from sluice.loops.commands import Refused
from sluice.names import UNREAD
from sluice.views import control, metrics
from sluice.views.status import gather
from sluice.views.statustext import render

SHOP, A1, A2, X1, X2, X3 = 1, 1, 2, 3, 4, 5
BOTH = {A1: 64, A2: 192}


@pytest.fixture
async def agents(tmp_path: Path) -> AsyncGenerator[tuple[FakeAgent, FakeAgent]]:
    async with FakeAgent(tmp_path / "a1.sock") as first, FakeAgent(tmp_path / "a2.sock") as second:
        yield first, second


@pytest.fixture
def config(switch: FakeSwitch, tmp_path: Path, pipeline_dir: Path, agents: tuple[FakeAgent, FakeAgent]) -> Path:
    path = tmp_path / "sluice.yaml"
    controls = (agents[0].control, agents[1].control)
    path.write_text(content(switch.address, str(pipeline_dir), control=str(tmp_path / "sluice.sock"), agents=controls))
    return path


def _spliced(it: Running) -> int:
    """Return the number of spliced connections that the agents of the first service report."""
    world = it.controller.world
    return world[Content].agents.total(world.plan.services[0]).counts["spliced"]


def _change(config: Path, old: str, new: str) -> None:
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))


async def test_agents_are_configured(config: Path, agents: tuple[FakeAgent, FakeAgent]) -> None:
    async with running(config):
        await until(lambda: agents[0].has and agents[1].has, "both to be configured")
    first, second = agents[0].has, agents[1].has
    (shop,) = first.services
    assert (shop.name, shop.address, shop.port, shop.agent_port, shop.guess) == ("shop", "10.0.0.100", 80, 80, False)
    assert dict(shop.groups) == {"all": "10.9.0.1:80", "fast": "10.9.0.2:8080"}
    assert {name: list(server.ids) for name, server in shop.servers.items()} == {"all": [X1, X2], "fast": [X2, X3]}
    rules = json.loads(shop.content)
    assert [rule["name"] for rule in rules["rules"]] == ["big", "perl", "admin"]
    assert "agents" not in rules
    assert first.generation == 1
    assert first == second, "one takes the other's handshakes"
    assert len(first.cookie_key) == 16
    assert first.former_cookie_key == b""


async def test_a_configuration_is_serialized_once(
    config: Path, agents: tuple[FakeAgent, FakeAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling thousands of rules takes long, so it is not repeated for each report (two per second)."""
    made: list[str] = []
    write = agents_task.configuration

    def counted(*arguments: Any) -> Any:
        made.append(arguments[1])
        return write(*arguments)

    monkeypatch.setattr(agents_task, "configuration", counted)
    async with running(config):
        await until(lambda: all(agent.reports > 4 for agent in agents), "both to report again and again")
    assert sorted(made) == sorted(agent.control for agent in agents)


async def test_a_silent_agent_is_left_out_until_it_reports(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    async with running(config):
        await until(lambda: agents[0].has and agents[1].has, "both to be configured")
        assert switch.weights(SHOP, "choose_stable") == BOTH
        agents[0].talks.clear()
        await until(lambda: switch.weights(SHOP, "choose_stable") == {A2: 256}, "the other to have all clients")
        await until(lambda: len(switch.entries("servers")) == 6, "its address to be gone")
        agents[0].talks.set()
        await until(lambda: switch.weights(SHOP, "choose_stable") == BOTH, "its return")
        assert len(switch.entries("servers")) == 7


async def test_an_agent_that_is_started_anew_is_configured_anew(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    async with running(config):
        await until(lambda: agents[0].has and agents[1].has, "both to be configured")
        before = agents[0].has
        await agents[0].stop()
        await until(lambda: switch.weights(SHOP, "choose_stable") == {A2: 256}, "the other to have all clients")
        await agents[0].start()
        await until(lambda: switch.weights(SHOP, "choose_stable") == BOTH, "its return")
        assert agents[0].has == before, "the same key: its handshakes are taken further"


async def test_an_agent_that_ends_gets_no_new_clients_and_keeps_those_that_it_has(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    async with running(config):
        agents[1].draining = True
        await until(lambda: switch.weights(SHOP, "choose_stable") == {A1: 256}, "the other to have new clients")
        assert len(switch.entries("servers")) == 7


async def test_drain_is_for_agents_too(config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]) -> None:
    async with running(config) as it:
        await it.controller.drain("a1", drain=True)
        assert switch.weights(SHOP, "choose_stable") == {A2: 256}
        with pytest.raises(Refused, match="a2 is the last server of shop that takes connections"):
            await it.controller.drain("shop/a2", drain=True)
        await it.controller.drain("shop/a1", drain=False)
        assert switch.weights(SHOP, "choose_stable") == BOTH


async def test_a_server_of_two_groups_drains_in_both(config: Path, switch: FakeSwitch) -> None:
    async with running(config) as it:
        await it.controller.drain("x2", drain=True)
        assert list(switch.weights(2)) == [3]
        assert list(switch.weights(3)) == [5]
        with pytest.raises(Refused, match="x3 is the last server of fast that takes connections"):
            await it.controller.drain("x3", drain=True)


async def test_rules_change_with_their_generation_and_without_another_key(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    async with running(config) as it:
        await until(lambda: agents[0].has and agents[1].has, "both to be configured")
        before = agents[0].has
        _change(config, "> 5000", "> 6000")
        await it.controller.reload()
        for agent in agents:
            assert "> 6000" in agent.has.services[0].content
            assert (agent.has.generation, agent.has.cookie_key) == (2, before.cookie_key)
        taken = len(agents[0].configurations)
        await it.controller.reload()
        assert len(agents[0].configurations) == taken, "nothing has changed"
    async with running(config) as again:
        assert again.lines[-1].endswith("adopted=yes updates=0"), "the generation is the switch's"
        await until(lambda: len(agents[0].configurations) > taken, "a new controller to say it again")
        assert agents[0].has.generation == 2
        assert agents[0].has.cookie_key == before.cookie_key


async def test_an_agent_that_refuses_is_named_and_nothing_changes(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    async with running(config) as it:
        await until(lambda: _spliced(it) == 16, "both")
        before, writes = agents[0].has, len(switch.writes)
        agents[1].refuses = [
            make("Problem", service="shop", path="rules[0].match", message="no such field", remedy="b")
        ]
        _change(config, "> 5000", "> 6000")
        with pytest.raises(Refused, match=r"agent shop/a2 refuses: shop: rules\[0\]\.match: no such field; b"):
            await it.controller.reload()
        assert "> 6000" in agents[0].configurations[-2].services[0].content
        assert agents[0].has == before, "the first has its old rules again"
        assert len(switch.writes) == writes
        assert it.controller.world[Content].state.rules.generation == 1


async def test_status_and_metrics_show_agents_and_rules(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    for agent in agents:
        agent.hits = {"big": 3, "perl": 0}
    async with running(config) as it:
        await until(lambda: _spliced(it) == 16, "both")
        await agents[1].stop()
        await until(lambda: A2 in it.controller.world[Content].state.away.absent, "the second to be missed")
        shown = await gather(it.controller)
        shop = shown["services"][0]
        assert [(server["name"], server["state"], server["ratio"]) for server in shop["servers"]] == [
            ("a1", "in", 1),
            ("a2", "absent", 0),
        ]
        content = shop["content"]
        assert content["rules"] == {"big": 3, "perl": 0, "(default)": 5}
        assert content["groups"]["fast"] == {"opened": 4, "failed": 1, "servers": None}
        assert content["refused"] == {"403": 2}
        assert content["counts"]["handshakes"] == 10
        assert [content["counts"][f"guesses_{what}"] for what in ("right", "wrong", "reset")] == [7, 2, 1]
        assert [(agent["answers"], agent["waiting"]) for agent in content["agents"]] == [(True, 2), (False, 0)]
        assert "content" not in shown["services"][1]
        text = render(shown)
        assert "agents: a1 3 connections, 2 waiting, 4096 bytes; a2 does not answer" in text
        assert "requests by rule (generation 1): big 3, perl 0, (default) 5" in text
        assert "guesses right 7, guesses wrong 2, guesses reset 1" in text
        samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in metrics.families(shown)
            for sample in family.samples
        }
        assert samples["sluice_content_rules_total", "shop", "big"] == 3
        assert samples["sluice_content_opened_total", "shop", "all"] == 4
        assert samples["sluice_content_counts_total", "shop", "guesses_right"] == 7
        assert samples["sluice_agent_answers", "shop", "a2"] == 0
        assert (await control.answer(it.controller, {"command": "status"}))["ok"]


# -- Properties of server groups that agents learn


async def test_what_an_agent_learns_is_shared_with_the_others(
    config: Path, agents: tuple[FakeAgent, FakeAgent], switch: FakeSwitch
) -> None:
    first, second = agents
    first.learned = {"all": make("Ability", servers=[X2, X1], mss=1400, window=64000, sack=True, scales=True, scale=7)}
    second.learned = {
        "all": make("Ability", servers=[X1, X2], mss=1460, sack=False),
        "fast": make("Ability", servers=[X1], mss=500),
    }
    async with running(config) as it:
        await until(lambda: first.shared and first.shared[-1].groups, "the first to get what the second has learned")
        await until(lambda: second.shared and second.shared[-1].groups, "the second to get what the first has learned")
        (shared,) = first.shared[-1].groups
        assert (shared.service, shared.group, shared.ability.mss, shared.ability.sack) == ("shop", "all", 1460, False)
        assert not shared.ability.HasField("window")
        (shared,) = second.shared[-1].groups
        assert (shared.group, list(shared.ability.servers), shared.ability.window) == ("all", [X1, X2], 64000)
        shown = await gather(it.controller)
        groups = shown["services"][0]["content"]["groups"]
        assert groups["all"]["servers"] == {"mss": 1400, "window": 64000, "sack": False, "scales": True, "scale": 7}
        assert groups["fast"]["servers"] is None, "it was about other servers than the group's"
        assert "servers of all: MSS 1400, window 64000, SACK no, window scale 7" in render(shown)
        first.learned = {}
        await until(lambda: not second.shared[-1].groups, "what is forgotten to be taken back")
        await second.stop()
        await second.start()
        many = len(second.shared)
        await until(lambda: len(second.shared) > many, "one that is started anew to get it again")


async def test_what_agents_have_learned_is_merged_only_when_it_changes(
    config: Path, agents: tuple[FakeAgent, FakeAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging takes long with many agents and groups, so it is not repeated for each report (two per second)."""
    first, second = agents
    first.learned = {"all": make("Ability", servers=[X1, X2], mss=1400)}
    merges: list[Any] = []
    merge = agents_task.merged

    def counted(*arguments: Any) -> Any:
        merges.append(arguments)
        return merge(*arguments)

    monkeypatch.setattr(agents_task, "merged", counted)
    async with running(config):
        await until(lambda: second.shared and second.shared[-1].groups, "the second to get what the first has learned")
        before, reports = len(merges), (first.reports, second.reports)
        await until(lambda: first.reports > reports[0] + 20 and second.reports > reports[1] + 20, "further reports")
        assert len(merges) == before
        first.learned = {}
        await until(lambda: not second.shared[-1].groups, "what the first has forgotten to be taken back")
        assert len(merges) > before


# -- No agent alive


def _services(switch: FakeSwitch) -> dict[int, int]:
    """Return the generation (version of the rules) in each content service's table entry, by service number."""
    to_content = switch.schema.actions["to_content"].id
    calls = [entry.action.action for entry in switch.entries("services")]
    params = [
        {p.param_id: int.from_bytes(p.value, "big") for p in c.params} for c in calls if c.action_id == to_content
    ]
    return {param[1]: param[2] for param in params}


def _admits_nobody(switch: FakeSwitch) -> bool:
    meter = switch.meters.get((switch.schema.meters["admission"].id, SHOP))
    return meter is not None and (meter.cir, meter.cburst) == (0, 0)


def _resets(switch: FakeSwitch) -> list[bytes]:
    """Return the destinations whose refused clients receive an RST."""
    entries = switch.entries("destinations")
    return [e.match[0].exact.value for e in entries if e.action.action.params[1].value == b"\1"]


async def test_without_agents_clients_are_refused_by_a_reset(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    async with running(config) as it:
        await until(lambda: agents[0].has and agents[1].has, "both to be configured")
        assert not _admits_nobody(switch)
        for agent in agents:
            await agent.stop()
        await until(lambda: _admits_nobody(switch), "new connections to be refused")
        assert _resets(switch) == [bytes([10, 0, 0, 100])]
        shown = await gather(it.controller)
        assert shown["services"][0]["content"]["without_agents"] == "refuse"
        assert "no agent is left: new connections are refused" in render(shown)
        writes = len(switch.writes)
    async with running(config) as it:
        assert it.lines[-1].endswith("adopted=yes updates=0")
        assert len(switch.writes) == writes
        for agent in agents:
            await agent.start()
        await until(lambda: not _admits_nobody(switch), "new connections to be let in")
        assert _resets(switch) == []
        await until(lambda: switch.weights(SHOP, "choose_stable") == BOTH, "both agents to have them")


async def test_without_agents_a_group_gets_clients_unread(
    config: Path, switch: FakeSwitch, agents: tuple[FakeAgent, FakeAgent]
) -> None:
    _change(config, "refuse: 403", "to: fast")
    _change(config, "    default:", "    without_agents: fast\n    default:")
    async with running(config) as it:
        await until(lambda: agents[0].has and agents[1].has, "both to be configured")
        await it.controller.reload()
        generation = it.controller.world[Content].state.rules.generation
        assert _services(switch) == {SHOP: generation}
        for agent in agents:
            await agent.stop()
        await until(lambda: _services(switch) == {SHOP: UNREAD}, "clients to go unread")
        assert switch.weights(SHOP, "choose_stable").keys() == {X2, X3}
        assert not _admits_nobody(switch)
        await it.controller.drain("x2", drain=True)
        await until(lambda: switch.weights(SHOP, "choose_stable").keys() == {X3}, "the drained one to be left out")
        await it.controller.drain("x2", drain=False)
        shown = await gather(it.controller)
        assert shown["services"][0]["content"]["without_agents"] == "fast"
        assert "no agent is left: new connections go to fast unread" in render(shown)
        status = {
            tuple(sample.labels.values())
            for family in metrics.families(shown)
            for sample in family.samples
            if sample.name == "sluice_content_without_agents"
        }
        assert status == {("shop", "fast")}
    async with running(config) as it:
        assert it.controller.world[Content].state.rules.generation == generation, "the rules are the same"
        await agents[1].start()
        await until(lambda: _services(switch) == {SHOP: generation}, "clients to be read again")
        await until(lambda: switch.weights(SHOP, "choose_stable") == {A2: 256}, "the agent to have them")
        texts = [event["text"] for event in it.controller.world.events.past]
        assert "shop has an agent again" in texts


# -- Keys of SYN cookies


def test_keys_are_the_owners_alone_and_outlive_the_controller(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first = cookies.load(path)
    cookies.save(path, first)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert cookies.load(path) == first
    path.write_text('{"key": "00"}')
    assert cookies.load(path).key != first.key


def test_a_key_that_is_replaced_is_still_taken() -> None:
    first = Cookies.fresh()
    assert first.due(first.since_s + LIFE_S - 1) is first
    second = first.due(first.since_s + LIFE_S + 1)
    assert second.former == first.key != second.key
    assert first.due(first.since_s - 60).former == first.key, "a clock that was set back"
