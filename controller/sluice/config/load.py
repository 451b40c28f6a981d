"""Reading a configuration: every complaint names file, line, field, what is wrong and what to do about it."""

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

from . import yamlplace
from .check import findings
from .model import Config

DEFAULT_CONFIG = "sluice.yaml"
"""The file that commands read which are given none."""
_SHOWN = 60
"""Characters that are shown of a value."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with a configuration."""

    file: str
    line: int
    field: str
    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: "
        what = f"{self.field}: {self.problem}" if self.field else self.problem
        return place + what + (f"; {self.remedy}" if self.remedy else "")


class ConfigError(Exception):
    """A configuration that cannot be used; the text has a line per problem."""

    def __init__(self, complaints: list[Complaint]) -> None:
        super().__init__("\n".join(map(str, complaints)))
        self.complaints = complaints


def load(path: str | Path) -> Config:
    """Read and check a configuration file. Raises ConfigError, with every problem found."""
    return load_with_lines(path)[0]


def load_with_lines(path: str | Path) -> tuple[Config, dict[yamlplace.Path, int]]:
    """The same, and where everything stands in the file."""
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
    """Check the text of a configuration; ``name`` stands in the complaints. Raises ConfigError."""
    return _parsed(text, name)[0]


def _parsed(text: str, name: str) -> tuple[Config, dict[yamlplace.Path, int]]:
    try:
        document, lines = yamlplace.load(text)
    except yamlplace.YamlError as error:
        remedy = error.remedy or "see the YAML around this line"
        raise ConfigError([Complaint(name, error.line, "", error.problem, remedy)]) from error
    try:
        # By the strict rules for JSON no value is taken for one of another kind, such as a boolean for a number.
        config = Config.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        # pydantic calls a list empty when all of its items are wrong; those speak for themselves.
        real = [d for d in details if not (d["type"] == "too_short" and d.get("input"))]
        complaints = [_complaint(name, detail, lines) for detail in real]
        raise ConfigError(sorted(set(complaints), key=lambda c: (c.line, c.field, c.problem))) from error
    problems = [complaint_of(name, finding, lines) for finding in findings(config)]
    if problems:
        raise ConfigError(sorted(problems, key=lambda c: (c.line, c.field)))
    return config, lines


def complaint_of(name: str, finding: yamlplace.Finding, lines: dict[yamlplace.Path, int]) -> Complaint:
    """A finding with its place in the file."""
    path = finding.path
    return Complaint(name, yamlplace.line_of(path, lines), yamlplace.dotted(path), finding.problem, finding.remedy)


def _complaint(name: str, error: ErrorDetails, lines: dict[yamlplace.Path, int]) -> Complaint:
    path, given = error["loc"], error.get("input")
    line = yamlplace.line_of(path, lines)
    field = yamlplace.dotted(path)
    match error["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            known = _known_keys(path[:-1])
            near = difflib.get_close_matches(str(path[-1]), known, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
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
            remedy = remedy or (_NOTHING if given is None else _REMEDIES.get(kind, ""))
            return Complaint(name, line, field, f"{problem}{_got(given)}", remedy)


_NOTHING = "write its value behind the colon, or leave the key out"
_REMEDIES = {
    "int_type": "write digits 0 to 9 without quotes or leading zeros, such as 80",
    "float_type": "write digits 0 to 9 without quotes or leading zeros, such as 0.5",
    "finite_number": "write it in digits, such as 0.5",
    "bool_type": "write true or false without quotes",
    "string_type": "put it in quotes",
}
"""By pydantic's type of error. The words of others name what is taken."""


def _got(given: object) -> str:
    if given is None or isinstance(given, (dict, list)):
        return ""
    shown = repr(given)
    return f" (got {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'})"


def _known_keys(path: yamlplace.Path) -> list[str]:
    """The keys that the mapping at ``path`` may have, from the types of the models."""
    kind: Any = Config
    for part in path:
        if isinstance(part, int):
            kind = _item(kind)
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = next(field for key, field in _keys(kind) if key == part).annotation
        else:
            kind = get_type_hints(kind)[part]
        kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return sorted(key for key, _ in _keys(kind))
    return sorted(f.name for f in fields(kind)) if is_dataclass(kind) else []


def _keys(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """The keys of a section, as they are written."""
    return ((field.alias or name, field) for name, field in model.model_fields.items())


def _item(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _plain(kind: Any) -> Any:
    """Without None and Annotated."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(arm for arm in get_args(kind) if arm is not type(None))
    return kind
