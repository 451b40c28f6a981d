"""What lab, packet tests, tools and experiments start and watch: networks, switches, processes, captures."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
