"""Measures the engine without ports: packets per second by the clock, and instructions per packet by callgrind."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from topo.testbed.errors import SetupError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "target/release/examples/bench"
PROGRAM = ROOT / "p4src/build/sluice.json"
PHASES = 4
"""The number of phases of the measuring program (EXAMPLE), which have equal numbers of packets: data, answers, data and
answers alternately, new connections."""
FEW, MANY = 10_000, 20_000
TRIALS = 9
COUNTED = "sluice_engine::engine::Engine::receive*"
"""The function whose instructions are counted, including those of the functions that it calls. The construction of
frames is not counted."""


def packets_per_second(seconds: float) -> float:
    """Return the median of packets per second on one core, with data packets and answers alternately. Raises SetupError
    on failure."""
    return statistics.median(_trial(seconds) for _ in range(TRIALS))


def _trial(seconds: float) -> float:
    text = _run([str(EXAMPLE), str(PROGRAM), "--seconds", str(seconds)])
    match = re.search(r"^engine_pps (\d+)", text, re.MULTILINE)
    if match is None:
        raise SetupError(f"{EXAMPLE.name} does not say engine_pps:\n{text}")
    return float(match[1])


def instructions_per_packet() -> float | None:
    """Return the mean number of instructions per packet over all phases; None if valgrind is not installed.

    The number is the difference of two runs with different numbers of packets, divided by the difference of these
    numbers, so that instructions outside of the phases do not count.
    """
    if shutil.which("valgrind") is None:
        return None
    return (_instructions(MANY) - _instructions(FEW)) / (PHASES * (MANY - FEW))


def _instructions(packets: int) -> int:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", f"--toggle-collect={COUNTED}"]
        text = _run([*tool, str(EXAMPLE), str(PROGRAM), "--packets", str(packets)])
    match = re.search(r"Collected : (\d+)", text)
    if match is None:
        raise SetupError(f"valgrind does not say how many instructions it collected:\n{text}")
    return int(match[1])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode:
        raise SetupError(f"{' '.join(command)}: exit code {done.returncode}:\n{text}")
    return text
