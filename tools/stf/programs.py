"""Loads the program of a test: a compiled program, or a source compiled by the p4c on PATH."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from tools.bmv2.p4info import p4info_of

COMPILER = "p4c-bm2-ss"
_OTHER_ARCHITECTURE = re.compile(r"#include\s*[<\"](?:bmv2/)?(psa|pna|ubpf_model|ebpf_model|tna)\.p4")
_P4_14 = re.compile(r"^\s*(header_type\s+\w+|(control|parser)\s+\w+)\s*\{", re.MULTILINE)
"""Declarations of P4_14 that have another form in P4_16."""
_LAST_WORDS = 3


class NotForV1model(Exception):
    """The program is for another architecture than v1model; the message is the architecture's name."""


class CompileError(Exception):
    """The test has no complete program, p4c is needed but not on PATH, or p4c refused the source. After a refusal the
    message contains p4c's first error lines."""


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    json: Path
    p4info: p4i.P4Info


def program_of(test: Path, out: Path) -> Program:
    """Return the program of `X.stf`: `X.json` and `X.p4info.txtpb` beside it, or `X.p4` compiled into `out`.

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
        return _compile(source, out)
    if not info.exists():
        raise CompileError(f"{info.name} is missing beside {compiled.name}: compile with --p4runtime-files {info.name}")
    return _program(compiled, info)


def _compile(source: Path, out: Path) -> Program:
    """Compile a source. If p4c refuses only to write P4Info, because two objects have the same control-plane name,
    derive P4Info from the JSON. Raises CompileError."""
    if not shutil.which(COMPILER):
        raise CompileError(f"{COMPILER} is not on PATH, and {source.stem}.json is not there")
    compiled, info = (out / f"{source.stem}{suffix}" for suffix in (".json", ".p4info.txtpb"))
    language = "p4-14" if _P4_14.search(source.read_text(errors="replace")) else "p4-16"
    command = [COMPILER, "--arch", "v1model", "--std", language, "-o", str(compiled), str(source)]
    refused = _refusal([*command, "--p4runtime-files", str(info)], source.parent)
    if refused is None:
        return _program(compiled, info)
    if "conflicting control plane name" in refused and _refusal(command, source.parent) is None:
        return Program(compiled, p4info_of(json.loads(compiled.read_text())))
    raise CompileError(refused)


def _refusal(command: list[str], folder: Path) -> str | None:
    """Run p4c; return the first error lines of its output if it refuses the program, None if it compiles the
    program."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not done.returncode:
        return None
    said = [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines()
    return f"{COMPILER}: {' '.join(said[:_LAST_WORDS]) or f'status {done.returncode}'}"


def _program(compiled: Path, info: Path) -> Program:
    return Program(compiled, text_format.Parse(info.read_text(), p4i.P4Info()))
