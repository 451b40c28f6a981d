"""Runs of the lab's demo on disk, each with the version of the programs and the settings of the run."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.experiment import Say
from experiments.webpool import quiet
from topo.demo.__main__ import Settings, run_demo
from topo.results import program, replaced_directory, version
from topo.testbed.nodes import switch_kind

META = "meta.json"


def is_there(directory: Path, since: float = 0.0) -> bool:
    """Return whether the directory contains a run of the present switch, controller and lab that began at `since` or
    later. `since` is in seconds, on the clock of time.time()."""
    try:
        meta = json.loads((directory / META).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return meta["began"] >= since and meta["identity"] == _identity()


def make(directory: Path, say: Say) -> None:
    """Run the demo; its results replace `directory` as a whole when the run has ended."""
    meta = {"began": time.time(), "program": program(), "identity": _identity()}
    with replaced_directory(directory) as partial:
        run_demo(Settings(), partial, quiet(say))
        (partial / META).write_text(json.dumps({**meta, "load": os.getloadavg()[0]}, indent=2) + "\n")


def made(directory: Path) -> dict[str, Any]:
    """Return the run's start time (`began`), the machine's `load` average at its end, and the commit (`program`)."""
    meta = json.loads((directory / META).read_text())
    return {name: meta[name] for name in ("began", "load", "program")}


def _identity() -> dict[str, Any]:
    """Return the properties that must be equal for a stored run to be reused, as JSON: switch, version and settings."""
    kind = switch_kind()
    return json.loads(json.dumps({"switch": kind, "version": version(kind), "settings": asdict(Settings())}))
