"""Checks that `python -m tools.language` counts uses of words and names, fails if there are more
than tools/language.toml allows, and lowers the numbers in that file."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from topo.testbed import REPOSITORY

HEAD = "# Only to fall.\n\n"

FILES = {
    "a.py": '"""Told once."""\n\none = "told told"  # told twice\nx = y.one(one=1)\n\n\ndef f(one: int): ...\n',
    "a.rs": '/// Told here.\nfn f(one: u8) -> u8 {\n    let text = "told";\n    self.one + one(text) + one\n}\n',
    "a.p4": "// told\ncontrol c(inout bit<8> one) { apply { one = m.one; } }\n",
    "a.md": "# Told\n\nIt is told `told`.\n\n```\ntold\n```\n",
    "CHANGELOG.md": "told\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def allow(checkout: Path, word_count: int, name_count: int) -> Path:
    """Write the file of counts and return it. It allows `word_count` uses of the word and `name_count` of the name that
    FILES contain."""
    counts = checkout / "tools/language.toml"
    counts.parent.mkdir(exist_ok=True)
    counts.write_text(f"{HEAD}[words]\ntold = {word_count}\n\n[names]\none = {name_count}\n")
    return counts


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.language", "--root", str(checkout), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_comments_documents_and_names_are_counted_but_no_strings_and_calls(checkout: Path) -> None:
    allow(checkout, 0, 0)
    word_places, name_places = (
        run(checkout, "--list", "told").stdout.split(),
        run(checkout, "--list", "`one`").stdout.split(),
    )
    assert word_places == ["a.md:1", "a.md:3", "a.p4:1", "a.py:1", "a.py:3", "a.rs:1"]
    assert name_places == ["a.p4:2", "a.p4:2", "a.py:3", "a.py:7", "a.rs:2", "a.rs:4"]


def test_a_new_use_is_refused_with_its_place(checkout: Path) -> None:
    allow(checkout, 6, 5)
    done = run(checkout)
    assert done.returncode == 1
    assert "`one`: 6 uses, 5 allowed" in done.stderr
    assert "a.rs:4" in done.stderr


def test_fewer_uses_are_to_be_written_down(checkout: Path) -> None:
    counts = allow(checkout, 7, 6)
    done = run(checkout)
    assert done.returncode == 1
    assert "told: 6 uses are left of 7" in done.stderr
    assert run(checkout, "--write").returncode == 0
    assert counts.read_text() == f"{HEAD}[words]\ntold = 6\n\n[names]\none = 6\n"
    assert run(checkout).returncode == 0


def test_writing_raises_no_count(checkout: Path) -> None:
    counts = allow(checkout, 6, 2)
    assert run(checkout, "--write").returncode == 1
    assert counts.read_text() == f"{HEAD}[words]\ntold = 6\n\n[names]\none = 2\n"


def except_(counts: Path, path: str, term: str, reason: str) -> str:
    """Add an exception to the file of counts: uses of `term` in the file `path` are not counted. Return its text."""
    exception = f'\n[[exceptions]]\npath = "{path}"\nterm = "{term}"\nreason = "{reason}"\n'
    counts.write_text(counts.read_text() + exception)
    return exception


def test_an_exception_is_not_counted_and_stays(checkout: Path) -> None:
    counts = allow(checkout, 6, 6)
    exceptions = except_(counts, "a.md", "told", "A title.") + except_(counts, "a.rs", "`one`", "A field of P4Info.")
    assert "a.md" not in run(checkout, "--list", "told").stdout
    assert "a.rs:1\n" in run(checkout, "--list", "told").stdout
    assert run(checkout, "--write").returncode == 0
    assert counts.read_text() == f"{HEAD}[words]\ntold = 4\n\n[names]\none = 4\n{exceptions}"
    assert run(checkout).returncode == 0


@pytest.mark.parametrize(
    ("path", "term", "reason", "complaint"),
    [
        ("a.md", "told", "", "an exception has a path, a term and a reason"),
        ("a.md", "`one`", "A title.", "these exceptions except nothing: [('a.md', '`one`')]"),
    ],
)
def test_an_exception_without_reason_or_use_is_refused(
    checkout: Path, path: str, term: str, reason: str, complaint: str
) -> None:
    except_(allow(checkout, 6, 6), path, term, reason)
    done = run(checkout)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_a_reader_that_ends_early_ends_the_list_silently(checkout: Path) -> None:
    """The list exceeds the capacity of a pipe, so that the program writes after its reader has closed the pipe."""
    allow(checkout, 6, 6)
    (checkout / "a.md").write_text("told\n" * 20_000)
    command = [sys.executable, "-m", "tools.language", "--root", str(checkout), "--list", "told"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", -signal.SIGPIPE)


def test_equal_seeds_give_equal_samples(checkout: Path) -> None:
    allow(checkout, 6, 6)
    samples = [run(checkout, "--sample", "2", "--seed", seed).stdout for seed in ("a", "a", "b", "c", "d")]
    assert samples[0] == samples[1]
    assert len(set(samples)) > 1
