"""The device configuration of a program for Tofino, built from p4c's output files.

The device configuration is BF Runtime's message ForwardingPipelineConfig. It contains the program's name (field 1),
bfrt.json (2), and for each pipeline (3) its name (1), context.json (2), tofino.bin (3) and the numbers of the hardware
pipes that run it (4).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluice.switch.errors import SwitchError

CONF = "*.conf"
"""Pattern of the name of the file, beside bfrt.json, in which p4c's driver lists the program's files."""

_REMEDY = "the program that comes with sluice is p4src/build/tofino; `make p4 TARGET=tofino` compiles it there"


def code(folder: Path) -> bytes:
    """Return the serialised message. Raises SwitchError, which names the file that is missing or cannot be parsed."""
    conf = next(iter(sorted(folder.glob(CONF))), None)
    if conf is None:
        raise SwitchError(f"no {CONF} in {folder}; {_REMEDY}")
    try:
        (device,) = json.loads(conf.read_text())["p4_devices"]
        (program,) = device["p4_programs"]
        pipelines = [_pipeline(folder, pipeline) for pipeline in program["p4_pipelines"]]
        fields = _field(1, str(program["program-name"]).encode()) + _field(2, _file(folder, program["bfrt-config"]))
        return fields + b"".join(_field(3, pipeline) for pipeline in pipelines)
    except OSError as error:
        raise SwitchError(f"{error.filename}: {error.strerror}; {_REMEDY}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise SwitchError(f"{conf}: not what p4c writes for one device with one program ({error!r})") from error


def _pipeline(folder: Path, pipeline: dict[str, Any]) -> bytes:
    scope = b"".join(_varint(int(pipe)) for pipe in pipeline["pipe_scope"])
    return (
        _field(1, str(pipeline["p4_pipeline_name"]).encode())
        + _field(2, _file(folder, pipeline["context"]))
        + _field(3, _file(folder, pipeline["config"]))
        + _field(4, scope)
    )


def _file(folder: Path, name: str) -> bytes:
    """Return the content of a file that the configuration lists. The configuration states the path of an installation;
    the file itself is in the compiler's output folder."""
    parts = Path(name).parts[Path(name).is_absolute() :]
    candidates = [folder.joinpath(*parts[start:]) for start in range(len(parts))]
    file = next((path for path in candidates if path.is_file()), candidates[-1])
    return file.read_bytes()


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
