"""Tests that the real agent accepts the controller's messages, and that the controller decodes the agent's reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from content import content
from realagent import needed, real_agent
from sluice.agents.client import connected
from sluice.agents.cookies import Cookies
from sluice.agents.messages import configuration
from sluice.config.load import parse
from sluice.switch.plan import make_plan
from sluice.switch.rules import Rules

pytestmark = list(needed)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[str]:
    """Run an agent; yield the address at which the agent accepts a controller."""
    with real_agent(tmp_path) as address:
        yield address


async def test_it_is_configured_refuses_and_reports(control: str) -> None:
    config = parse(content(agents=(control, "127.0.0.1:9471")))
    wanted = configuration(make_plan(config), control, Rules(7, b"-"), Cookies.fresh())
    assert len(wanted.services) == 1
    wanted.generation = 7
    async with connected(control) as agent:
        assert await agent.configure(wanted) == []
        wanted.services[0].content = wanted.services[0].content.replace("pl$", "pl(")
        (problem,) = await agent.configure(wanted)
        assert (problem.service, problem.path) == ("shop", "rules[1].match.path.regex")
        async with aclosing(agent.watch(0.05, 10.0)) as reports:
            report = await anext(reports)
    assert report.generation == 7, "what it refused changes nothing"
    assert list(report.services["shop"].rules) == ["big", "perl", "admin"]
    assert set(report.services["shop"].opened) == {"all", "fast"}
