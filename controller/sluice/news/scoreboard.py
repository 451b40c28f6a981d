"""The scoreboard that learns whether to raise or to lower the limit (Chen & Heidemann, section 5.2 and Fig. 8)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Direction(IntEnum):
    """Which way a limit is moved."""

    DOWN = -1
    UP = 1


@dataclass(slots=True)
class Scoreboard:
    """One score for each direction; they outlive the crowd, so that the next one profits."""

    up: int = 0
    down: int = 0
    pending: Direction | None = None
    """The move whose effect the next alarm signal tells."""

    def choose(self) -> Direction:
        """The better-scored direction; down when the scores are equal. It awaits its verdict."""
        self.pending = Direction.UP if self.up > self.down else Direction.DOWN
        return self.pending

    def judge(self, *, alarm: bool) -> None:
        """Credit the pending move if the alarm is now reset, penalise it if not; without one, nothing."""
        change = -1 if alarm else 1
        match self.pending:
            case Direction.UP:
                self.up += change
            case Direction.DOWN:
                self.down += change
            case None:
                pass
        self.pending = None

    def forget(self) -> None:
        """The pending move's effect can no longer be told (the limit now holds for another hot spot)."""
        self.pending = None
