"""NEWS's baselines in a file, so that a controller that starts in a flash crowd knows what is usual.

They are as good as a short absence: the request rate of an hour ago predicts worse than the same hour of other days
(ADR 0139), and what is older is not taken over. Nor is what was learned behind another switch, of other services or by
another measurement.
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
from sluice.news import Average, NewsMode, Usual

from .world import World

_log = logger("news")

VERSION = 1
LIFE_S = 3600.0
EVERY_S = 10.0
"""It is written so often: a file is no older than the crash."""
_MARK = b'{"sluice": "baseline"'
"""How such a file begins: nothing else is written over."""
_MOST_BYTES = 1 << 20

_Number = Annotated[float, Field(ge=0)]
_Name = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]
"""A destination: its packed address in hexadecimal digits; of all unlisted ones it is empty."""


class Unfit(Exception):
    """A file that there is nothing to take from."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Average(_Part):
    average: _Number
    deviation: _Number
    count: Annotated[int, Field(ge=1)]

    @classmethod
    def of(cls, one: Average) -> _Average:
        return cls(average=one.average, deviation=one.deviation, count=one.count)

    @property
    def value(self) -> Average:
        return Average(self.average, self.deviation, self.count)


class _Origin(_Part):
    """What it was learned of, and how: a baseline is good for nothing else."""

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
            services=tuple(sorted(f"{one.address}:{one.port}" for one in config.services)),
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
        destinations = {bytes.fromhex(name): one.value for name, one in self.destinations.items()}
        return Usual(self.ar_bps.value, self.requests_per_s.value, destinations)


class BaselineFile:
    """What a controller keeps of its flash-crowd control; one for its whole life."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """``clock`` gives seconds since the epoch."""
        self._clock = clock
        self._written_s = 0.0
        self._decided_s = 0.0
        """When there was last a decision by what is known."""
        self._origin: _Origin | None = None
        self._learning_s = 0.0
        """Until then what is known was learned elsewhere: before a reload changed the services."""
        self._fails = False

    def expire(self, world: World) -> None:
        """A controller that begins to lead forgets what it knew, if its last decision is longer ago than LIFE_S: it
        stood by since, or had lost its switch."""
        view, age_s = world.news, self._clock() - self._decided_s
        if view is not None and view.usual is not None and age_s > LIFE_S:
            _log.warning("baseline is too old", extra={"age_s": round(age_s, 1)})
            view.forget()

    def restore(self, world: World) -> None:
        """Give flash-crowd control that knows nothing yet what an earlier controller left; a warning says why not."""
        view = world.news
        if view is None or view.config.mode is not NewsMode.PRODUCTION or view.usual is not None:
            return
        path = _path(world.config, view.config)
        try:
            kept = _read(path, _Origin.of(world.config, view.config), self._clock())
        except FileNotFoundError:
            return
        except (OSError, Unfit) as error:
            _log.warning("baseline is not taken over", extra={"file": str(path), "error": str(error)})
            return
        view.restore(kept.usual)
        self._decided_s = kept.unix_s
        _log.info("baseline taken over", extra={"file": str(path), "age_s": round(self._clock() - kept.unix_s, 1)})

    def keep(self, world: World) -> None:
        """Write what is known, from time to time. A file that cannot be written is said once; control goes on."""
        now_s = self._decided_s = self._clock()
        if world.news is None or 0 <= now_s - self._written_s < EVERY_S or (usual := world.news.usual) is None:
            return
        config, origin = world.news.config, _Origin.of(world.config, world.news.config)
        if self._origin not in (None, origin):
            self._learning_s = now_s + config.production.baseline_s
        self._origin = origin
        if now_s < self._learning_s:
            return
        self._written_s = now_s
        path = _path(world.config, config)
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


def _path(config: Config, news: NewsConfig) -> Path:
    return Path(news.baseline_file or f"{config.control}.baseline")


def _text(usual: Usual, origin: _Origin, unix_s: float) -> str:
    file = _File(
        unix_s=unix_s,
        origin=origin,
        ar_bps=_Average.of(usual.ar),
        requests_per_s=_Average.of(usual.requests),
        destinations={name.hex(): _Average.of(one) for name, one in usual.destinations.items()},
    )
    return json.dumps(file.model_dump()) + "\n"


def _content(path: Path, most: int) -> bytes:
    """The beginning of a regular file. Raises OSError, or Unfit for a pipe or the like, which is not waited for."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Unfit("not a regular file")
        if status.st_uid not in (os.geteuid(), 0):
            raise Unfit("it belongs to another user")
        return file.read(most)


def _may_replace(path: Path) -> bool:
    """There is no file yet, or an empty one, or one of these. Raises OSError, Unfit."""
    try:
        return _content(path, len(_MARK)) in (b"", _MARK)
    except FileNotFoundError:
        return True


def _read(path: Path, origin: _Origin, unix_s: float) -> _File:
    """What an earlier controller left. Raises OSError, or Unfit with the reason."""
    content = _content(path, _MOST_BYTES + 1)
    if not content.startswith(_MARK) or len(content) > _MOST_BYTES:
        raise Unfit("not a baseline of sluice's")
    try:
        version = json.loads(content).get("version")
        if version != VERSION:
            raise Unfit(f"version {version!r}; this controller reads {VERSION}")
        kept = _File.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Unfit(f"damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise Unfit(f"damaged: {error}") from error
    for name, ours in origin.model_dump().items():
        if (theirs := getattr(kept.origin, name)) != ours:
            raise Unfit(f"of another {name}: {theirs!r}, here {ours!r}")
    age_s = unix_s - kept.unix_s
    if not 0 <= age_s <= LIFE_S:
        when = (
            f"{age_s:.0f} s old, and good for {LIFE_S:.0f}" if age_s > 0 else f"from {-age_s:.0f} s ahead of the clock"
        )
        raise Unfit(f"stale: {when}")
    return kept
