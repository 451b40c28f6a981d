"""Requirements of tests on the machine: pytest marks that skip tests if a requirement is missing."""

from __future__ import annotations

import os

import pytest

from topo.labs.content import AGENT

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
AGENTS = [ROOT, pytest.mark.skipif(not AGENT.exists(), reason="sluice-agent is not built: make setup")]
LONG = [ROOT, pytest.mark.long]
ALONE = [ROOT, pytest.mark.alone]
