"""Which program a switch runs before this controller leads it, and how it comes to run ours with its connections.

A switch that runs another version of sluice's program holds connections. It is asked to keep its state
(RECONCILE_AND_COMMIT: all of it or nothing changes). Where it cannot, nothing is done unless that was ordered.
"""

from __future__ import annotations

from enum import Enum

from sluice.log import logger

from .errors import NotPrimary, SwitchError, SwitchLost
from .session import Session

_log = logger("upgrade")


class Program(Enum):
    """How a switch came to its program, in words for a sentence about it."""

    THERE = "it ran this program already"
    KEPT = "its program was replaced, and its state kept"
    LOADED = "it was loaded"

    @property
    def adopted(self) -> bool:
        """The switch holds what an earlier controller has written, and its connections."""
        return self is not Program.LOADED


async def bring(session: Session, *, may_lose: bool) -> Program:
    """Have the switch run the session's program. Raises SwitchError, and changes nothing then.

    ``may_lose``: the program may replace another version though that ends the connections.
    """
    if await session.runs_pipeline():
        return Program.THERE
    if await session.runs_another_version():
        why = await _keep(session)
        if why is None:
            return Program.KEPT
        if not may_lose:
            raise SwitchError(
                f"switch {session.address}: it runs another version of sluice's program, whose state cannot be kept: "
                f"{why}. Nothing was changed, and the switch goes on. To end its connections and load this version: "
                "sluice run --replace-program"
            )
        _log.warning("the switch's connections end", extra={"why": why})
    _log.info("loading the program")
    await session.push_pipeline()
    return Program.LOADED


async def _keep(session: Session) -> str | None:
    """Replace the program and keep the state; why that was not possible, when it was not. Raises SwitchError."""
    if not session.target.reconciles:
        return f"a switch of the kind {session.target.name} forgets everything with its program"
    _log.info("asking the switch to replace its program and to keep its state")
    try:
        await session.push_pipeline(keep=True)
    except (SwitchLost, NotPrimary):
        raise
    except SwitchError as error:
        return str(error).removeprefix(f"switch {session.address}: ")
    return None
