"""Tests of `tools.rust_imports`: what counts as an import of a Rust file, and which circles are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.rust_imports import circles, crate_files, imports
from topo.testbed import REPOSITORY


def crate(folder: Path, files: dict[str, str]) -> Path:
    """Write a workspace with one crate of these files; return the crate's root file."""
    (folder / "Cargo.toml").write_text('[workspace]\nmembers = ["switch/engine"]\n')
    for name, text in files.items():
        path = folder / "switch/engine/src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "switch/engine/src/lib.rs"


def edges(folder: Path, files: dict[str, str]) -> set[tuple[str, str]]:
    """Return the imports as pairs of importing and imported module."""
    pairs = imports(crate_files(crate(folder, files)))
    return {("::".join(user), "::".join(used)) for user, used in pairs}


RING = "use crate::{next}::Item;\npub struct Own(Item);\npub struct Item;\n"


@pytest.mark.parametrize(("size", "status"), [(3, 0), (4, 1)])
def test_a_circle_of_four_files_is_refused_by_name(tmp_path: Path, size: int, status: int) -> None:
    names = ["program", "table", "layout", "native"][:size]
    files = {f"{name}.rs": RING.replace("{next}", names[(at + 1) % size]) for at, name in enumerate(names)}
    crate(tmp_path, {"lib.rs": "".join(f"mod {name};\n" for name in names), **files})
    command = [sys.executable, "-m", "tools.rust_imports", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    if status:
        listed = ", ".join(f"switch/engine/src/{name}.rs" for name in sorted(names))
        assert done.stdout.startswith(f"a circle of 4 files: {listed}\n")
        assert (
            "  switch/engine/src/native.rs imports of switch/engine/src/program.rs: crate::program::Item\n"
            in done.stdout
        )
    else:
        assert not done.stdout


def test_a_module_declaration_is_no_import(tmp_path: Path) -> None:
    files = {"lib.rs": "mod table;", "table/mod.rs": "mod key;\npub struct Table;", "table/key.rs": "use super::Table;"}
    assert edges(tmp_path, files) == {("table::key", "table")}


def test_a_re_exported_item_is_imported_of_the_file_that_defines_it(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod table;\nmod engine;\npub use table::Key;",
        "table.rs": "mod key;\npub use key::{Key, Mask as Bits};",
        "table/key.rs": "pub struct Key;\npub struct Mask;",
        "engine.rs": "use crate::table::{Bits, Key};",
    }
    assert edges(tmp_path, files) == {("engine", "table::key")}


def test_a_file_that_uses_what_it_re_exports_imports_it(tmp_path: Path) -> None:
    files = {"lib.rs": "mod key;\npub use key::Key;\npub struct Table(Key);", "key.rs": "pub struct Key;"}
    assert edges(tmp_path, files) == {("", "key")}


def test_paths_in_the_code_count(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod hash;\nmod table;\nmod bits;",
        "hash.rs": "pub fn mix() {}",
        "bits.rs": "pub fn load() {}",
        "table.rs": "use crate::bits;\nfn f() { crate::hash::mix(); bits::load(); }",
    }
    assert edges(tmp_path, files) == {("table", "hash"), ("table", "bits")}


def test_tests_comments_and_texts_do_not_count(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod hash;\nmod table;\n#[cfg(test)]\nmod random;",
        "hash.rs": "pub struct Hash;",
        "random.rs": "use crate::table::Table;",
        "table.rs": (
            '// crate::hash::Hash\npub struct Table;\nconst TEXT: &str = "crate::hash::Hash";\n'
            "#[cfg(test)]\nmod tests {\n    use crate::hash::Hash;\n}\n"
        ),
    }
    assert edges(tmp_path, files) == set()


def test_a_name_that_a_macro_defines_is_of_the_modules_own_file(tmp_path: Path) -> None:
    files = {"lib.rs": "mod ids;\nmod table;", "ids.rs": "ids! { TableId }", "table.rs": "use crate::ids::TableId;"}
    assert edges(tmp_path, files) == {("table", "ids")}


def test_only_files_that_import_each_other_are_in_a_circle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;",
        "a.rs": "use crate::b::B;\npub struct A;",
        "b.rs": "use crate::a::A;\npub struct B;",
        "c.rs": "use crate::a::A;",
    }
    parsed = crate_files(crate(tmp_path, files))
    assert circles(parsed, imports(parsed)) == [[("a",), ("b",)]]
