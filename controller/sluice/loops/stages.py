"""The stages of a switch that manage servers' resources, as the tasks use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.resources.columns import Columns
from sluice.resources.sharer import Cap
from sluice.switch.errors import SwitchError

from .link import Link
from .resourcesview import Closings, Facts


class SwitchStages:
    """See resourcesview.Stages."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def transfers(self) -> Columns:
        """See Stages."""
        raise self._none()

    async def cap(self, caps: Mapping[int, Cap]) -> None:
        """See Stages."""
        raise self._none()

    async def idle(self) -> Sequence[Facts]:
        """See Stages."""
        raise self._none()

    async def facts(self, flows: Sequence[int]) -> Sequence[Facts]:
        """See Stages."""
        raise self._none()

    async def probe(self, flow: int) -> None:
        """See Stages."""
        raise self._none()

    async def closings(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """See Stages."""
        raise self._none()

    def _none(self) -> SwitchError:
        return SwitchError(f"switch {self._link.session.address}: its program does not measure transfers")
