"""Saves the baselines of flash-crowd control in a file, for a controller that starts during a flash crowd.

A controller takes over baselines that are at most an hour old: an older request rate predicts worse than the rate at
the same hour of other days (ADR 0139). It does not take over baselines of another switch, of other services, or of
other measurements.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sluice.atomicfile import write_atomically
from sluice.config.model import Config, NewsConfig
from sluice.log import logger
from sluice.news import Average, Usual

from .view import NewsView

_log = logger("news")

VERSION = 1
LIFE_S = 3600.0
"""Age in seconds up to which baselines are taken over."""
EVERY_S = 10.0
"""Seconds between two writes of the file. The interval is short so that a crash loses little."""
_MARK = b'{"sluice": "baseline"'
"""The first bytes of a baseline file. A file that begins with other bytes is not overwritten."""
_MOST_BYTES = 1 << 20

_Number = Annotated[float, Field(ge=0)]
_Name = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]
"""A destination's packed address in hexadecimal digits; empty for all unlisted destinations together."""


class Unfit(Exception):
    """A file whose baselines cannot be taken over. The text states the reason."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Average(_Part):
    average: _Number
    deviation: _Number
    count: Annotated[int, Field(ge=1)]

    @classmethod
    def of(cls, value: Average) -> _Average:
        return cls(average=value.average, deviation=value.deviation, count=value.count)

    @property
    def value(self) -> Average:
        return Average(self.average, self.deviation, self.count)


class _Origin(_Part):
    """The switch, the services and the measurements from which a baseline was learned. It is valid only for these."""

    switch: str
    device_id: int
    services: tuple[str, ...]
    fast_share: float
    rate_window_s: float
    window_s: float

    @classmethod
    def of(cls, config: Config, news: NewsConfig) -> _Origin:
        return cls(
            switch=config.switch.address,
            device_id=config.switch.device_id,
            services=tuple(sorted(f"{service.address}:{service.port}" for service in config.services)),
            fast_share=news.fast_share,
            rate_window_s=news.rate_window_s,
            window_s=news.production.window_s,
        )


class _File(_Part):
    sluice: str = "baseline"
    version: int = VERSION
    unix_s: _Number
    origin: _Origin
    ar_bps: _Average
    requests_per_s: _Average
    destinations: dict[_Name, _Average]

    @property
    def usual(self) -> Usual:
        destinations = {bytes.fromhex(name): average.value for name, average in self.destinations.items()}
        return Usual(self.ar_bps.value, self.requests_per_s.value, destinations)


class BaselineFile:
    """Writes the baselines of a controller, and reads those of an earlier controller."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """``clock`` returns seconds since the epoch."""
        self._clock = clock
        self._written_s = 0.0
        self._decided_s = 0.0
        """Unix time of the last decision that used these baselines, in seconds."""
        self._origin: _Origin | None = None
        self._learning_s = 0.0
        """Unix time until which the baselines still reflect the services from before a reload."""
        self._fails = False

    def __deepcopy__(self, memo: object) -> BaselineFile:
        """Return an object that reads and writes nothing: a copied world only serves to try a configuration."""
        return _NoFile(self._clock)

    def expire(self, view: NewsView) -> None:
        """Forget what was learned if the last decision is older than LIFE_S. This happens if the controller has since
        been standby, or without its switch."""
        age_s = self._clock() - self._decided_s
        if view.usual is not None and age_s > LIFE_S:
            _log.warning("baseline is too old", extra={"age_s": round(age_s, 1)})
            view.forget()

    def restore(self, view: NewsView) -> None:
        """Pass the baselines of an earlier controller to flash-crowd control, unless it has its own baselines. Logs a
        warning if a file cannot be taken over."""
        if not view.learns_usual or view.usual is not None:
            return
        path = _path(view)
        try:
            file = _read(path, _Origin.of(view.plan.config, view.config), self._clock())
        except FileNotFoundError:
            return
        except (OSError, Unfit) as error:
            _log.warning("baseline is not taken over", extra={"file": str(path), "error": str(error)})
            return
        view.restore(file.usual)
        self._decided_s = file.unix_s
        _log.info("baseline taken over", extra={"file": str(path), "age_s": round(self._clock() - file.unix_s, 1)})

    def keep(self, view: NewsView) -> None:
        """Record that a decision was made now, and write the baselines, at most every EVERY_S.

        After a reload that changes their origin, such as the services, nothing is written for ``baseline_s``, in which
        baselines of the new origin are learned. The first of consecutive failures is logged as a warning.
        """
        now_s = self._decided_s = self._clock()
        if 0 <= now_s - self._written_s < EVERY_S or (usual := view.usual) is None:
            return
        news, origin = view.config, _Origin.of(view.plan.config, view.config)
        if self._origin not in (None, origin):
            self._learning_s = now_s + news.production.baseline_s
        self._origin = origin
        if now_s < self._learning_s:
            return
        self._written_s = now_s
        path = _path(view)
        try:
            if not _may_replace(path):
                raise Unfit("there is a file that is no baseline: remove it, or name another news: baseline_file")
            write_atomically(path, _text(usual, origin, now_s))
        except (OSError, Unfit) as error:
            if not self._fails:
                _log.warning("baseline is not kept", extra={"file": str(path), "error": str(error)})
            self._fails = True
        else:
            if self._fails:
                _log.warning("baseline is kept again", extra={"file": str(path)})
            self._fails = False


class _NoFile(BaselineFile):
    """A file that is never read or written, for a configuration that is only tried."""

    def expire(self, view: NewsView) -> None:
        pass

    def restore(self, view: NewsView) -> None:
        pass

    def keep(self, view: NewsView) -> None:
        pass


def _path(view: NewsView) -> Path:
    return Path(view.config.baseline_file or f"{view.plan.config.control}.baseline")


def _text(usual: Usual, origin: _Origin, unix_s: float) -> str:
    file = _File(
        unix_s=unix_s,
        origin=origin,
        ar_bps=_Average.of(usual.ar),
        requests_per_s=_Average.of(usual.requests),
        destinations={name.hex(): _Average.of(average) for name, average in usual.destinations.items()},
    )
    return json.dumps(file.model_dump()) + "\n"


def _content(path: Path, most: int) -> bytes:
    """Return the first ``most`` bytes of a regular file, or all bytes if it has fewer. Raises OSError, or Unfit for
    another kind of file, such as a pipe, and for a file of a user other than root and the controller's."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Unfit("not a regular file")
        if status.st_uid not in (os.geteuid(), 0):
            raise Unfit("it belongs to another user")
        return file.read(most)


def _may_replace(path: Path) -> bool:
    """Return whether the path has no file yet, an empty file, or a baseline file. Raises OSError or Unfit."""
    try:
        return _content(path, len(_MARK)) in (b"", _MARK)
    except FileNotFoundError:
        return True


def _read(path: Path, origin: _Origin, unix_s: float) -> _File:
    """Return the content of an earlier controller's file. Raises OSError, or Unfit with the reason."""
    content = _content(path, _MOST_BYTES + 1)
    if not content.startswith(_MARK) or len(content) > _MOST_BYTES:
        raise Unfit("not a baseline of sluice's")
    try:
        version = json.loads(content).get("version")
        if version != VERSION:
            raise Unfit(f"version {version!r}; this controller reads {VERSION}")
        file = _File.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Unfit(f"damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise Unfit(f"damaged: {error}") from error
    for name, ours in origin.model_dump().items():
        if (theirs := getattr(file.origin, name)) != ours:
            raise Unfit(f"of another {name}: {theirs!r}, here {ours!r}")
    age_s = unix_s - file.unix_s
    if not 0 <= age_s <= LIFE_S:
        when = (
            f"{age_s:.0f} s old, and good for {LIFE_S:.0f}" if age_s > 0 else f"from {-age_s:.0f} s ahead of the clock"
        )
        raise Unfit(f"stale: {when}")
    return file
