"""Keeps gRPC from using an HTTP proxy between this program and its switch, agents, or controller."""

from __future__ import annotations

import os

_OF_GRPC = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables that gRPC's C core reads, in this order (its `http_proxy_mapper.cc`). If one is set, gRPC sends
every call to the proxy that it names."""


def ignore() -> None:
    """Make gRPC connect to every address directly, in this process and its children.

    The channel argument `grpc.enable_http_proxy` would suffice, but finsy offers no way to set it.
    """
    for name in _OF_GRPC:
        os.environ.pop(name, None)
