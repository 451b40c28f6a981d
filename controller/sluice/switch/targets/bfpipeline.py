"""The device configuration of a program for Tofino, from what p4c wrote.

It is BF Runtime's ForwardingPipelineConfig: the program's name (1), bfrt.json (2), and for each
pipeline (3) its name (1), context.json (2), tofino.bin (3) and the hardware pipes it is for (4).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluice.switch.errors import SwitchError

CONF = "*.conf"
"""What lies beside bfrt.json, as p4c's driver writes it: which files make up the program."""

_REMEDY = "the program that comes with sluice is p4src/build/tofino; `make p4 TARGET=tofino` compiles it there"


def code(folder: Path) -> bytes:
    """The serialised message. Raises SwitchError naming the file that is missing or not understood."""
    conf = next(iter(sorted(folder.glob(CONF))), None)
    if conf is None:
        raise SwitchError(f"no {CONF} in {folder}; {_REMEDY}")
    try:
        (device,) = json.loads(conf.read_text())["p4_devices"]
        (program,) = device["p4_programs"]
        pipelines = [_pipeline(folder, one) for one in program["p4_pipelines"]]
        fields = _field(1, str(program["program-name"]).encode()) + _field(2, _file(folder, program["bfrt-config"]))
        return fields + b"".join(_field(3, one) for one in pipelines)
    except OSError as error:
        raise SwitchError(f"{error.filename}: {error.strerror}; {_REMEDY}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise SwitchError(f"{conf}: not what p4c writes for one device with one program ({error!r})") from error


def _pipeline(folder: Path, one: dict[str, Any]) -> bytes:
    scope = b"".join(_varint(int(pipe)) for pipe in one["pipe_scope"])
    return (
        _field(1, str(one["p4_pipeline_name"]).encode())
        + _field(2, _file(folder, one["context"]))
        + _field(3, _file(folder, one["config"]))
        + _field(4, scope)
    )


def _file(folder: Path, name: str) -> bytes:
    """A file that the configuration names as it will be installed; here it lies in the compiler's folder."""
    parts = Path(name).parts[Path(name).is_absolute() :]
    candidates = [folder.joinpath(*parts[start:]) for start in range(len(parts))]
    found = next((path for path in candidates if path.is_file()), candidates[-1])
    return found.read_bytes()


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
