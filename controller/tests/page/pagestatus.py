"""Build statuses in the form of `status.gather`, for tests of the page."""

from __future__ import annotations

from typing import Any


def server(name: str, **fields: Any) -> dict[str, Any]:
    """Return the part of a status that describes a server; `fields` replace defaults."""
    shown: dict[str, Any] = {
        "name": name,
        "address": "10.0.2.2:80",
        "state": "in",
        "ratio": 1.0,
        "weight": 256,
        "r": 0.0,
        "open": 0,
        **dict.fromkeys(("syn", "synack", "synack_again", "completed", "reset"), 0),
    }
    return shown | fields


def service(name: str, *servers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the part of a status that describes a service; `fields` replace defaults."""
    shown: dict[str, Any] = {
        "name": name,
        "address": "10.0.0.100:80",
        "mode": "production",
        "condition": "normal",
        "sentence": "All servers answer.",
        "weight_changes": 0,
        "offered": 0,
        "refused": 0,
        "servers": list(servers),
    }
    return shown | fields


def status(*services: dict[str, Any], drops: dict[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    """Return the status of a leading controller; `fields` replace defaults."""
    shown: dict[str, Any] = {
        "role": "primary",
        "switch": "127.0.0.1:9559",
        "device_id": 1,
        "reprogrammed": 0,
        "services": list(services),
        "retired": [],
        "neighbours_missing": [],
        "packets": {
            "forwarded": 0,
            "drops": drops or {},
            "punts": {},
            "punts_limited": {},
            "not_read": 0,
            "injected": 0,
        },
    }
    return shown | fields
