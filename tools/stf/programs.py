"""The programs that tests are for: compiled already, or by the p4c on PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

COMPILER = "p4c-bm2-ss"
_OTHER_ARCHITECTURE = re.compile(r"#include\s*[<\"](?:bmv2/)?(psa|pna|ubpf_model|ebpf_model|tna)\.p4")
_LAST_WORDS = 3


class NotForV1model(Exception):
    """The program is for another architecture."""


class CompileError(Exception):
    """There is no program, or p4c refused it; the text has its words."""


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    json: Path
    p4info: p4i.P4Info


def program_of(test: Path, out: Path) -> Program:
    """The program of `X.stf`: `X.json` and `X.p4info.txtpb` beside it, or `X.p4` compiled into `out`.

    Raises NotForV1model or CompileError.
    """
    compiled, info = test.with_suffix(".json"), test.with_suffix(".p4info.txtpb")
    if not compiled.exists():
        source = test.with_suffix(".p4")
        if not source.exists():
            raise CompileError(f"there is neither {compiled.name} nor {source.name} beside {test.name}")
        other = _OTHER_ARCHITECTURE.search(source.read_text(errors="replace"))
        if other:
            raise NotForV1model(other[1])
        compiled, info = _compile(source, out)
    elif not info.exists():
        raise CompileError(f"{info.name} is missing beside {compiled.name}: compile with --p4runtime-files {info.name}")
    return Program(compiled, text_format.Parse(info.read_text(), p4i.P4Info()))


def _compile(source: Path, out: Path) -> tuple[Path, Path]:
    if not shutil.which(COMPILER):
        raise CompileError(f"{COMPILER} is not on PATH, and {source.stem}.json is not there")
    compiled, info = (out / f"{source.stem}{suffix}" for suffix in (".json", ".p4info.txtpb"))
    command = [COMPILER, "--arch", "v1model", "--p4runtime-files", str(info), "-o", str(compiled), str(source)]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)
    if done.returncode or not compiled.exists():
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
        raise CompileError(f"{COMPILER}: {' '.join(said[:_LAST_WORDS]) or f'status {done.returncode}'}")
    return compiled, info
