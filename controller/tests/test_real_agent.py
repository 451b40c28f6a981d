"""The agent itself takes what the controller sends, and tells what it understands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path

import pytest
from content import content
from sluice import programs
from sluice.agents import binary
from sluice.agents.client import connected
from sluice.agents.cookies import Cookies
from sluice.agents.messages import configuration
from sluice.configload import parse
from sluice.switch.plan import make_plan
from sluice.switch.rules import Rules

PROGRAM = programs.find(binary.NAME)
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="the agent is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a network interface needs root"),
]


@pytest.fixture
def control(tmp_path: Path) -> Generator[str]:
    """Where an agent listens that has an interface of its own."""
    name, place = f"sa{os.getpid()}", f"unix://{tmp_path}/agent.sock"
    subprocess.run(["ip", "link", "add", name, "up", "type", "veth", "peer", "name", f"{name}p"], check=True)
    addresses = ["--address", "10.0.3.31", "--gateway", "10.0.3.1"]
    with subprocess.Popen(
        [str(PROGRAM), "--interface", name, *addresses, "--control", place], stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline().startswith("sluice-agent: 10.0.3.31 on ")
        yield place
        agent.kill()
    subprocess.run(["ip", "link", "delete", name], check=True)


async def test_it_is_configured_refuses_and_is_heard(control: str) -> None:
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
