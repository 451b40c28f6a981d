"""Makes a switch run this controller's program, and preserves its connections if the switch can keep its state.

A switch that runs another version of sluice's program may have connections. The controller first requests a replacement
that keeps all state or changes nothing (RECONCILE_AND_COMMIT). If the switch refuses, its program is replaced only if
the operator has allowed the loss of connections.
"""

from __future__ import annotations

from enum import Enum

from sluice.log import logger

from .errors import NotPrimary, SwitchError, SwitchLost
from .session import Session

_log = logger("upgrade")


class Program(Enum):
    """How the switch came to run the program; each value completes a sentence of a message for users."""

    RUNNING = "it ran this program already"
    REPLACED = "its program was replaced, and its state kept"
    LOADED = "it was loaded"

    @property
    def adopted(self) -> bool:
        """Whether the switch still contains an earlier controller's entries, and connections."""
        return self is not Program.LOADED


async def ensure_program(session: Session, *, may_end_connections: bool) -> Program:
    """Make the switch run the session's program. Raises SwitchError; if the switch refuses the program, or its
    connections would end without permission, nothing has changed.

    ``may_end_connections``: allows a replacement of another version even if the switch's connections end.
    """
    if await session.runs_pipeline():
        return Program.RUNNING
    if await session.runs_another_version():
        why = await _keep(session)
        if why is None:
            return Program.REPLACED
        if not may_end_connections:
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
    """Replace the program and keep the state. Returns why the switch cannot do so, or None after success. Raises
    SwitchError."""
    if not session.target.reconciles:
        return f"a switch of the kind {session.target.name} loses all state with its program"
    _log.info("asking the switch to replace its program and to keep its state")
    try:
        await session.push_pipeline(keep=True)
    except (SwitchLost, NotPrimary):
        raise
    except SwitchError as error:
        return str(error).removeprefix(f"switch {session.address}: ")
    return None
