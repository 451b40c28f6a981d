"""A substitute for `sluice-tofino`: it has the gateway's capabilities and refusals, but processes no packets.

test_tofino_gateway.py checks that the real gateway behaves in the same way.
"""

from __future__ import annotations

from typing import Any

import grpc
from fakeswitch import FakeSwitch
from finsy.proto import p4i, p4r
from google.protobuf import any_pb2


class TofinoSwitch(FakeSwitch):
    """A fake switch that accepts only programs for Tofino."""

    async def Capabilities(self, request: Any, context: Any) -> p4r.CapabilitiesResponse:
        package = any_pb2.Any()
        package.Pack(p4i.PkgInfo(arch="tna"))
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.5.0", experimental=package)

    async def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: Any
    ) -> p4r.GetForwardingPipelineConfigResponse:
        if self.config is None:
            return p4r.GetForwardingPipelineConfigResponse()
        return await super().GetForwardingPipelineConfig(request, context)

    async def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: Any
    ) -> p4r.SetForwardingPipelineConfigResponse:
        if request.config.p4info.pkg_info.arch != "tna":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "table SluiceIngress.ports: the driver has none")
        return await super().SetForwardingPipelineConfig(request, context)
