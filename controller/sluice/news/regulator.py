"""Chen & Heidemann's control of the limit by the present and the previous alarm signal (section 5.2)."""

from __future__ import annotations

from .limit import bounded
from .options import NewsOptions
from .scoreboard import Scoreboard


class PaperRegulator:
    """The limit of one target, in connections per second; None until the first crowd.

    An alarm that is set (0 to 1) sets the limit to the target's present rate of admitted connections, as soon as the
    target is known (``start``). An alarm that stays set (1 to 1) moves it in the direction with the better score. The
    limit stays when the alarm is reset, and is never lifted, as published.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self.scores = Scoreboard()
        self.rate: float | None = None

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters, and bring the limit within changed bounds."""
        self._options = options
        if self.rate is not None:
            self.rate = bounded(self.rate, options)

    def start(self, admitted: float) -> None:
        """Set the limit to the present rate of admitted connections per second (0 to 1)."""
        self.scores.forget()
        self.rate = bounded(admitted, self._options)

    def drop(self) -> None:
        """Lift the limit until the next start; the scores stay."""
        self.scores.forget()
        self.rate = None

    def adopt(self, rate: float) -> None:
        """Continue from a limit that the switch has."""
        self.rate = bounded(rate, self._options)

    def adjust(self) -> None:
        """Move the limit again in the direction with the better score: the last move did not help (1 to 1). Without a
        limit nothing happens."""
        if self.rate is None:
            return
        self.scores.judge(alarm=True)
        self.rate = bounded(self.rate * (1 + self.scores.choose() * self._options.step), self._options)

    def release(self) -> None:
        """Credit the last move, which helped; the limit stays (1 to 0)."""
        self.scores.judge(alarm=False)
