"""The scoreboard that learns whether to raise or to lower the limit (Chen & Heidemann, section 5.2 and Fig. 8)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Direction(IntEnum):
    """The direction of a move of the limit."""

    DOWN = -1
    UP = 1


@dataclass(slots=True)
class Scoreboard:
    """A score for each direction. The scores stay after a crowd, and are used in the next crowd."""

    up: int = 0
    down: int = 0
    pending: Direction | None = None
    """The move whose effect the next alarm signal will show."""

    def choose(self) -> Direction:
        """Return the direction with the better score, down for equal scores, and record it as pending."""
        self.pending = Direction.UP if self.up > self.down else Direction.DOWN
        return self.pending

    def judge(self, *, alarm: bool) -> None:
        """Credit the pending move, if any, when the alarm has been reset; penalise it when the alarm is still set."""
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
        """Forget the pending move, because its effect cannot be measured once the limit is for another hot spot."""
        self.pending = None
