"""Reads a configuration file. A complaint names the file, the line and the problem and, as far as they are known, the
field and the remedy."""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from . import yamllines
from .check import findings
from .model import Config

DEFAULT_CONFIG = "sluice.yaml"
"""The file that commands read by default."""
_SHOWN = 60
"""The largest number of a value's characters that a complaint quotes."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A problem of a configuration, with its location in the file. Line 0: the file cannot be read."""

    file: str
    line: int
    field: str
    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: "
        text = f"{self.field}: {self.problem}" if self.field else self.problem
        return place + text + (f"; {self.remedy}" if self.remedy else "")


class ConfigError(Exception):
    """The configuration is invalid. The message has a line for each problem."""

    def __init__(self, complaints: list[Complaint]) -> None:
        super().__init__("\n".join(map(str, complaints)))
        self.complaints = complaints


def load(path: str | Path) -> Config:
    """Read and check a configuration file. Raises ConfigError with every problem that the first failing check finds:
    the check of the YAML (which ends at its first problem), of the types, or of the references between values."""
    return load_with_lines(path)[0]


def load_with_lines(path: str | Path) -> tuple[Config, dict[yamllines.Path, int]]:
    """Read and check a configuration file; return the configuration and the line of each value. Raises ConfigError."""
    name = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError([Complaint(name, 0, "", reason, "give the file with --config")]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([Complaint(name, 1, "", "is not UTF-8 text", "save it as UTF-8")]) from error
    return _parsed(text, name)


def parse(text: str, name: str = "sluice.yaml") -> Config:
    """Parse and check a configuration's text. Complaints name the file ``name``. Raises ConfigError."""
    return _parsed(text, name)[0]


def _parsed(text: str, name: str) -> tuple[Config, dict[yamllines.Path, int]]:
    try:
        document, lines = yamllines.load(text)
    except yamllines.YamlError as error:
        remedy = error.remedy or "see the YAML around this line"
        raise ConfigError([Complaint(name, error.line, "", error.problem, remedy)]) from error
    try:
        # Strict JSON rules convert no value to another type, such as a boolean to a number.
        config = Config.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        # pydantic also reports a list as too short if all its items are invalid. The items have reports of their own.
        relevant = [d for d in details if not (d["type"] == "too_short" and d.get("input"))]
        complaints = [_complaint(name, detail, lines) for detail in relevant]
        raise ConfigError(sorted(set(complaints), key=lambda c: (c.line, c.field, c.problem))) from error
    problems = [complaint_of(name, finding, lines) for finding in findings(config)]
    if problems:
        raise ConfigError(sorted(problems, key=lambda c: (c.line, c.field)))
    return config, lines


def complaint_of(name: str, finding: yamllines.Finding, lines: dict[yamllines.Path, int]) -> Complaint:
    """Return a finding as a complaint with its location in the file."""
    path = finding.path
    return Complaint(name, yamllines.line_of(path, lines), yamllines.dotted(path), finding.problem, finding.remedy)


def _complaint(name: str, error: ErrorDetails, lines: dict[yamllines.Path, int]) -> Complaint:
    path, value = error["loc"], error.get("input")
    line = yamllines.line_of(path, lines)
    field = yamllines.dotted(path)
    match error["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            keys = _known_keys(path[:-1])
            close_matches = difflib.get_close_matches(str(path[-1]), keys, n=1)
            remedy = f"did you mean {close_matches[0]!r}?" if close_matches else f"known keys: {', '.join(keys)}"
            return Complaint(name, line, field, "unknown key", remedy)
        case "missing":
            return Complaint(name, line, field, "is required but not given", f"add {path[-1]!r}")
        case "model_type" | "model_attributes_type" | "dataclass_type":
            return Complaint(name, line, field, "must be a mapping of keys to values", "indent its keys below it")
        case "tuple_type":
            return Complaint(name, line, field, "must be a list", "begin each item with '- '")
        case "too_short":
            return Complaint(name, line, field, "must not be empty", "add at least one item")
        case kind:
            message = error["msg"].removeprefix("Value error, ")
            message = message.replace("Input should be ", "must be ", 1)
            problem, _, remedy = message.partition("; ")
            remedy = remedy or (_NOTHING if value is None else _REMEDIES.get(kind, ""))
            return Complaint(name, line, field, f"{problem}{_got(value)}", remedy)


_NOTHING = "write its value behind the colon, or leave the key out"
_REMEDIES = {
    "int_type": "write digits 0 to 9 without quotes or leading zeros, such as 80",
    "float_type": "write digits 0 to 9 without quotes or leading zeros, such as 0.5",
    "finite_number": "write it in digits, such as 0.5",
    "bool_type": "write true or false without quotes",
    "string_type": "put it in quotes",
}
"""Remedies by pydantic's error type. For other types, pydantic's own message names the valid values."""


def _got(value: object) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    shown = repr(value)
    return f" (got {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'})"


def _known_keys(path: yamllines.Path) -> list[str]:
    """Return the keys that the mapping at ``path`` may have, by the types of the models."""
    kind: Any = Config
    for step in path:
        if isinstance(step, int):
            kind = _item(kind)
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = next(field for key, field in _keys(kind) if key == step).annotation
        else:
            kind = get_type_hints(kind)[step]
        kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return sorted(key for key, _ in _keys(kind))
    return sorted(f.name for f in fields(kind)) if is_dataclass(kind) else []


def _keys(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Return the keys of a section, as written in the file, with their fields."""
    return ((field.alias or name, field) for name, field in model.model_fields.items())


def _item(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _plain(kind: Any) -> Any:
    """Return an optional type without None; another type unchanged."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(arm for arm in get_args(kind) if arm is not type(None))
    return kind
