"""Compiles p4src/ with p4c and keeps the compiled program honest.

`build` compiles and writes p4src/build/manifest.json: p4c's version, and the SHA-256 of every source and artefact.
`check` fails when a source or an artefact is not what the manifest says, and compares with a fresh compile where p4c
is on PATH. p4c is not needed to use sluice: the compiled program is part of the repository.

The program is compiled three times: into p4src/build as it is; into p4src/build/large with the larger sizes of `LARGE`,
for a million connections and 10^5 routes; and into p4src/build/twin with the parts of Tofino's program in `TWIN`, which
must decide of every packet as v1model's own do.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
P4SRC = ROOT / "p4src"
BUILD = P4SRC / "build"
MANIFEST = BUILD / "manifest.json"
COMPILER = "p4c-bm2-ss"
MAIN = "p4src/v1model/main.p4"
# p4c warns of this for every v1model table with a selector, and --Wdisable does not silence it (p4c 1.2.5.16).
EXPECTED_WARNING = "Target does not support default_action for SluiceIngress.balance."
ARTEFACTS = ("sluice.json", "sluice.p4info.txtpb")
LARGE_BUILD = "large"
TWIN_BUILD = "twin"
BUILDS = ("", LARGE_BUILD, TWIN_BUILD)
LARGE = {
    "CONNECTION_SLOTS": 1 << 21,  # leaves at most 1.2 % of a million live connections unpinned
    "ROUTES": 1 << 17,
}
"""Constants of common/sizes.p4 in the large build. The type of a slot number follows CONNECTION_SLOTS."""

TWIN = {
    "front.p4": "twin/front.p4",
    **{f"externs/{name}.p4": f"twin/externs/{name}.p4" for name in ("lengths", "rewrite")},
    **{f"externs/{name}.p4": f"tna/externs/{name}.p4" for name in ("answers", "flow")},
}
"""Files of v1model/, and what the twin has in their place."""
TWIN_FLAGS = ("--Wdisable=unused",)
"""The judge stands for `addressed` and `validate`."""
TWIN_NEEDS = ("tna/findings.p4", "tna/judge.p4", "tna/externs/lengths.p4", "tna/externs/rewrite.p4")


class P4Error(Exception):
    """What is wrong, and what to do about it."""


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources(target: str = "v1model") -> dict[str, str]:
    """Hashes of all sources of a target's programs, by path from the repository's root."""
    folders = ("common", "stages", target)
    paths = {path for folder in folders for path in (P4SRC / folder).rglob("*.p4")}
    if target == "v1model":
        paths |= {P4SRC / name for name in (*TWIN.values(), *TWIN_NEEDS)}
    return {str(path.relative_to(ROOT)): sha256(path) for path in sorted(paths)}


def compiler() -> str:
    """Version of the p4c on PATH; P4Error where there is none."""
    if not shutil.which(COMPILER):
        raise P4Error(
            f"{COMPILER} is not on PATH. The compiled program is in p4src/build; p4c is needed only to change it "
            "(packages for Debian and Ubuntu: https://github.com/p4lang/p4c)"
        )
    done = subprocess.run([COMPILER, "--version"], check=True, capture_output=True, text=True)
    return next(line.split()[1] for line in (done.stdout + done.stderr).splitlines() if line.startswith("Version"))


def enlarge(root: Path) -> None:
    """Edits a copy of the sources: LARGE in place of the usual sizes. P4Error where a size is not found."""
    sizes, slots = root / "p4src/common/sizes.p4", root / "p4src/v1model/externs/pins.p4"
    slot_bits = (LARGE["CONNECTION_SLOTS"] - 1).bit_length()
    edits = [(sizes, rf"(const bit<32> {name}\s*= )\d+;", rf"\g<1>{size};") for name, size in LARGE.items()]
    edits.append((slots, r"typedef bit<\d+> pin_slot_t;", f"typedef bit<{slot_bits}> pin_slot_t;"))
    for path, pattern, replacement in edits:
        text, count = re.subn(pattern, replacement, path.read_text())
        if count != 1:
            raise P4Error(f"{path.relative_to(root)} has {count} places for {pattern}: correct LARGE in tools/p4.py")
        path.write_text(text)


def twin(root: Path) -> None:
    """Edits a copy of the sources: Tofino's parts in place of v1model's."""
    for name, other in TWIN.items():
        shutil.copyfile(root / "p4src" / other, root / "p4src/v1model" / name)


def compile_into(folder: Path) -> None:
    """Writes the artefacts of all builds into a folder. P4Error with p4c's own words when it refuses, or warns."""
    compile_one(ROOT, folder)
    for name, edit, flags in ((LARGE_BUILD, enlarge, ()), (TWIN_BUILD, twin, TWIN_FLAGS)):
        with tempfile.TemporaryDirectory() as copy:
            for path in sources():
                (Path(copy) / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, Path(copy) / path)
            edit(Path(copy))
            (folder / name).mkdir(exist_ok=True)
            compile_one(Path(copy), folder / name, *flags)


def compile_one(root: Path, folder: Path, *flags: str) -> None:
    """Compiles the sources below `root`."""
    program, p4info = (folder / name for name in ARTEFACTS)
    command = [COMPILER, "--std", "p4-16", *flags, "--p4runtime-files", str(p4info), "-o", str(program), MAIN]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "warning:" in line or "error:" in line]
    if done.returncode or any(EXPECTED_WARNING not in line for line in said):
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    # One object, one line order: p4c's own text, without the name of the folder it was asked to write to.
    program.write_text(json.dumps(json.loads(program.read_text()), indent=1) + "\n")


def hashes(folder: Path) -> dict[str, str]:
    """Hashes of the artefacts that are there, by path from the folder."""
    paths = (Path(build) / name for build in BUILDS for name in ARTEFACTS)
    return {str(path): sha256(folder / path) for path in paths if (folder / path).exists()}


def build() -> None:
    """Compiles, and records what was compiled from what."""
    version = compiler()
    compile_into(BUILD)
    manifest = {"p4c": version, "large": LARGE, "sources": sources(), "artefacts": hashes(BUILD)}
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")


def differences(recorded: dict[str, str], found: dict[str, str]) -> list[str]:
    """Paths that were added, removed or changed."""
    return sorted(path for path in recorded.keys() | found.keys() if recorded.get(path) != found.get(path))


def check() -> None:
    """P4Error when sources, artefacts and manifest disagree, or a fresh compile gives something else."""
    manifest = json.loads(MANIFEST.read_text())
    if changed := differences(manifest["sources"], sources()):
        raise P4Error(f"p4src/build is older than {', '.join(changed)}: run `make p4`")
    if manifest["large"] != LARGE:
        raise P4Error(f"p4src/build/{LARGE_BUILD} has other sizes than LARGE in tools/p4.py: run `make p4`")
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
    """Runs `build` or `check`, as the command line says; returns the exit status. A P4Error is told, not raised."""
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
