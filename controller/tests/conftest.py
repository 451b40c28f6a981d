"""What all of the controller's tests share."""

from pathlib import Path

import pytest
from sluice.switch.pipeline import artefacts


@pytest.fixture(scope="session")
def pipeline_dir() -> Path:
    """The directory of the compiled program."""
    return artefacts()
