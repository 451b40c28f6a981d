"""Compiles p4src/tna with p4c's Tofino back end, and checks what can be checked without it.

`build` needs a `p4c` on PATH that was built with the Tofino back end. It writes the P4Info (with P4Runtime's standard
externs) and bfrt.json to p4src/build/tofino, and the compiler's report to results/tofino.

`check` runs p4c's front end over the program: syntax, names, types. That takes any p4c-bm2-ss, which refuses the
architecture only behind its front end, and TNA's headers. It says nothing of the hardware: whether actions fit stateful
units and stages is known after `build` only.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.p4 import BUILD, COMPILER, ROOT, P4Error, run_command

MAIN = "p4src/tna/main.p4"
DRIVER = "p4c"
ARTEFACTS = ("sluice.p4info.txtpb", "bfrt.json")
REPORT = ROOT / "results/tofino"
HEADERS_VARIABLE = "TNA_INCLUDE"
NO_BACK_END = "main package  match the expected model"
OTHER_TARGET = "the main package should be called V1Switch"
"""What p4c-bm2-ss (1.2.5.16) says of any architecture but its own: an error behind its front end, and a warning."""
NOT_SAID = ("uninitialized-use", "uninitialized-out-param", "unused")
"""Warnings that are not told. A RegisterAction reads variables that are set before it is executed, not before it is
declared; Tofino zeroes metadata (`pa_auto_init_metadata`); some constants and functions are v1model's."""


def headers() -> Path | None:
    """The folder of tna.p4: $TNA_INCLUDE, or an installed p4c's; None where there is none. P4Error for a wrong one."""
    if named := os.environ.get(HEADERS_VARIABLE):
        if not (Path(named) / "tna.p4").exists():
            raise P4Error(
                f"${HEADERS_VARIABLE} is {named}, which has no tna.p4: "
                "name backends/tofino/bf-p4c/p4include of p4c's sources"
            )
        return Path(named)
    compiler = shutil.which(COMPILER)
    installed = Path(compiler).resolve().parent.parent / "share/p4c/p4include" if compiler else None
    return installed if installed and (installed / "tna.p4").exists() else None


def front_end_errors(said: str) -> list[str]:
    """The errors in what p4c-bm2-ss said, but for the one that ends every program for another target.

    P4Error when that one is missing: the front end did not come to its end.
    """
    errors = [line for line in said.splitlines() if "error:" in line]
    others = [line for line in errors if NO_BACK_END not in line]
    if not others and len(errors) != 1:
        raise P4Error(f"{COMPILER} did not reach the end of its front end:\n{said}")
    return others


def check() -> None:
    """Runs the front end; P4Error with p4c's own words when it refuses the program."""
    found = headers()
    if not shutil.which(COMPILER) or not found:
        print(f"p4-tofino: not type-checked (needs {COMPILER} on PATH and TNA's headers, ${HEADERS_VARIABLE})")
        return
    command = [COMPILER, "--std", "p4-16", "-I", str(found), "-D__TARGET_TOFINO__=1"]
    command += [f"--Wdisable={kind}" for kind in NOT_SAID] + ["-o", os.devnull, MAIN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    warnings = [line for line in done.stderr.splitlines() if "warning:" in line and OTHER_TARGET not in line]
    if front_end_errors(done.stderr) or warnings:
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    print("p4-tofino: p4src/tna passes p4c's front end (it has not been compiled for the hardware by this check)")


def compile_command(folder: Path) -> Sequence[str]:
    """The command that compiles into a folder; P4Error where no p4c on PATH has the Tofino back end."""
    if not shutil.which(DRIVER) or not shutil.which("p4c-barefoot"):
        raise P4Error(
            "no p4c with the Tofino back end on PATH: build https://github.com/p4lang/p4c with -DENABLE_TOFINO=ON, "
            "and put its build directory and backends/tofino/bf-p4c on PATH"
        )
    p4info, bfrt = (str(folder / name) for name in ARTEFACTS)
    return [
        *(DRIVER, "--target", "tofino", "--arch", "tna", "--std", "p4-16"),
        *("--p4runtime-force-std-externs", "--p4runtime-files", p4info, "--bf-rt-schema", bfrt),
        *("--verbose", "2", "-o", str(folder), MAIN),
    ]


def build() -> None:
    """Compiles and copies what is to be committed; P4Error with p4c's own words when it refuses."""
    shutil.rmtree(REPORT, ignore_errors=True)
    REPORT.mkdir(parents=True)
    command = compile_command(REPORT)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    (BUILD / "tofino").mkdir(exist_ok=True)
    for name in ARTEFACTS:
        shutil.copy(REPORT / name, BUILD / "tofino" / name)
    print(
        f"p4-tofino: {', '.join(ARTEFACTS)} in p4src/build/tofino, the compiler's report in {REPORT.relative_to(ROOT)}"
    )


if __name__ == "__main__":
    sys.exit(run_command("Compiles p4src/tna, or checks it as far as p4c's front end goes.", build, check))
