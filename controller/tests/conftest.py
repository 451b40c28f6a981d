"""Fixtures of all the controller's tests."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from fakeswitch import FakeSwitch
from sluice.switch import pipeline
from sluice.switch.pipeline import artefacts
from sluice.switch.session import Session


@pytest.fixture(scope="session")
def pipeline_dir() -> Path:
    """The directory of the compiled program."""
    return artefacts()


@pytest.fixture
async def switch() -> AsyncGenerator[FakeSwitch]:
    """An empty fake switch."""
    async with FakeSwitch() as fake:
        yield fake


@pytest.fixture
async def session(switch: FakeSwitch) -> AsyncGenerator[Session]:
    """A session with the fake switch, which runs the program."""
    async with Session(switch.address, 1, pipeline.load()) as opened:
        await opened.push_pipeline()
        yield opened
