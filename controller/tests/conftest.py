"""Fixtures of all the controller's tests."""

from pathlib import Path

import pytest
from sluice.switch.pipeline import artefacts


@pytest.fixture(scope="session")
def pipeline_dir() -> Path:
    """The directory of the compiled program."""
    return artefacts()
