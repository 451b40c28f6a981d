"""Run a `sluice-agent` process on its own network interface, which requires root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sluice import programs
from sluice.agents import binary

PROGRAM = programs.find(binary.NAME)
needed = (
    pytest.mark.skipif(PROGRAM is None, reason="the agent is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a network interface needs root"),
)
"""Pytest marks of tests that start an agent."""


@contextmanager
def real_agent(folder: Path, *flags: str) -> Generator[str]:
    """Run an agent with additional flags; yield the address at which the agent accepts a controller."""
    name, control = f"sa{os.getpid()}", f"unix://{folder}/agent.sock"
    subprocess.run(["ip", "link", "add", name, "up", "type", "veth", "peer", "name", f"{name}p"], check=True)
    addresses = ("--address", "10.0.3.31", "--gateway", "10.0.3.1")
    command = [str(PROGRAM), "--interface", name, *addresses, "--control", control, *flags]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
            try:
                assert agent.stdout is not None
                assert agent.stdout.readline().startswith("sluice-agent: 10.0.3.31 on ")
                yield control
            finally:
                agent.kill()
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)
