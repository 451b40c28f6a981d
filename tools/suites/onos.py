"""Runs the compiled pipelines of opennetworkinglab/onos with ONOS's P4Runtime requests. ONOS itself is not needed.

Every pipeline is loaded and read as ONOS does when a device connects; `basic` is also tested with flows, packets and
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sluice.replay.capturefile import CaptureError

from topo.testbed.errors import SetupError
from topo.testbed.p4runtime import Refused

from .errors import SuiteError
from .onos_basic import BASIC
from .onos_controller import Onos, Pipeline, loads
from .report import Outcome, Result
from .wired import wired


def pipelines(folder: Path) -> list[Pipeline]:
    """Return the pipelines: BMv2's JSON files below `p4c-out`, each with the P4Info in its folder, as in ONOS's
    tree."""
    programs: list[Pipeline] = []
    for program in sorted(folder.glob("**/p4c-out/**/*.json")):
        own, common = program.with_name(f"{program.stem}_p4info.txt"), program.with_name("p4info.txt")
        if own.is_file():
            programs.append(Pipeline(program.stem, program, own))
        elif common.is_file():  # the path is NAME/bmv2/default/bmv2.json
            programs.append(Pipeline(program.parents[2].name, program, common))
    return programs


def run(folder: Path, binary: Path, names: Sequence[str]) -> Iterator[Result]:
    """Yield the results of all pipelines, or of those named. Raises SuiteError if there is no pipeline."""
    selected = pipelines(folder)
    if not selected:
        raise SuiteError(f"{folder} has no p4c-out/**/*.json: is it a clone of opennetworkinglab/onos?")
    known = [pipeline.name for pipeline in selected]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SuiteError(f"there is no pipeline {', '.join(unknown)}, only {', '.join(known)}")
    for pipeline in selected:
        if not names or pipeline.name in names:
            yield _run(pipeline, binary, loads)
            for test in BASIC if pipeline.name == "basic" else ():
                yield _run(pipeline, binary, test)


def _run(pipeline: Pipeline, binary: Path, test: Callable[[Onos], None]) -> Result:
    """Run a test on a switch that only this test uses."""
    name = f"{pipeline.name} {test.__name__}"
    try:
        with wired(binary) as switch:
            onos = Onos(switch, pipeline)
            try:
                test(onos)
            finally:
                onos.client.close()
    except KeyError as missing:
        return Result(name, Outcome.FAILED, f"the pipeline has no {missing}")
    except (SuiteError, SetupError, Refused, CaptureError) as error:
        return Result(name, Outcome.FAILED, str(error))
    return Result(name, Outcome.PASSED)
