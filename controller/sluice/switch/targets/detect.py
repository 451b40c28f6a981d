"""What a switch says of itself, before there is a session with it."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
from finsy import GRPCStatusCode, P4ClientError
from finsy.proto import p4i, p4r, p4r_grpc

from sluice.switch.errors import SwitchError, translated

from . import EMBEDDED, Profile, of_arch

_ANSWER_S = 10.0

_UNSAID = (GRPCStatusCode.FAILED_PRECONDITION, GRPCStatusCode.NOT_FOUND, GRPCStatusCode.UNIMPLEMENTED)
"""BMv2 refuses to give its program when it has none; older builds know no Capabilities."""


async def detect(address: str, device_id: int) -> Profile:
    """Ask the switch: the architecture of the program that it runs, or, without one, of those that it takes.

    ``sluice-tofino`` says the latter in Capabilities (docs/reference/gateway.md). A switch that says neither runs
    v1model; BMv2 differs from the embedded switch by its registers (open_registers). Raises SwitchLost when it does
    not answer, SwitchError when it has no such device.
    """
    config = p4r.GetForwardingPipelineConfigRequest(
        device_id=device_id, response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
    )
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = p4r_grpc.P4RuntimeStub(channel)
        running = await _answer(address, stub.GetForwardingPipelineConfig, config)
        if running is not None and (arch := running.config.p4info.pkg_info.arch):
            return of_arch(arch)
        taken = await _answer(address, stub.Capabilities, p4r.CapabilitiesRequest())
    return EMBEDDED if taken is None else of_arch(_arch(taken))


async def _answer(address: str, call: Any, request: Any) -> Any:
    """What a call returns; None when the switch has nothing to say. Raises SwitchError."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await call(request)
    except TimeoutError as error:
        raise SwitchError(f"switch {address}: does not say what it is within {_ANSWER_S:g} s; set --target") from error
    except grpc.RpcError as error:
        failed = P4ClientError(error, type(request).__name__)
        if failed.code in _UNSAID:
            return None
        raise translated(failed, address, "ask what it is") from error


def _arch(answer: p4r.CapabilitiesResponse) -> str:
    package = p4i.PkgInfo()
    return package.arch if answer.experimental.Unpack(package) else ""
