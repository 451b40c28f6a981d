"""Fixtures that all tests of the controller share."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from fakeswitch import FakeSwitch
from sluice.switch import pipeline
from sluice.switch.pipeline import artefacts
from sluice.switch.session import Session


@pytest.fixture(scope="session")
def pipeline_dir() -> Path:
    """Return the directory of the compiled P4 program."""
    return artefacts()


@pytest.fixture
async def switch() -> AsyncGenerator[FakeSwitch]:
    """Yield a running fake switch without any entries."""
    async with FakeSwitch() as fake:
        yield fake


@pytest.fixture
async def session(switch: FakeSwitch) -> AsyncGenerator[Session]:
    """Yield a P4Runtime session with the fake switch, on which the P4 program is installed."""
    async with Session(switch.address, 1, pipeline.load()) as opened:
        await opened.push_pipeline()
        yield opened
