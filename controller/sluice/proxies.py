"""No HTTP proxy stands between this program and its switch, agents, or controller."""

from __future__ import annotations

import os

_OF_GRPC = ("grpc_proxy", "https_proxy", "http_proxy")
"""What gRPC's C core reads, in this order (its `http_proxy_mapper.cc`): it sends every call to such a proxy."""


def ignore() -> None:
    """Have gRPC reach every address itself, for the life of this process and its children.

    The channel argument `grpc.enable_http_proxy` does the same, but finsy gives no way to set it.
    """
    for name in _OF_GRPC:
        os.environ.pop(name, None)
