"""Determines a switch's architecture by requests over P4Runtime, before there is a session with the switch."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
from finsy import GRPCStatusCode, P4ClientError
from finsy.proto import p4i, p4r, p4r_grpc

from sluice.switch.errors import SwitchError, translated

from . import EMBEDDED, Profile, of_arch

_ANSWER_S = 10.0

_NOT_REPORTED = (GRPCStatusCode.FAILED_PRECONDITION, GRPCStatusCode.NOT_FOUND, GRPCStatusCode.UNIMPLEMENTED)
"""Status codes that mean "not reported": BMv2 answers with one of them while it has no program, and older builds lack
Capabilities."""


async def detect(address: str, device_id: int) -> Profile:
    """Return the profile for the architecture of the program that the switch runs or, without one, of the programs that
    it accepts.

    ``sluice-tofino`` reports the architecture that it accepts in Capabilities (docs/reference/gateway.md). A switch
    that reports no architecture counts as v1model; ``open_registers`` then distinguishes BMv2 from the embedded switch.
    Raises SwitchLost if the switch cannot be reached, and SwitchError if it does not answer in time or has no such
    device.
    """
    config = p4r.GetForwardingPipelineConfigRequest(
        device_id=device_id, response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
    )
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = p4r_grpc.P4RuntimeStub(channel)
        running = await _answer(address, stub.GetForwardingPipelineConfig, config)
        if running is not None and (arch := running.config.p4info.pkg_info.arch):
            return of_arch(arch)
        capabilities = await _answer(address, stub.Capabilities, p4r.CapabilitiesRequest())
    return EMBEDDED if capabilities is None else of_arch(_arch(capabilities))


async def _answer(address: str, call: Any, request: Any) -> Any:
    """Return a call's answer; None if the switch does not report the requested value. Raises SwitchError."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await call(request)
    except TimeoutError as error:
        raise SwitchError(f"switch {address}: does not report its kind within {_ANSWER_S:g} s; set --target") from error
    except grpc.RpcError as error:
        failed = P4ClientError(error, type(request).__name__)
        if failed.code in _NOT_REPORTED:
            return None
        raise translated(failed, address, "ask for its kind") from error


def _arch(answer: p4r.CapabilitiesResponse) -> str:
    package = p4i.PkgInfo()
    return package.arch if answer.experimental.Unpack(package) else ""
