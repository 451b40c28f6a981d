"""Results on disk: a JSON file for each experiment contains all of its runs. The file is written after each run, so
that an interrupted experiment can be resumed."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment, Point, Record
from experiments.machine import Machine, this_machine


class StoreError(Exception):
    """Raised if results cannot be read or written; the message states the remedy."""


def without_nan(value: Any) -> Any:
    """Return a copy of a value with None in place of NaN and infinities, which JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return value


def put(file: Path, content: bytes) -> None:
    """Replace a file's content atomically.

    Raises StoreError if the file cannot be written.
    """
    unfinished = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        unfinished.replace(file)
    except OSError as error:
        raise StoreError(
            f"{unfinished}: {error.strerror}: make room or allow it, and run this again; what was measured before is "
            "kept"
        ) from error


class Store:
    """The stored runs of an experiment, in `results/experiments/<name>/runs.json`."""

    def __init__(self, root: Path, name: str) -> None:
        self.directory = root / name
        self.file = self.directory / "runs.json"
        self._records: dict[str, Record] = {}
        self._machines: dict[str, Machine] = {}
        """The machine on which each record was made, by the record's key."""
        self._note = ""
        self._read()

    def machines(self, records: Sequence[Record]) -> list[Machine]:
        """Return the machines on which the records were made, in the order of the records; without records, the present
        machine."""
        return list(dict.fromkeys(self._machines[record.key] for record in records)) or [this_machine()]

    @property
    def note(self) -> str:
        """Return the hand-written remark on the runs from the file `note.txt` beside them; if the file does not exist,
        return the note in the store's file."""
        file = self.directory / "note.txt"
        return " ".join(file.read_text().split()) if file.exists() else self._note

    def has(self, point: Point) -> bool:
        """Return whether the store has a record of the point with the same parameters."""
        known = self._records.get(point.key)
        return known is not None and known.parameters == without_nan(point.parameters)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Lock the store against other processes until the context ends, and read its content again, because another
        process may have changed it before.

        Raises StoreError if another process holds the lock.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.directory, os.O_RDONLY)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    f"another run writes into {self.directory}: wait for it, or give another --output"
                ) from None
            self._read()
            yield
        finally:
            os.close(lock)

    def add(self, record: Record) -> None:
        """Add a record, which replaces a record with the same key, and write the file immediately.

        Raises StoreError if the file cannot be written. The caller must hold the lock of `alone`.
        """
        self._records[record.key] = Record(**without_nan(_content(record)))
        self._machines[record.key] = this_machine()
        put(self.file, self.text(self._note).encode())

    def text(self, note: str) -> str:
        """Return the content of the store's file, with a note at its head.

        The head also contains the machine of the first run. The record of a run on another machine contains
        that machine.
        """
        usual = next(iter(self._machines.values()), this_machine())
        own = {key: {"machine": asdict(machine)} for key, machine in self._machines.items() if machine != usual}
        runs = ",\n".join(json.dumps(_content(record) | own.get(record.key, {})) for record in self._records.values())
        head = f'"machine": {json.dumps(asdict(usual))}, "note": {json.dumps(note)}'
        return f'{{{head}, "runs": [\n{runs}\n]}}\n'

    def of(self, points: Sequence[Point]) -> list[Record]:
        """Return the records of the points that were measured, in the order of the points."""
        return [self._records[point.key] for point in points if self.has(point)]

    def known(self, experiment: Experiment) -> tuple[str, list[Record]]:
        """Return the name of the form that was run (full, quick, or a part of one), and its records."""
        for form, quick in (("full", False), ("quick", True)):
            points = experiment.points(quick)
            records = self.of(points)
            if points and len(records) == len(points):
                return form, records
        forms = {form: experiment.points(quick) for form, quick in (("full", False), ("quick", True))}
        form, points = max(forms.items(), key=lambda entry: len(self.of(entry[1])))
        records = self.of(points)
        return f"{form} form, {len(records)} of {len(points)} runs", records

    def _read(self) -> None:
        if not self.file.exists():
            return
        try:
            content = json.loads(self.file.read_text())
            self._note = str(content.get("note", ""))
            self._machines = {run["key"]: Machine(**run.pop("machine", content["machine"])) for run in content["runs"]}
            self._records = {run["key"]: _record(run) for run in content["runs"]}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"  # not repr(error), which can contain the whole file
            raise StoreError(f"{self.file}: {said}; move it away to measure again") from error


def _content(record: Record) -> dict[str, Any]:
    return {attribute.name: getattr(record, attribute.name) for attribute in fields(Record)}


def _record(content: Mapping[str, Any]) -> Record:
    """Return a record from its stored form.

    For runs that were only read from disk, old versions stored the time of reading as `began`, and the load average and
    the commit of that time. Here `began` is set to the begin of the run, and the other two values are removed.
    """
    record = Record(**content)
    made_s: float = record.result.get("made_s", record.began)
    return replace(record, began=made_s, load=None, program="") if made_s < record.began else record
