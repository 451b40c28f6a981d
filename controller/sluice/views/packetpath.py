"""``sluice explain --packet``: the path of a packet through a copy of the switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sluice import programs
from sluice.addresses import from_packed
from sluice.config.model import Config
from sluice.loops.commands import Refused
from sluice.replay.capturefile import CaptureFile
from sluice.switch import copy

_LEAST, _MOST = 14, 9216
"""The smallest and the largest accepted length of a frame, in bytes: an Ethernet header alone, and a jumbo frame."""


def path_of(config: Config, packet: str, port: int | None) -> dict[str, Any]:
    """Send a frame through a copy of the configuration's switch; return its path as ``copy.trace`` does.

    ``packet``: the name of a capture file, of which the first frame is sent, or hexadecimal digits. ``port``: the port
    of arrival; None: the port towards the frame's source. Raises Refused, SwitchError.
    """
    program = programs.find(copy.NAME)
    if program is None:
        raise Refused(programs.missing(copy.NAME))
    frame = frame_of(packet)
    ports = sorted({interface.port for interface in config.interfaces})
    at = port if port is not None else _port(config, frame)
    if at not in ports:
        raise Refused(f"the configuration has no port {at}; there is: {', '.join(map(str, ports))}")
    return copy.trace(config.switch.address, config.switch.device_id, program, copy.Arrival(frame, at, ports))


def frame_of(packet: str) -> bytes:
    """Return the first frame of a capture file, or the frame that hexadecimal digits denote. Raises Refused."""
    if Path(packet).is_file():
        frame = next((data for _, _, data, _, _ in CaptureFile(packet)), None)
        if frame is None:
            raise Refused(f"{packet} has no packet")
    else:
        try:
            frame = bytes.fromhex(packet.replace(":", ""))
        except ValueError as error:
            raise Refused(f"{packet[:40]!r} is neither a file nor hexadecimal digits") from error
    if not _LEAST <= len(frame) <= _MOST:
        raise Refused(f"a frame of {len(frame)} bytes; Ethernet's have {_LEAST} to {_MOST}")
    return frame


def _port(config: Config, frame: bytes) -> int:
    """Return the port whose subnet contains the packet's source address, else the port of the route to that address,
    else the first port."""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    source = (
        from_packed(frame[at + 14 : at + 18]) if frame[at : at + 2] == b"\x08\x00" and len(frame) >= at + 22 else None
    )
    routed = [route.via for route in config.routes if source is not None and source in route.to]
    for address in (source, *routed):
        for interface in config.interfaces:
            if address is not None and address in interface.address.network:
                return interface.port
    return config.interfaces[0].port


def render(shown: Mapping[str, Any]) -> str:
    """Return the path as text for a terminal: a line for each table or action, below the name of its stage."""
    head = f"{shown['length']} bytes in by port {shown['port']}, on a copy of the switch"
    end = f"dropped: {shown['drop']}" if shown["drop"] else "not dropped"
    return "\n".join([head, *_lines(shown["steps"]), end])


def _lines(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    stage, headers = "", list[str]()
    for step in steps:
        kind = step["step"]
        if kind == "extract":
            headers.append(step["header"])
        if kind in ("extract", "parser_state"):
            continue
        if headers:
            yield f"parsed: {', '.join(headers)}"
            headers = []
        name = str(step.get("table") or step.get("action") or "").removeprefix("SluiceIngress.")
        stage_of_step, _, local_name = name.rpartition(".")
        line = _line(kind, local_name, step)
        if line and stage_of_step != stage:
            stage = stage_of_step
            yield stage
        if line:
            yield f"  {line}"
        elif kind == "emit":
            yield f"out by port {step['port']}, {step['length']} bytes"
        elif kind in ("parser_error", "checksum_error"):
            yield f"{kind.replace('_', ' ')}: {step.get('error') or step.get('checksum')}"


def _line(kind: str, name: str, step: Mapping[str, Any]) -> str:
    """Return a text for a table (key and entry) or an action (parameters); "" for other steps of the trace."""
    if kind == "table" and not name.startswith("tbl_"):
        return f"table {name} ({_listed(step['key'])}): {step['entry'] if step['hit'] else 'no entry'}"
    if kind == "action" and step["params"]:
        return f"action {name} ({_listed(step['params'])})"
    return ""


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
