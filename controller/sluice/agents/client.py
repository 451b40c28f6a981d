"""The controller's calls to an agent. They send its configuration and what other agents have learned, and receive its
reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
import grpc.aio

from . import messages
from .messages import MESSAGES, SERVICE, Problem, Report

CONFIGURE_S = 30.0
"""Seconds within which an agent must accept its configuration. It compiles the rules during this time."""
SHARE_S = 10.0
"""Seconds within which an agent must accept what other agents have learned."""
_LARGEST = 128 << 20


class AgentError(Exception):
    """An agent cannot be reached, or refuses a call. The error's text states the reason."""


class AgentSilent(AgentError):
    """An agent does not answer in time, although its connection is open."""


class Agent:
    """An open connection to an agent."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def configure(self, configuration: Any) -> list[Problem]:
        """Replace the agent's configuration. Returns the problems that the agent found; if there are any, its old
        configuration stays in force. Raises AgentError."""
        call: Any = self._channel.unary_unary(
            f"/{SERVICE}/Configure",
            request_serializer=MESSAGES["Configuration"].SerializeToString,
            response_deserializer=MESSAGES["Verdict"].FromString,
        )
        try:
            async with asyncio.timeout(CONFIGURE_S):
                return messages.problems(await call(configuration))
        except TimeoutError as error:
            raise AgentSilent(f"has not taken its configuration within {CONFIGURE_S:g} s") from error
        except grpc.aio.AioRpcError as error:
            raise AgentError(_text(error)) from error

    async def share(self, abilities: Any) -> None:
        """Send the agent what the other agents have learned about servers. Each call replaces what the previous call
        sent.

        An agent of an older version lacks this call, and uses only what it learns itself. Raises AgentError.
        """
        call: Any = self._channel.unary_unary(
            f"/{SERVICE}/Share",
            request_serializer=MESSAGES["SharedAbilities"].SerializeToString,
            response_deserializer=MESSAGES["ShareResponse"].FromString,
        )
        try:
            async with asyncio.timeout(SHARE_S):
                await call(abilities)
        except TimeoutError as error:
            raise AgentSilent(f"has not taken what others learned within {SHARE_S:g} s") from error
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise AgentError(_text(error)) from error

    async def watch(self, interval_s: float, patience_s: float) -> AsyncGenerator[Report]:
        """Yield the agent's periodic reports. Raises AgentError; AgentSilent if no report arrives for ``patience_s``
        seconds."""
        start: Any = self._channel.unary_stream(
            f"/{SERVICE}/Watch",
            request_serializer=MESSAGES["WatchRequest"].SerializeToString,
            response_deserializer=MESSAGES["Status"].FromString,
        )
        call = start(messages.make("WatchRequest", interval_ms=round(interval_s * 1000)))
        try:
            while True:
                async with asyncio.timeout(patience_s):
                    status = await call.read()
                if status is cast(Any, grpc.aio).EOF:
                    raise AgentError("it ended its report")
                yield messages.report(status)
        except TimeoutError as error:
            raise AgentSilent(f"silent for {patience_s:g} s") from error
        except grpc.aio.AioRpcError as error:
            raise AgentError(_text(error)) from error
        finally:
            call.cancel()


def _text(error: grpc.aio.AioRpcError) -> str:
    return error.details() or error.code().name


@asynccontextmanager
async def connected(control: str) -> AsyncGenerator[Agent]:
    """Provide the agent that listens at the address ``control`` for the block of an ``async with`` statement.

    gRPC connects at the first call; a call, not this function, fails if the agent cannot be reached.
    """
    options: list[tuple[str, str | int]] = [
        ("grpc.max_send_message_length", _LARGEST),
        ("grpc.use_local_subchannel_pool", 1),
        # For a Unix socket, gRPC's default authority is the percent-encoded path. That is no valid HTTP/2 authority,
        # and the agent refuses it.
        ("grpc.default_authority", "localhost"),
    ]
    async with grpc.aio.insecure_channel(control, options=options) as channel:
        yield Agent(channel)
