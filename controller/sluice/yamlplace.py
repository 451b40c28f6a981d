"""YAML with places: a document and the line each of its values stands on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import yaml

Path = tuple[str | int, ...]


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
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {(): 1}
        _walk(node, (), lines)
        document = cast("object", loader.construct_document(node))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, error.problem or str(error)) from error
    except yaml.YAMLError as error:
        raise YamlError(1, str(error)) from error
    finally:
        cast("Any", loader).dispose()
    return document, lines


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: dict[Hashable, int] = {}
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in seen:
                raise YamlError(line, f"the key {name!r} is given twice (first on line {seen[name]})")
            seen[name] = line
            lines[(*path, name)] = line
            _walk(value, (*path, name), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*path, index)] = value.start_mark.line + 1
            _walk(value, (*path, index), lines)


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
