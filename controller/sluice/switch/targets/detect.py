"""What a switch says of itself, before there is a session with it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import grpc.aio
from finsy import GRPCStatusCode, P4ClientError
from finsy.proto import p4r, p4r_grpc

from sluice.switch.errors import SwitchError, translated

from . import EMBEDDED, STRATUM, Profile

_ANSWER_S = 10.0

_STRATUM_WITHOUT_A_PROGRAM = "valid forwarding pipeline config has been"
"""``p4_service.cc``, DoGetForwardingPipelineConfig: "No valid forwarding pipeline config has been pushed for any node
so far." or "Invalid node id or no valid forwarding pipeline config has been pushed for node 1 yet." """


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to GetForwardingPipelineConfig."""

    arch: str = ""
    """Of the program that it runs (P4Info's ``pkg_info``)."""
    refusal: str = ""
    """What it says when it runs none."""


def decide(said: Said) -> Profile:
    """The target that says so. BMv2 is told from the embedded switch by its registers (open_registers)."""
    if said.arch:
        return STRATUM if said.arch == STRATUM.arch else EMBEDDED
    return STRATUM if _STRATUM_WITHOUT_A_PROGRAM in said.refusal else EMBEDDED


async def detect(address: str, device_id: int) -> Profile:
    """Ask the switch. Raises SwitchLost when it does not answer, SwitchError when it has no such device."""
    request = p4r.GetForwardingPipelineConfigRequest(
        device_id=device_id, response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
    )
    async with grpc.aio.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        try:
            async with asyncio.timeout(_ANSWER_S):
                reply: p4r.GetForwardingPipelineConfigResponse = await stub.GetForwardingPipelineConfig(request)
        except TimeoutError as error:
            raise SwitchError(
                f"switch {address}: does not say what it is within {_ANSWER_S:g} s; set --target"
            ) from error
        except grpc.RpcError as error:
            failed = P4ClientError(error, "GetForwardingPipelineConfig")
            if failed.code in (GRPCStatusCode.FAILED_PRECONDITION, GRPCStatusCode.NOT_FOUND):
                return decide(Said(refusal=failed.message))
            raise translated(failed, address, "ask what it is") from error
    return decide(Said(arch=reply.config.p4info.pkg_info.arch))
