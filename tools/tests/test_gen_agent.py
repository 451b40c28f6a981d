"""Checks that the controller's descriptors of the agent's messages match the agent's proto files."""

from __future__ import annotations

import shutil

import pytest

from tools import gen_agent

pytestmark = pytest.mark.skipif(shutil.which("protoc") is None, reason="no protoc")


def test_descriptors_are_the_agents() -> None:
    assert gen_agent.main(["--check"]) == 0
