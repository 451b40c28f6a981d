"""Chen & Heidemann's control of the limit by the present and the previous alarm signal (section 5.2)."""

from __future__ import annotations

from .limit import bounded
from .options import NewsOptions
from .scoreboard import Scoreboard


class PaperRegulator:
    """The limit of one target, connections per second; None until the first crowd.

    0 to 1 sets it to the currently admitted rate of the target (``start``, when the target is known), 1 to 1 moves it
    the better-scored way, to 0 keeps it. It is never taken back: after the crowd it stays, as published.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self.scores = Scoreboard()
        self.rate: float | None = None

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; the limit is brought within changed bounds."""
        self._options = options
        if self.rate is not None:
            self.rate = bounded(self.rate, options)

    def start(self, admitted: float) -> None:
        """0 to 1: the limit is the currently admitted rate, connections per second."""
        self.scores.forget()
        self.rate = bounded(admitted, self._options)

    def drop(self) -> None:
        """Nothing is limited until the next start; the scores stay."""
        self.scores.forget()
        self.rate = None

    def adopt(self, rate: float) -> None:
        """Go on from a limit found in the switch."""
        self.rate = bounded(rate, self._options)

    def adjust(self) -> None:
        """1 to 1: the last move did not help; move again, the better-scored way. Without a limit, nothing."""
        if self.rate is None:
            return
        self.scores.judge(alarm=True)
        self.rate = bounded(self.rate * (1 + self.scores.choose() * self._options.step), self._options)

    def release(self) -> None:
        """1 to 0: the last move helped; the limit stays."""
        self.scores.judge(alarm=False)
