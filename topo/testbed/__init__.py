"""The environment of lab, packet tests, tools and experiments: networks, switches, processes, captures."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
