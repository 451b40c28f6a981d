"""``sluice check`` and ``sluice match``: evaluate rules offline, with the rule engine in the agent's program."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from sluice import programs
from sluice.agents import binary
from sluice.agents.messages import Problem
from sluice.config import resourcescheck
from sluice.config.load import Complaint, ConfigError, complaint_of, load, load_with_lines
from sluice.config.model import Config, ServiceConfig
from sluice.config.yamllines import Finding, resolve
from sluice.config.yamllines import Path as Place
from sluice.loops.commands import Refused


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sluice match``."""
    parser.add_argument("service", metavar="SERVICE", help="a content service")
    parser.add_argument("--source", metavar="ADDRESS", help="the client's address")
    request = parser.add_mutually_exclusive_group(required=True)
    request.add_argument("--request", metavar="FILE", help="a file with the client's bytes; - for standard input")
    request.add_argument("--get", metavar="URL", help="an HTTP request of this URL")


def check(options: argparse.Namespace) -> int:
    """Check a configuration, and its rules by the rule engine if it is installed. Returns the exit status: 0 if the
    configuration is valid. Otherwise raises ConfigError; with ``--json``, prints the problems and returns 1 instead."""
    if not options.json:
        return _check(options)
    try:
        return _check(options)
    except ConfigError as error:
        complaints = [asdict(complaint) for complaint in error.complaints]
        print(json.dumps({"config": options.config, "good": False, "complaints": complaints}, indent=2))
        return 1


def _check(options: argparse.Namespace) -> int:
    config, lines = load_with_lines(options.config)
    program = programs.find(binary.NAME) if config.contents else None
    complaints: list[Complaint] = []
    for index, service in enumerate(config.services):
        if service.content is None or program is None:
            continue
        below: Place = ("services", index, "content")
        problems, remarks = binary.check(program, service.content)
        complaints += [_complaint(options.config, problem, below, lines) for problem in problems]
        for remark in remarks:
            print(_complaint(options.config, remark, below, lines), file=sys.stderr)
    for finding in resourcescheck.warnings(config):
        print(complaint_of(options.config, finding, lines), file=sys.stderr)
    if complaints:
        raise ConfigError(sorted(complaints, key=lambda complaint: (complaint.line, complaint.field)))
    servers = len({(server.address, server.port) for service in config.services for server in service.members})
    if options.json:
        shown = {"config": options.config, "good": True, "services": len(config.services), "servers": servers}
        print(json.dumps(shown, indent=2))
    else:
        print(f"{options.config}: good ({len(config.services)} services, {servers} servers)")
    if config.contents and program is None:
        print(
            f"{options.config}: the contents of `match` are not checked: {programs.missing(binary.NAME)}",
            file=sys.stderr,
        )
    return 0


def _complaint(name: str, problem: Problem, below: Place, lines: dict[Place, int]) -> Complaint:
    path = resolve(problem.path, below, lines)
    return complaint_of(name, Finding(path, problem.message, problem.remedy), lines)


def match(options: argparse.Namespace) -> int:
    """Print which rule decides a request. Returns the exit status: 0 if the request is forwarded, otherwise 1. Raises
    ConfigError; Refused if the service has no rules or the rule engine is not installed; OSError if the file with the
    request cannot be read."""
    service = _content(load(options.config), options.service)
    program = programs.find(binary.NAME)
    if program is None:
        raise Refused(programs.missing(binary.NAME))
    assert service.content is not None
    address = f"{service.address}:{service.port}"
    is_taken, text = binary.decide(program, service.content, address, options.source, _request(options))
    print(json.dumps({"taken": is_taken, "text": text}) if options.json else text)
    return 0 if is_taken else 1


def _content(config: Config, name: str) -> ServiceConfig:
    candidates = [service for service in config.services if service.content]
    for service in candidates:
        if service.name == name:
            return service
    raise Refused(
        f"no content service {name!r}; there is: {', '.join(service.name for service in candidates) or 'none'}"
    )


def _request(options: argparse.Namespace) -> bytes:
    if options.get is None:
        return sys.stdin.buffer.read() if options.request == "-" else Path(options.request).read_bytes()
    url = urlsplit(options.get)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return f"GET {target} HTTP/1.1\r\nHost: {url.netloc or 'localhost'}\r\n\r\n".encode()
