"""The command `python -m tools.differential`: compares two switches; the package's docstring describes its options."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format
from sluice.names import RATE_TICK_US

from topo.testbed import REPOSITORY as ROOT
from topo.testbed import namespaces
from topo.testbed.entities import Entities
from topo.testbed.errors import SetupError
from topo.testbed.p4runtime import Refused
from topo.testbed.switches import BMV2, TOFINO
from topo.testbed.switches.piped import embedded_binary

from . import compare, content, model, selectors
from .frames import Frames
from .modelside import ModelSide
from .side import Side, State, last_words, require_running
from .world import CPU_PORT, LONGEST_STEP, PORTS, World

RESULTS = ROOT / "results/differential"
ROUND_PACKETS = 500
START_S = 20.0
"""The first packet's time stamp, in seconds; it is later than the end of any switch's start-up."""
MARKER = b"\xff" * 14
"""A frame of an unknown EtherType, which both switches drop and count; it marks the end of a round."""


Outputs = Mapping[int | str, Sequence[bytes]]
"""Output frames by port number. The text keys `controller` and `digests` contain what the controller receives."""


@dataclass(frozen=True)
class Subject:
    """A P4 program with the writes, frames and comparisons of its run."""

    program: Path
    """The program's path, without the suffixes of JSON and P4Info."""
    ports: Sequence[int]
    world: Callable[[Entities, random.Random], World | selectors.World]
    frames: Callable[[random.Random], Frames | selectors.Frames]
    other: Path | None = None
    """The program of the second switch, if it differs from that of the embedded switch."""
    own_ids: bool = False
    """Whether each switch receives the ids of its own program; if not, both receive the ids of the second switch's
    program, which has fewer objects."""
    outputs: Callable[[Outputs], Outputs] = lambda out: out
    """Returns the part of the output that is compared."""
    state: Callable[[State], State] = lambda state: state
    """Returns the part of the final state that is compared."""


SLUICE = Subject(ROOT / "p4src/build/sluice", PORTS, World, Frames)
CONTENT = Subject(SLUICE.program, PORTS, content.World, content.Frames)
TWIN = replace(SLUICE, other=ROOT / "p4src/build/twin/sluice")
MODEL = Subject(
    ROOT / "p4src/build/twin/sluice",
    PORTS,
    model.World,
    model.Frames,
    other=ROOT / "p4src/build/tofino/sluice",
    own_ids=True,
    outputs=model.comparable_output,
    state=model.comparable,
)
SELECTORS = Subject(Path(selectors.__file__).with_name("selectors"), selectors.PORTS, selectors.World, selectors.Frames)


def main(arguments: list[str] | None = None) -> int:
    """Run, print the table, and write the report; return 0 if nothing differs, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.differential", description=__doc__)
    parser.add_argument("--packets", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, default=ROUND_PACKETS, help="packets between two batches of writes")
    parser.set_defaults(subject=SLUICE)
    which = parser.add_mutually_exclusive_group()
    for flag, subject, text in (
        ("--twin", TWIN, "with Tofino's tables in place of BMv2"),
        ("--model", MODEL, "the twin against Tofino's model of $SDE_INSTALL, as root"),
        ("--content", CONTENT, "with a content service, which the twin has not"),
        ("--selectors", SELECTORS, "groups of all hash algorithms in place of sluice"),
    ):
        which.add_argument(flag, dest="subject", action="store_const", const=subject, help=text)
    parser.add_argument("--switch", type=Path, help="the embedded switch [target/release/sluice-switch]")
    parser.add_argument("--keep", type=Path, help="keep logs and captures in this folder, which must not exist")
    parser.add_argument("--results", type=Path, help="the report [results/differential/PROGRAM.json]")
    options = parser.parse_args(arguments)
    subject: Subject = options.subject
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
        folder.mkdir(exist_ok=options.keep is None)
        try:
            ours, theirs = (
                stack.enter_context(side) for side in sides(subject, embedded_binary(options.switch), folder)
            )
            with last_words((ours, theirs)):
                result = run(subject, ours, theirs, options.packets, options.seed, round_packets=options.round)
        except (SetupError, Refused) as error:
            print(error, file=sys.stderr)
            return 2
    results = options.results or RESULTS / f"{subject.program.name}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(result, indent=1) + "\n")
    _print(result)
    return 1 if result["differences"] else 0


def sides(subject: Subject, embedded: Path, folder: Path) -> Iterator[Side | ModelSide]:
    """Start the two switches, and yield each of them. Raises SetupError."""
    if subject is MODEL:
        TOFINO.find()
        namespaces.enter_new()
    yield Side("embedded", embedded, folder / "embedded", subject.ports, CPU_PORT)
    if subject is MODEL:
        assert subject.other
        yield ModelSide("Tofino's model", folder / "model", subject.other.parent, subject.ports)
    elif subject is TWIN:
        yield Side("the twin", embedded, folder / "twin", subject.ports, CPU_PORT)
    else:
        yield Side("BMv2", BMV2.find(), folder / "bmv2", subject.ports, CPU_PORT)


def _p4info(program: Path) -> p4i.P4Info:
    return text_format.Parse(program.with_suffix(".p4info.txtpb").read_text(), p4i.P4Info())


def _load(side: Side | ModelSide, program: Path) -> None:
    """Load the program into a switch. A Tofino's driver has loaded the program already, and gets only the P4Info."""
    side.load(_p4info(program), b"" if isinstance(side, ModelSide) else program.with_suffix(".json").read_bytes())


def run(
    subject: Subject, ours: Side | ModelSide, theirs: Side | ModelSide, packets: int, seed: int, *, round_packets: int
) -> dict[str, object]:
    """Give both switches the same writes and frames, round by round, and compare the results; return figures for the
    report."""
    other = subject.other or subject.program
    both = (ours, theirs)
    _load(ours, subject.program)
    _load(theirs, other)
    infos = (_p4info(subject.program if subject.own_ids else other), _p4info(other))
    rng = random.Random(seed)
    changes = rng.random()
    worlds = [subject.world(Entities(info), random.Random(changes)) for info in infos]
    frames = subject.frames(rng)
    report = compare.Report(other=theirs.name)
    started, sent, received, writes = time.monotonic(), 0, 0, 0
    while sent < packets:
        updates = [world.change() if sent else world.start() for world in worlds]
        writes += len(updates[0])
        when = f"packets {sent} to {sent + round_packets}"
        compare.codes(report, when, *(side.write(update) for side, update in zip(both, updates, strict=True)))
        batch = frames.take(min(round_packets, packets - sent))
        for side in both:
            side.send(batch, MARKER)
        for side in both:
            side.await_quiet(lambda: require_running(both))
        frames_out, others_out = (subject.outputs(side.came()) for side in both)
        compare.outputs(report, when, frames_out, others_out)
        received += sum(map(len, frames_out.values()))
        sent += len(batch)
        if sys.stderr.isatty():
            print(f"\r{sent} packets, {sum(report.counts.values())} differences ", end="", file=sys.stderr)
    states = [subject.state(side.state(info)) for side, info in zip(both, infos, strict=True)]
    # After LONGEST_STEP the estimator of response rates moves its window by the clock, so its cells would depend on
    # time.
    too_long = time.monotonic() - started > LONGEST_STEP * RATE_TICK_US / 1e6 - START_S
    left_out = [name for name in states[0].registers if name.endswith(".rate_bytes") and too_long]
    for name in left_out:
        del states[0].registers[name]
    compare.states(report, states[0], states[1], compare.sluice_registers)
    return {
        "packets": sent,
        "seed": seed,
        "updates": writes,
        "frames_out": received,
        "register_cells": sum(map(len, states[0].registers.values())),
        "registers_not_zero": sum(len(cells) - cells.count(0) for cells in states[0].registers.values()),
        "counters_not_zero": {name: len(cells) for name, cells in states[0].counters.items()},
        "left_out": left_out,
        "seconds": round(time.monotonic() - started, 1),
        "differences": dict(report.counts),
        "examples": report.examples,
    }


def _print(result: dict[str, object]) -> None:
    for key, value in result.items():
        if key not in ("counters_not_zero", "differences", "examples"):
            print(f"{key.replace('_', ' '):>18}  {value}")
    differences, examples = result["differences"], result["examples"]
    assert isinstance(differences, dict)
    assert isinstance(examples, dict)
    for kind, count in differences.items():
        print(f"\n{count} x {kind}")
        for example in examples[kind]:
            print(f"    {example}")
    if not differences:
        print(f"{'differences':>18}  none")


if __name__ == "__main__":
    sys.exit(main())
