"""Refuses circles of imports among the Rust files of a crate: `python -m tools.rust_imports .`, in `make lint`.

Files form a circle if each of them imports all others, directly or through other files of the circle: a circle is a
strongly connected component of the graph of imports. A circle may have up to `LARGEST` files. For a larger circle the
tool prints the files and the imports, and exits with status 1. It reads `src/lib.rs` and `src/main.rs` of every member
of the workspace in the given folder, each with the files that belong to it.

An import of a file is a path, in a `use` declaration or elsewhere in the code, to an item that the file defines. Paths
begin with `crate`, `super`, `self`, a child module, or a module that the file has in scope by `use`.

- `mod child;` is not an import: it only states where the child's file is. Only files that are reached by such
  declarations are read.
- A path to an item that a module only re-exports (`pub use child::Item`), or only has in scope, is an import of the
  file that defines the item. A re-export is not an import by the re-exporting file, unless that file uses the name
  elsewhere.
- `use path::module` alone is not an import either; the paths that begin with `module::` are.
- `use path::*`, and a name that no line defines (because a macro defines it), is an import of the module's own file.
- Everything under `#[cfg(test)]`, other crates, and methods, which need no path, are ignored.

cargo-modules and cargo-cycles refuse every circle, even of two files, and have no option for a limit.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

LARGEST = 3
"""The largest number of files that may form a circle."""

Names = tuple[str, ...]

COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*'|\\''|[^\\']')""",
    re.DOTALL,
)
TEST_ONLY = re.compile(r"#\[cfg\(test\)\]")
MODULE_FILE = re.compile(r"\bmod\s+(\w+)\s*;")
USE = re.compile(r"\b(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);")
DEFINITION = re.compile(r"\b(?:struct|enum|union|fn|trait|type|const|static|mod|macro_rules!)\s+(?:mut\s+)?(\w+)")
PATH = re.compile(r"(?<![\w:])\$?(\w+(?:::\w+)+)")


@dataclass
class File:
    """One file of a crate, which is a module, with the names in its scope."""

    path: Path
    module: Names
    children: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])
    scope: dict[str, Names] = field(default_factory=dict[str, Names])
    """The paths that `use` declarations bring into scope, by the name that each path gets."""
    globs: list[Names] = field(default_factory=list[Names])
    paths: list[Names] = field(default_factory=list[Names])
    """Paths that may be imports: first the paths of `use` declarations, then those in the code."""


def item_end(text: str, start: int) -> int:
    """Return the position after the item that begins at `start`, that is, after its semicolon or closing brace."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0 and text[at] in ";}":
            return at + 1
    return len(text)


def without_tests(text: str) -> str:
    """Return the code without comments, literals and everything under `#[cfg(test)]`."""
    text = COMMENT_OR_LITERAL.sub(" 0 ", text)
    while attribute := TEST_ONLY.search(text):
        text = text[: attribute.start()] + text[item_end(text, attribute.end()) :]
    return text


def top_level(text: str) -> str:
    """Return the code outside of all braces."""
    depth, outside = 0, list[str]()
    for piece in re.split(r"([{}])", text):
        depth += (piece == "{") - (piece == "}")
        outside.append(piece if depth == 0 else " ")
    return "".join(outside)


def use_tree(tree: str, prefix: Names = ()) -> Iterator[tuple[Names, str]]:
    """Yield each path of a `use` declaration with its name: `a::{b, c as d}` yields `a::b` as b, and `a::c` as d."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        prefix += tuple(name.strip() for name in head.split("::") if name.strip())
        depth, start = 0, 0
        rest = rest[: rest.rindex("}")] + ","
        for at, letter in enumerate(rest):
            depth += (letter == "{") - (letter == "}")
            if letter == "," and depth == 0:
                if rest[start:at].strip():
                    yield from use_tree(rest[start:at], prefix)
                start = at + 1
        return
    path, _, alias = (side.strip() for side in tree.partition(" as "))
    names = prefix + tuple(name.strip() for name in path.split("::") if name.strip())
    if names[-1] == "self":
        names = names[:-1]
    yield names, alias or names[-1]


def parse(path: Path, module: Names) -> File:
    """Return the names and paths of a file."""
    file, text = File(path, module), without_tests(path.read_text())
    code = USE.sub(" ", text)
    file.children = set(MODULE_FILE.findall(code))
    file.defined = set(DEFINITION.findall(top_level(code))) - file.children
    for use in USE.finditer(text):
        for names, name in use_tree(use["tree"]):
            if names[-1] == "*":
                file.globs.append(names[:-1])
            else:
                file.scope.setdefault(name, names)
            if not use["public"] or re.search(rf"\b{re.escape(name)}\b", code):
                file.paths.append(names)
    file.paths += [tuple(path.split("::")) for path in PATH.findall(code)]
    return file


def crate_files(root: Path) -> dict[Names, File]:
    """Return the files of a crate by module, found by the `mod` declarations from the root file on."""
    files, todo = dict[Names, File](), [(root, Names())]
    while todo:
        path, module = todo.pop()
        files[module] = file = parse(path, module)
        folder = path.parent if path.stem in ("lib", "main", "mod") else path.with_suffix("")
        for child in sorted(file.children):
            places = [folder / f"{child}.rs", folder / child / "mod.rs"]
            todo += [(place, (*module, child)) for place in places if place.is_file()]
    return files


def definer(
    files: dict[Names, File], module: Names, names: Names, seen: frozenset[tuple[Names, Names]]
) -> Names | None:
    """Return the module whose file defines the item that a path names; None for other crates and bare modules."""
    if (module, names) in seen:
        return None
    seen |= {(module, names)}
    here, at = module, 0
    while at < len(names):
        name, file = names[at], files[here]
        if name == "crate" and at == 0:
            here = ()
        elif name == "super":
            here = here[:-1]
        elif name in file.children:
            here = (*here, name)
        elif name in file.defined or (name == "*" and at > 0):
            return here
        elif name != "self":
            if name in file.scope:
                return definer(files, here, file.scope[name] + names[at + 1 :], seen)
            if at == 0:
                return None
            targets = (definer(files, here, (*glob, *names[at:]), seen) for glob in file.globs)
            return next((target for target in targets if target is not None), here)
        at += 1
    return None


def imports(files: dict[Names, File]) -> dict[tuple[Names, Names], set[str]]:
    """Return, for each pair of modules, the items that the first module imports from the second."""
    edges = defaultdict[tuple[Names, Names], set[str]](set)
    for module, file in files.items():
        for names in file.paths:
            target = definer(files, module, names, frozenset())
            if target is not None and target != module:
                edges[module, target].add("::".join(names))
    return edges


def circles(files: dict[Names, File], edges: dict[tuple[Names, Names], set[str]]) -> list[list[Names]]:
    """Return the circles of imports, largest first."""
    number = {module: at for at, module in enumerate(files)}
    ends = [[number[pair[side]] for pair in edges] for side in (0, 1)]
    graph = coo_array(([1] * len(edges), ends), shape=(len(files), len(files)))
    _, labels = connected_components(graph, connection="strong")
    groups = defaultdict[int, list[Names]](list)
    for module, label in zip(files, labels, strict=True):
        groups[int(label)].append(module)
    return sorted((sorted(group) for group in groups.values() if len(group) > 1), key=len, reverse=True)


def root_files(folder: Path) -> list[Path]:
    """Return the root files of the crates that the workspace's Cargo.toml lists as members."""
    members = tomllib.loads((folder / "Cargo.toml").read_text())["workspace"]["members"]
    paths = (folder / member / "src" / f"{name}.rs" for member in members for name in ("lib", "main"))
    return sorted(path for path in paths if path.is_file())


def report(folder: Path, everything: bool = False) -> tuple[list[str], int]:
    """Return lines about the circles that are too large (or, with `everything`, all circles) and their imports, and the
    number of circles that are too large."""
    lines, refused = list[str](), 0
    for root in root_files(folder):
        files = crate_files(root)
        edges = imports(files)
        names = {module: str(file.path.relative_to(folder)) for module, file in files.items()}
        for circle in circles(files, edges):
            refused += len(circle) > LARGEST
            if len(circle) > LARGEST or everything:
                lines.append(f"a circle of {len(circle)} files: {', '.join(names[module] for module in circle)}")
                inside = ((pair, items) for pair, items in sorted(edges.items()) if set(pair) <= set(circle))
                lines += [f"  {names[a]} imports of {names[b]}: {', '.join(sorted(items))}" for (a, b), items in inside]
    return lines, refused


def main() -> None:
    """Print the report; exit with status 1 if a circle is too large."""
    parser = argparse.ArgumentParser(description="Refuse circles of imports among the Rust files of a crate.")
    parser.add_argument("folder", type=Path, help="the folder of the workspace's Cargo.toml")
    parser.add_argument("--all", action="store_true", help=f"print circles of up to {LARGEST} files too")
    options = parser.parse_args()
    lines, refused = report(options.folder, options.all)
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(refused > 0)


if __name__ == "__main__":
    main()
