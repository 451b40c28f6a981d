"""YAML with places: a document and the line each of its values stands on."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, cast

import yaml

Path = tuple[str | int, ...]

_MOST_VALUES = 1_000_000
"""More than any configuration has: aliases of aliases can stand for more than memory holds."""
_MERGE = "tag:yaml.org,2002:merge"
"""The tag of the key ``<<``, which is no value: the mapping behind it is merged into the one around it."""
_UNREADABLE = (ValueError, KeyError, AttributeError, OverflowError)
"""What PyYAML lets through of values that are not what their tag or form says, such as the date 2024-13-45."""


class YamlError(Exception):
    """The text is no YAML, or has a key twice. ``line`` counts from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


def load(text: str) -> tuple[object, dict[Path, int]]:
    """Parse ``text``; returns the document and the line of every key and item by path.

    Raises YamlError for what is not YAML and for a key that is given twice in one mapping.
    """
    lines: dict[Path, int] = {}
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        raise YamlError(text.count("\n", 0, error.position) + 1, f"{error.reason} (U+{error.character:04X})") from error
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {(): 1}
        lines[()] = node.start_mark.line + 1
        for count, (path, line) in enumerate(_places(node, ())):
            if count >= _MOST_VALUES:
                raise YamlError(line, f"more than {_MOST_VALUES:,} values, counted through aliases")
            lines[path] = line
        for scalar in _scalars(node):
            _construct(loader, scalar)
        document = cast("object", loader.construct_document(node))
    except RecursionError as error:
        raise YamlError(1, "values within values, deeper than can be read (an alias within itself?)") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, error.problem or str(error)) from error
    except yaml.YAMLError as error:
        raise YamlError(1, str(error)) from error
    finally:
        cast("Any", loader).dispose()
    return document, lines


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Every scalar once, however often aliases name it."""
    seen: set[int] = set()
    open_nodes = [node]
    while open_nodes:
        one = open_nodes.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, yaml.ScalarNode):
            yield one
        elif isinstance(one, yaml.MappingNode):
            for key, value in one.value:
                open_nodes += [value] if key.tag == _MERGE else [key, value]
        elif isinstance(one, yaml.SequenceNode):
            open_nodes += one.value


def _construct(loader: yaml.SafeLoader, scalar: yaml.ScalarNode) -> None:
    try:
        cast("Any", loader).construct_object(scalar)
    except _UNREADABLE as error:
        kind = scalar.tag.rpartition(":")[2]
        shown = scalar.value if len(scalar.value) <= 40 else f"{scalar.value[:40]}..."
        raise YamlError(scalar.start_mark.line + 1, f"{shown!r} is not a valid {kind}") from error


def _places(node: yaml.Node, path: Path) -> Iterator[tuple[Path, int]]:
    """Every key and item below a node, with its line. What is merged (``<<``) comes before what takes its place."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[Hashable, int] = {}
        for merged in _merged(node):
            yield from _places(merged, path)
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in seen:
                raise YamlError(line, f"the key {name!r} is given twice (first on line {seen[name]})")
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
