"""The ``resources:`` block of a service: how its servers' TCP buffers and connections are shared."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sluice.resources.idle import IdleOptions
from sluice.resources.need import Needs

from .types import NotNull, Section, Size

Sharing = Literal["sabt", "abt", "equal", "fixed"]


class ReceiveConfig(Section):
    """Each server's receive buffers, for data from clients. Each open connection gets an equal share, of at least 64
    KB."""

    budget: Size
    """The number of bytes that each server has for all its connections together."""
    size: Size | None = None
    """A fixed share for each connection, regardless of the budget."""


class SendConfig(ReceiveConfig):
    """Each server's send buffers, for data to clients, shared by need. Transfers below 64 KB are not limited."""

    sharing: Sharing = "sabt"
    """How the budget is shared. `sabt`: each transfer gets an equal share, and unneeded parts are distributed by need
    among transfers that need more (Matsuo et al.); `abt`: unneeded parts are distributed equally; `equal`: equal
    shares, needed or not; `fixed`: each transfer gets `size`."""
    needs: Needs = Needs.PRODUCTION
    """How needs are estimated. `paper`: throughput times round trip; `production`: the same, adapted to present-day
    senders, and the unneeded rest is distributed as room for TCP's growth; `present`: twice the bytes in flight
    (ABT, Semke et al.)."""


class ResourcesConfig(Section):
    """TCP resources of the servers (Matsuo et al., Azuma et al.). At least one of send, receive and idle is
    required."""

    send: Annotated[SendConfig | None, NotNull] = None
    """Send buffers, controlled by the windows that clients may advertise to a server. Left out: not managed."""
    receive: Annotated[ReceiveConfig | None, NotNull] = None
    """Receive buffers, controlled by the windows that a server may advertise to clients. Left out: not managed."""
    idle: Annotated[IdleOptions | None, NotNull] = None
    """The conditions under which idle connections are closed. Left out: they are never closed."""
    sampling: Annotated[int, Field(ge=0, le=16)] = 0
    """One in 2^sampling connections is measured; the others get the default cap. At most 4,096 connections are measured
    at a time."""


class ServerResourcesConfig(Section):
    """A server's resource settings that differ from those of the service's other servers."""

    send: Size | None = None
    """The server's budget for send buffers."""
    receive: Size | None = None
    """The server's budget for receive buffers."""
    limit: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """The largest number of connections that the server can have open."""
