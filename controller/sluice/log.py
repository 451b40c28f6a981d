"""Structured logs: one line per event, with time, level, switch and task, as key=value or as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

switch_name: ContextVar[str] = ContextVar("switch_name", default="-")
"""The address of the switch that the running task controls."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def logger(name: str) -> logging.Logger:
    """Return the logger of a part of the controller. Callers of the logger pass the fields of an event with
    ``extra``."""
    return logging.getLogger(f"sluice.{name}")


def _task() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return "main"
    return task.get_name() if task is not None else "loop"


class _Formatter(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {
            "time": when.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "switch": switch_name.get(),
            "task": _task(),
            "event": record.getMessage(),
        }
        fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if self._as_json:
            return json.dumps(fields, default=str)
        return " ".join(f"{key}={_quoted(value)}" for key, value in fields.items())


def _quoted(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    plain = text and not any(c in text for c in ' "=\n\t')
    return text if plain else json.dumps(text)


def configure(level: str = "info", *, as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send the controller's log to ``stream`` (default: standard error). Of libraries, only warnings and errors
    appear."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Formatter(as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sluice").setLevel(level.upper())
