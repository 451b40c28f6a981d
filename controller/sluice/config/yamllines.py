"""Parses YAML into a document and the line number of each of its values.

Values are those of JSON, by YAML 1.2's core schema (YAML 1.2.2, section 10.3.2), with decimal or 0x10-style integers.
Forms that only YAML 1.1 or only 1.2 would convert (yes, 010, 0o10, 1_000, 22:30, 2024-01-01) remain text, and tags are
refused.
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
    """A problem at a path of the document, and its remedy."""

    path: Path
    problem: str
    remedy: str


_MOST_VALUES = 1_000_000
"""The largest number of values after expansion of aliases: nested aliases could exhaust the memory."""
_DEEPEST = 100
"""The deepest nesting of values; no valid configuration needs more."""
_TOO_DEEP = "values within values, deeper than can be read (an alias within itself?)"
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
"""The tag of the key ``<<``, which merges the mapping in its value into the mapping that contains the key."""


class YamlError(Exception):
    """The text is not YAML, or contains what a configuration may not contain. ``line`` counts from 1; ``remedy`` may be
    empty."""

    def __init__(self, line: int, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem
        self.remedy = remedy


class _Loader(yaml.SafeLoader):
    """A loader that resolves unquoted values by ``_PLAIN``, and refuses tags and halves of surrogate pairs."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own form)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = cast("Any", self).peek_event()
        line = event.start_mark.line + 1
        if getattr(event, "tag", None) is not None:
            tag = event.tag.replace(_TAG, "!!")
            raise YamlError(line, f"the tag {tag} is not supported", "leave it out, and put text into quotes")
        if isinstance(event, yaml.ScalarEvent) and (surrogate := re.search("[\ud800-\udfff]", event.value)):
            raise YamlError(line, f"U+{ord(surrogate[0]):04X} is half of a surrogate pair", "write the whole character")
        return super().compose_node(parent, index)


_PLAIN = (
    ("null", r"(~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    ("int", r"[-+]?((0|[1-9][0-9]{0,99})|0x[0-9a-fA-F]{1,99})\Z", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", list("-+.0123456789")),
    ("float", r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z", list("-+.")),
    ("merge", r"<<\Z", ["<"]),
)
"""The types of unquoted values by pattern and first characters; all other values are text."""
for _kind, _form, _first in _PLAIN:
    cast("Any", _Loader).add_implicit_resolver(_TAG + _kind, re.compile(_form), _first)


def load(text: str) -> tuple[object, dict[Path, int]]:
    """Parse ``text``. Returns the document, and the line of every key and item by path.

    Raises YamlError for invalid YAML, tags, halves of surrogate pairs, keys that are not text, duplicate keys, and too
    many or too deeply nested values.
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
    """Yield the path and the line of every key and item below a node; ``path`` is the node's own. Keys that are merged
    by ``<<`` precede the keys that override them. Raises YamlError."""
    if len(path) > _DEEPEST:
        raise YamlError(node.start_mark.line + 1, _TOO_DEEP)
    if isinstance(node, yaml.MappingNode):
        lines: dict[Hashable, int] = {}
        for merged in _merged(node):
            yield from _places(merged, path)
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if key.tag != f"{_TAG}str":
                raise YamlError(line, "a key is not text", "write one of the known keys")
            name = str(key.value)
            if name in lines:
                raise YamlError(
                    line, f"the key {name!r} is given twice (first on line {lines[name]})", "keep one of the two"
                )
            lines[name] = line
            yield (*path, name), line
            yield from _places(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1
            yield from _places(value, (*path, index))


def _merged(node: yaml.MappingNode) -> list[yaml.Node]:
    """Return the mappings that are merged into a node, by ascending priority. The first mapping of a list has the
    highest priority, so it comes last."""
    mappings: list[yaml.Node] = []
    for key, value in node.value:
        if key.tag == _MERGE:
            mappings += reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]
    return mappings


def resolve(text: str, below: Path, lines: dict[Path, int]) -> Path:
    """Return the path of the value that the dotted ``text`` denotes within the value at the path ``below``. If the
    document lacks this value, return the path of the nearest enclosing value. A key may itself contain dots."""
    path, remainder = below, text
    while remainder:
        steps = [candidate[-1] for candidate in lines if len(candidate) == len(path) + 1 and candidate[:-1] == path]
        forms = {step: f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps}
        prefixed = remainder if remainder[0] in ".[" else f".{remainder}"
        fitting = [
            step
            for step, form in forms.items()
            if prefixed.startswith(form) and prefixed[len(form) : len(form) + 1] in ("", ".", "[")
        ]
        if not fitting:
            break
        step = max(fitting, key=lambda step: len(forms[step]))
        path, remainder = (*path, step), prefixed[len(forms[step]) :]
    return path


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """Return the line of ``path``, or of the nearest enclosing value; 1 if neither has a line."""
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def dotted(path: Path) -> str:
    """Return a path as text, such as ``services[0].servers[1].port``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
