"""Renders the data that `status` gathers as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluice import columns
from sluice.config.content import REFUSE

from . import textlayout
from .resources import lines as resources_lines

_INDENT = "  "
"""The indentation of lines that belong to a service."""
_NAMED = 6
"""The largest number of servers whose open connections are listed."""


def render(status: Mapping[str, Any], width: int | None = 100) -> str:
    """Return the status as text. Tables fit a terminal of ``width`` cells; other lines are not wrapped."""
    lines = [f"switch {status['switch']} device {status['device_id']}: {status['role']}"]
    if "services" not in status:
        return lines[0]
    for service in status["services"]:
        share = service["unpinned_share"]
        lines += [
            "",
            f"{service['name']} {service['address']}  mode {service['mode']}  "
            f"{service['weight_changes']} weight changes",
            f"  {service['sentence']}",
            *(f"  {line}" for line in _servers(service["servers"], width)),
            *(f"  {line}" for line in _caps(service)),
            f"  SYNs offered {service['offered']}, refused {service['refused']}; connections pinned "
            f"{service['pinned']}, unpinned {service['unpinned_new']}"
            + (f" ({share:.2%})" if share is not None else "")
            + _moves(service),
            *(f"  {line}" for line in (_content(service["content"]) if "content" in service else ())),
            *(
                f"  {line}"
                for server in service["servers"]
                for line in resources_lines(server["name"], server.get("resources") or {})
            ),
        ]
    if "news" in status:
        lines += news_lines(status["news"], width)
    packets = status["packets"]
    drops = ", ".join(f"{reason} {count}" for reason, count in packets["drops"].items() if count) or "none"
    lines += ["", f"packets forwarded {packets['forwarded']}; dropped: {drops}"]
    if packets["punts"] or packets["punts_limited"]:
        punts = ", ".join(f"{reason} {count}" for reason, count in packets["punts"].items()) or "none"
        limited = sum(packets["punts_limited"].values())
        lines.append(f"to the controller: {punts}; above the limit {limited}")
    if "connections" in status:
        lines.append("connections: " + (", ".join(f"{k} {v}" for k, v in status["connections"].items()) or "none"))
    if status["retired"]:
        lines.append("retired servers that still have connections: " + ", ".join(status["retired"]))
    if status["neighbours_missing"]:
        lines.append("neighbours that do not answer ARP: " + ", ".join(status["neighbours_missing"]))
    return "\n".join(lines)


def _moves(service: Mapping[str, Any]) -> str:
    """Return, as text, how many repeated SYNs moved a connection to another server, and how many RSTs servers sent for
    connections that are not pinned to them; "" if the program does not count these."""
    if service["moved"] is None:
        return ""
    return f"; moved {service['moved']} by a SYN, {service['disowned']} disowned"


def _caps(service: Mapping[str, Any]) -> list[str]:
    """Return lines about the servers with a limit on open connections: the numbers of those nearest to their limit, and
    whether new connections are refused because all servers are full."""
    capped = [server for server in service["servers"] if server.get("max_connections")]
    if not capped:
        return []
    fullest = sorted(capped, key=lambda server: server["open"] / server["max_connections"], reverse=True)[:_NAMED]
    listed = ", ".join(f"{server['name']} {server['open']} of {server['max_connections']}" for server in fullest)
    more = len(capped) - len(fullest)
    lines = [f"open connections: {listed}" + (f" and {more} more servers" if more else "")]
    return [*lines, "every server is full: new connections are refused"] if service["refuses"] else lines


def _content(content: Mapping[str, Any]) -> list[str]:
    def listed(values: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {count}" for name, count in values.items()) or "none"

    agents = [
        f"{row['name']} {row['connections']} connections, {row['waiting']} waiting, {row['memory']} bytes"
        if row["answers"]
        else f"{row['name']} does not answer"
        for row in content["agents"]
    ]
    lines = ["agents: " + "; ".join(agents)]
    if (does := content["without_agents"]) is not None:
        text = "are refused" if does == REFUSE else f"go to {does} unread"
        lines.append(f"no agent is left: new connections {text}")
    lines += [f"agent {row['name']}: {row['error']}" for row in content["agents"] if row["error"]]
    counts = {name.replace("_", " "): count for name, count in content["counts"].items() if name != "by_default"}
    groups = {name: f"{row['opened']} ({row['failed']} failed)" for name, row in content["groups"].items()}
    return [
        *lines,
        f"requests by rule (generation {content['generation']}): {listed(content['rules'])}",
        f"connections by group: {listed(groups)}",
        *(
            f"servers of {name}: {_ability(row['servers'])}"
            for name, row in content["groups"].items()
            if row.get("servers") is not None
        ),
        f"refused: {listed(content['refused'])}",
        listed(counts),
    ]


def _ability(servers: Mapping[str, Any]) -> str:
    """Return the TCP options that all servers of a group support, as their handshakes showed; a dash: not yet known."""
    shown = {name: "-" if servers[name] is None else servers[name] for name in ("mss", "window")}
    sack = {None: "-", True: "yes", False: "no"}[servers["sack"]]
    scale = {None: "-", True: servers["scale"], False: "no"}[servers["scales"]]
    return f"MSS {shown['mss']}, window {shown['window']}, SACK {sack}, window scale {scale}"


def news_lines(news: Mapping[str, Any], width: int | None = 100) -> list[str]:
    """Return the lines of the status that concern flash-crowd control."""
    head = ["destination", *(column.title for column in columns.DESTINATION)]
    rows = [[row["name"], *(str(row[column.name]) for column in columns.DESTINATION)] for row in news["destinations"]]
    addresses = [row[0].rpartition(" ")[2] for row in rows]
    return ["", f"flash crowds  mode {news['mode']}", f"  {news['sentence']}"] + [
        _INDENT + line for line in textlayout.narrow([head, *rows], addresses, _inside(width), left=1)
    ]


def _servers(servers: Sequence[Mapping[str, Any]], width: int | None) -> list[str]:
    """Return the table of servers: in full if it fits the width, else with abbreviated counts, else also without
    addresses."""
    inside = _inside(width)
    for short in (False, True):
        rows = _rows(servers, short=short, address=True)
        if inside is None or textlayout.width_of(rows) <= inside:
            return textlayout.aligned(rows, left=3)
    rows = _rows(servers, short=True, address=False)
    return textlayout.narrow(rows, [server["address"] for server in servers], inside, left=2)


def _inside(width: int | None) -> int | None:
    return None if width is None else width - len(_INDENT)


def _rows(servers: Sequence[Mapping[str, Any]], *, short: bool, address: bool) -> list[list[str]]:
    pinned = any("connections" in server for server in servers)
    head = ["server", "address", "state", "ratio", "weight", "R", "R(all)"]
    counted = [column for column in columns.SERVER if column.title]
    rows = [[*head, *(column.title for column in counted), *(["live"] if pinned else [])]]
    for server in servers:
        counts = [server[column.name] or 0 for column in counted]
        counts += [server.get("connections", 0)] if pinned else []
        rows.append(
            [
                server["name"],
                server["address"],
                server["state"],
                f"{server['ratio']:.4f}",
                str(server["weight"]),
                _r(server["r"]),
                _r(server["r_every_synack"]),
                *(_short(count) if short else str(count) for count in counts),
            ]
        )
    return rows if address else [[row[0], *row[2:]] for row in rows]


def _short(count: int) -> str:
    """Return a count as a text of at most five characters."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= max(size, 100_000):
            tenths = round(10 * count / size)
            return f"{tenths / 10}{unit}" if tenths < 1000 else f"{count // size}{unit}"
    return str(count)


def _r(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:.3f}" if value < 1000 else f"{value:.3g}"
