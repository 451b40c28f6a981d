"""What all of the controller's tests share."""

from pathlib import Path

import pytest
from hypothesis import settings
from sluice.switch.pipeline import artefacts

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def pipeline_dir() -> Path:
    """The directory of the compiled program."""
    return artefacts()
