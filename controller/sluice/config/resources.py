"""The ``resources:`` block of a service: what its servers have for connections, and how it is shared."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sluice.resources.idle import IdleOptions
from sluice.resources.need import Needs

from .types import Given, Section, Size

Sharing = Literal["sabt", "abt", "equal", "fixed"]


class ReceiveConfig(Section):
    """Buffers of each server for what clients send. Each open connection has an equal share, of 64 KB at least."""

    budget: Size
    """Bytes of a server for all of its connections together."""
    size: Size | None = None
    """Everybody's share, whatever the budget."""


class SendConfig(ReceiveConfig):
    """The same towards clients, by what each transfer needs. Those below 64 KB are left alone."""

    sharing: Sharing = "sabt"
    """`sabt`: the rest of equal shares by need (Matsuo et al.); `abt`: equally; `equal`: whatever is needed; `fixed`:
    everybody `size`."""
    needs: Needs = Needs.PRODUCTION
    """`paper`: throughput times round trip, no more; `production`: the same of today's senders, and what is left as
    room for TCP's swing and growth; `present`: twice what is in flight (ABT, Semke et al.)."""


class ResourcesConfig(Section):
    """TCP resources of the servers (Matsuo et al., Azuma et al.). One of send, receive and idle at least."""

    send: Annotated[SendConfig | None, Given] = None
    """Send buffers, by what clients may advertise to a server; left out: as the server has them."""
    receive: Annotated[ReceiveConfig | None, Given] = None
    """Receive buffers, by what a server may advertise to clients; left out: as the server has them."""
    idle: Annotated[IdleOptions | None, Given] = None
    """When idle connections are closed; left out: never."""
    sampling: Annotated[int, Field(ge=0, le=16)] = 0
    """Of 2^sampling connections one is measured; the others share alike. 4,096 can be measured at a time."""


class ServerResourcesConfig(Section):
    """What a server has that differs from its service's other servers."""

    send: Size | None = None
    """Its budget for sending."""
    receive: Size | None = None
    """Its budget for receiving."""
    limit: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Connections that it can have."""
