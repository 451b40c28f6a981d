"""Compiles p4src/ with p4c, and checks that the compiled program belongs to the sources.

`build` compiles the program and writes p4src/build/manifest.json: p4c's version, and the SHA-256 of every source and
artefact. `check` fails if a source or an artefact differs from the manifest; if p4c of the manifest's version is on
PATH, it also compares the artefacts with those of a fresh compilation. The use of sluice does not require p4c, because
the compiled program is part of the repository.

The program is compiled three times: into p4src/build without changes; into p4src/build/large with larger sizes, for a
million connections and 10^5 routes; and into p4src/build/twin with those parts of Tofino's program that v1model can
run. The twin must treat every packet exactly as v1model's own program does.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
P4SRC = ROOT / "p4src"
BUILD = P4SRC / "build"
MANIFEST = BUILD / "manifest.json"
COMPILER = "p4c-bm2-ss"
# p4c prints this warning for every v1model table with a selector, and --Wdisable does not suppress it (p4c 1.2.5.16).
EXPECTED_WARNING = "Target does not support default_action for .SluiceIngress.balance."
ARTEFACTS = ("sluice.json", "sluice.p4info.txtpb")


@dataclass(frozen=True)
class Build:
    """A variant of the program: its main file is the first `file` that exists in `folders` of p4src."""

    folders: tuple[str, ...]
    flags: tuple[str, ...] = ()
    file: str = "main.p4"

    @property
    def main(self) -> str:
        """The path of the main file, relative to the repository's root."""
        folder = next((folder for folder in self.folders if (P4SRC / folder / self.file).exists()), self.folders[-1])
        return f"p4src/{folder}/{self.file}"

    @property
    def arguments(self) -> list[str]:
        """The arguments for every p4c front end: standard, include folders, defines and main file."""
        return ["--std", "p4-16", *(f"-Ip4src/{folder}" for folder in self.folders), *self.flags, self.main]


BUILDS = {
    "": Build(("v1model",)),
    "large": Build(("v1model",), ("-DLARGE",)),
    # The warning is about unused controls: the judge's table replaces the controls `addressed` and `validate`.
    "twin": Build(("twin", "v1model"), ("--Wdisable=unused", "-DTWIN")),
}
"""The variants of v1model's program, by folder below p4src/build."""
TOFINO_BUILDS = {
    "tofino": Build(("tna",), ("-DTOFINO", "-D__TARGET_TOFINO__=1")),
    "tofino2": Build(("tna2", "tna"), ("-DTOFINO", "-DTOFINO2", "-D__TARGET_TOFINO__=2", "-DCONTENT", "-DRESOURCES")),
}
"""The variants for p4c's Tofino back end (tools/p4_tofino.py), by folder below p4src/build."""

INCLUDE = re.compile(r'^#include (?:"(.+)"|<(.+)>)$', re.MULTILINE)
STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


class P4Error(Exception):
    """A failed build or check; the message states the problem and the remedy."""


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def code_sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a source without comments and blank lines; runs of spaces count as one
    space."""
    code = STRING_OR_COMMENT.sub(lambda match: match[1] or "", path.read_text())
    lines = [" ".join(line.split()) for line in code.splitlines()]
    return hashlib.sha256("\n".join(line for line in lines if line).encode()).hexdigest()


def files(build: Build, path: Path) -> Iterator[Path]:
    """Yield a file and all files that it includes, once per inclusion; the compiler's own files are left out."""
    yield path
    for beside, named in INCLUDE.findall(path.read_text()):
        places = [path.parent / beside] if beside else [P4SRC / folder / named for folder in build.folders]
        for place in [place for place in places if place.exists()][:1]:
            yield from files(build, place.resolve())


def sources(*builds: Build, hashed: Callable[[Path], str] = sha256) -> dict[str, str]:
    """Return the hashes of all sources of the builds, by path relative to the repository's root."""
    paths = {path for build in builds for path in files(build, ROOT / build.main)}
    return {str(path.relative_to(ROOT)): hashed(path) for path in sorted(paths)}


def compiler() -> str:
    """Return the version of the p4c on PATH. Raises P4Error if there is no p4c."""
    if not shutil.which(COMPILER):
        raise P4Error(
            f"{COMPILER} is not on PATH. The compiled program is in p4src/build; p4c is needed only to change it "
            "(packages for Debian and Ubuntu: https://github.com/p4lang/p4c)"
        )
    done = subprocess.run([COMPILER, "--version"], check=True, capture_output=True, text=True)
    return next(line.split()[1] for line in (done.stdout + done.stderr).splitlines() if line.startswith("Version"))


def compile_into(folder: Path) -> None:
    """Write the artefacts of all builds into a folder. Raises P4Error with p4c's output on an error, or on a warning
    other than EXPECTED_WARNING."""
    for name, build in BUILDS.items():
        (folder / name).mkdir(exist_ok=True)
        compile_one(build, folder / name)


def compile_one(build: Build, folder: Path) -> None:
    """Write the artefacts of a build into a folder. Raises P4Error with p4c's output on an error, or on a warning other
    than EXPECTED_WARNING."""
    program, p4info = (folder / name for name in ARTEFACTS)
    command = [COMPILER, "--p4runtime-files", str(p4info), "-o", str(program), *build.arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "warning:" in line or "error:" in line]
    if done.returncode or any(EXPECTED_WARNING not in line for line in said):
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    # The layout of the JSON is normalised, so that equal programs yield equal files.
    program.write_text(json.dumps(json.loads(program.read_text()), indent=1) + "\n")


def hashes(folder: Path) -> dict[str, str]:
    """Return the hashes of the artefacts that exist, by path relative to the folder."""
    paths = (Path(build) / name for build in BUILDS for name in ARTEFACTS)
    return {str(path): sha256(folder / path) for path in paths if (folder / path).exists()}


def build() -> None:
    """Compile all builds, and write the manifest with the hashes of sources and artefacts."""
    version = compiler()
    compile_into(BUILD)
    manifest = {"p4c": version, "sources": sources(*BUILDS.values()), "artefacts": hashes(BUILD)}
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")


def differences(recorded: dict[str, str], current: dict[str, str]) -> list[str]:
    """Return the sorted paths that were added, removed or changed."""
    return sorted(path for path in recorded.keys() | current.keys() if recorded.get(path) != current.get(path))


def check() -> None:
    """Raise P4Error if sources or artefacts differ from the manifest, or a fresh compilation yields other artefacts.
    The program is only compiled if p4c of the manifest's version is on PATH."""
    manifest = json.loads(MANIFEST.read_text())
    if changed := differences(manifest["sources"], sources(*BUILDS.values())):
        raise P4Error(f"p4src/build is older than {', '.join(changed)}: run `make p4`")
    if changed := differences(manifest["artefacts"], hashes(BUILD)):
        raise P4Error(f"edited by hand, or missing: p4src/build/{', '.join(changed)}: run `make p4`")

    try:
        version = compiler()
    except P4Error:
        print("p4-check: hashes agree (no p4c on PATH: not compiled afresh)")
        return
    if version != manifest["p4c"]:
        print(f"p4-check: hashes agree (p4c {version} here, {manifest['p4c']} made the artefacts: not compared)")
        return
    with tempfile.TemporaryDirectory() as folder:
        compile_into(Path(folder))
        fresh = hashes(Path(folder))
    if changed := differences(manifest["artefacts"], fresh):
        raise P4Error(f"a fresh compile gives another {', '.join(changed)}: run `make p4`")
    print(f"p4-check: hashes agree, and p4c {version} compiles the same again")


def run_command(description: str, build: Callable[[], None], check: Callable[[], None]) -> int:
    """Run `build` or `check` as the command line demands; return the exit status. A P4Error is printed, not raised."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("command", choices=["build", "check"])
    command = parser.parse_args().command
    try:
        build() if command == "build" else check()
    except P4Error as error:
        print(f"p4: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_command("Compiles p4src/ and checks what was compiled.", build, check))
