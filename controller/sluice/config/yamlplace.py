"""YAML with places: a document and the line each of its values stands on.

Values are those of JSON, read by YAML 1.2's core schema (YAML 1.2.2, section 10.3.2), in decimal or as 0x10. What YAML
1.1 or 1.2 makes something else of (yes, 010, 0o10, 1_000, 22:30, 2024-01-01) is text, and a tag is refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import yaml

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at a path of the document."""

    path: Path
    problem: str
    remedy: str


_MOST_VALUES = 1_000_000
"""More than any configuration has: aliases of aliases can stand for more than memory holds."""
_DEEPEST = 100
"""Values within values, more than any configuration has."""
_TOO_DEEP = "values within values, deeper than can be read (an alias within itself?)"
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
"""The tag of the key ``<<``, which is no value: the mapping behind it is merged into the one around it."""


class YamlError(Exception):
    """The text is no YAML, or not what a configuration can have. ``line`` counts from 1; ``remedy`` may be empty."""

    def __init__(self, line: int, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem
        self.remedy = remedy


class _Loader(yaml.SafeLoader):
    """Plain values by ``_PLAIN``, and no tags."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own form)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = cast("Any", self).peek_event()
        line = event.start_mark.line + 1
        if getattr(event, "tag", None) is not None:
            tag = event.tag.replace(_TAG, "!!")
            raise YamlError(line, f"the tag {tag} is not taken", "leave it out, and put in quotes what is to be text")
        if isinstance(event, yaml.ScalarEvent) and (half := re.search("[\ud800-\udfff]", event.value)):
            raise YamlError(line, f"U+{ord(half[0]):04X} is no character", "write the whole character")
        return super().compose_node(parent, index)


_PLAIN = (
    ("null", r"(~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    ("int", r"[-+]?((0|[1-9][0-9]{0,99})|0x[0-9a-fA-F]{1,99})\Z", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", list("-+.0123456789")),
    ("float", r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z", list("-+.")),
    ("merge", r"<<\Z", ["<"]),
)
"""What a value without quotes is, by its form and first characters; all else is text."""
for _kind, _form, _first in _PLAIN:
    cast("Any", _Loader).add_implicit_resolver(_TAG + _kind, re.compile(_form), _first)


def load(text: str) -> tuple[object, dict[Path, int]]:
    """Parse ``text``; returns the document and the line of every key and item by path.

    Raises YamlError for what is not YAML, for tags, for keys that are no text, and for a key that is given twice.
    """
    lines: dict[Path, int] = {}
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        raise YamlError(
            text.count("\n", 0, error.position) + 1, f"{error.reason} (U+{error.character:04X})", "take it out"
        ) from error
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {(): 1}
        lines[()] = node.start_mark.line + 1
        for count, (path, line) in enumerate(_places(node, ())):
            if count >= _MOST_VALUES:
                raise YamlError(line, f"more than {_MOST_VALUES:,} values, counted through aliases", "write fewer")
            lines[path] = line
        document = cast("object", loader.construct_document(node))
    except RecursionError as error:
        raise YamlError(1, _TOO_DEEP) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, error.problem or str(error)) from error
    except yaml.YAMLError as error:
        raise YamlError(1, str(error)) from error
    finally:
        cast("Any", loader).dispose()
    return document, lines


def _places(node: yaml.Node, path: Path) -> Iterator[tuple[Path, int]]:
    """Every key and item below a node, with its line. What is merged (``<<``) comes before what takes its place."""
    if len(path) > _DEEPEST:
        raise YamlError(node.start_mark.line + 1, _TOO_DEEP)
    if isinstance(node, yaml.MappingNode):
        seen: dict[Hashable, int] = {}
        for merged in _merged(node):
            yield from _places(merged, path)
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if key.tag != f"{_TAG}str":
                raise YamlError(line, "a key that is no word", "write one of the known keys")
            name = str(key.value)
            if name in seen:
                raise YamlError(
                    line, f"the key {name!r} is given twice (first on line {seen[name]})", "keep one of the two"
                )
            seen[name] = line
            yield (*path, name), line
            yield from _places(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1
            yield from _places(value, (*path, index))


def _merged(node: yaml.MappingNode) -> list[yaml.Node]:
    """The mappings that are merged into one. Of several that have a key the first counts: it is the last here."""
    found: list[yaml.Node] = []
    for key, value in node.value:
        if key.tag == _MERGE:
            found += reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]
    return found


def resolve(text: str, below: Path, lines: dict[Path, int]) -> Path:
    """The path that is written as in ``dotted``, as far as the document has it. Keys may have dots of their own."""
    path, rest = below, text
    while rest:
        steps = [known[-1] for known in lines if len(known) == len(path) + 1 and known[:-1] == path]
        forms = {step: f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps}
        whole = rest if rest[0] in ".[" else f".{rest}"
        fitting = [
            step
            for step, form in forms.items()
            if whole.startswith(form) and whole[len(form) : len(form) + 1] in ("", ".", "[")
        ]
        if not fitting:
            break
        step = max(fitting, key=lambda one: len(forms[one]))
        path, rest = (*path, step), whole[len(forms[step]) :]
    return path


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of ``path``, or of the nearest thing around it."""
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def dotted(path: Path) -> str:
    """``services[0].servers[1].port``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
