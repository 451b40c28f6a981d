"""Results on disk: every run of an experiment in one JSON file, written after each, so that it can be resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment, Point, Record
from experiments.machine import Machine, this_machine


class StoreError(Exception):
    """A file of results that cannot be read; says what to do."""


def without_nan(value: Any) -> Any:
    """Return a value with None for every number that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(one) for one in value]
    return value


class Store:
    """`results/experiments/<name>/runs.json`."""

    def __init__(self, root: Path, name: str) -> None:
        self.directory = root / name
        self.file = self.directory / "runs.json"
        self._records: dict[str, Record] = {}
        self._machine: Machine | None = None
        if self.file.exists():
            self._read()

    @property
    def machine(self) -> Machine:
        """The machine of the runs; this one while there is none."""
        return self._machine or this_machine()

    @property
    def note(self) -> str:
        """What somebody wrote of the runs into `note.txt` beside them: what the records do not tell; "" if nothing."""
        file = self.directory / "note.txt"
        return " ".join(file.read_text().split()) if file.exists() else ""

    def has(self, point: Point) -> bool:
        """Say whether a point was measured, with these parameters."""
        known = self._records.get(point.key)
        return known is not None and known.parameters == without_nan(point.parameters)

    def add(self, record: Record) -> None:
        """Keep a record, at once: an interrupt later does not lose it."""
        self._records[record.key] = Record(
            **{**{one.name: getattr(record, one.name) for one in fields(Record)}, "result": without_nan(record.result)}
        )
        self._machine = this_machine()
        self.directory.mkdir(parents=True, exist_ok=True)
        content = {"machine": asdict(self._machine), "runs": [asdict(one) for one in self._records.values()]}
        unfinished = self.file.with_suffix(".part")
        unfinished.write_text(json.dumps(without_nan(content), indent=1) + "\n")
        unfinished.replace(self.file)

    def forget(self) -> None:
        """Measure everything again."""
        self._records.clear()

    def of(self, points: Sequence[Point]) -> list[Record]:
        """Return the records of those points that were measured, in their order."""
        return [self._records[point.key] for point in points if self.has(point)]

    def known(self, experiment: Experiment) -> tuple[str, list[Record]]:
        """Return which form was run (full, quick, or how much of it), and its records."""
        for form, quick in (("full", False), ("quick", True)):
            points = experiment.points(quick)
            records = self.of(points)
            if points and len(records) == len(points):
                return form, records
        forms = {form: experiment.points(quick) for form, quick in (("full", False), ("quick", True))}
        form, points = max(forms.items(), key=lambda one: len(self.of(one[1])))
        records = self.of(points)
        return f"{form} form, {len(records)} of {len(points)} runs", records

    def _read(self) -> None:
        try:
            content = json.loads(self.file.read_text())
            self._machine = Machine(**content["machine"])
            self._records = {one["key"]: Record(**one) for one in content["runs"]}
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.file}: {error!r}; move it away to measure again") from error
