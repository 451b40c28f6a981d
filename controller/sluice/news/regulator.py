"""Chen & Heidemann's control of the limit by the present and the previous alarm signal (section 5.2)."""

from __future__ import annotations

from .limit import bounded
from .options import NewsOptions
from .scoreboard import Scoreboard


class PaperRegulator:
    """The limit of one target, in connections per second; None until the first crowd.

    When the alarm becomes set (0 to 1), the limit becomes the target's present rate of admitted connections, as soon as
    the target is known (``start``). While the alarm stays set (1 to 1), the limit moves in the direction with the
    better score. When the alarm is reset, the limit stays. As published, the limit is never lifted.
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
        """Set the limit to the present rate of admitted connections per second (alarm 0 to 1)."""
        self.scores.forget()
        self.rate = bounded(admitted, self._options)

    def drop(self) -> None:
        """Remove the limit until the next start. The scores stay."""
        self.scores.forget()
        self.rate = None

    def adopt(self, rate: float) -> None:
        """Continue from a limit that is in the switch."""
        self.rate = bounded(rate, self._options)

    def adjust(self) -> None:
        """Move the limit again in the direction with the better score, because the last move did not help (alarm 1 to
        1). Without a limit nothing happens."""
        if self.rate is None:
            return
        self.scores.judge(alarm=True)
        self.rate = bounded(self.rate * (1 + self.scores.choose() * self._options.step), self._options)

    def release(self) -> None:
        """Credit the last move, because it helped. The limit stays (alarm 1 to 0)."""
        self.scores.judge(alarm=False)
