"""`simple_switch`: runs the embedded switch, and serves sessions of simple_switch_CLI in addition."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import cast

from finsy.proto import p4i
from google.protobuf import text_format

from tools.stf.control import Control
from topo.testbed.errors import SetupError
from topo.testbed.p4runtime import Client, Refused
from topo.testbed.processes import Process
from topo.testbed.switches import EMBEDDED, Endpoints
from topo.testbed.switches.piped import Switch, embedded_binary

from .p4info import p4info_of
from .session import Session

_LOOK_S = 0.1
"""Seconds between two checks whether the switch still runs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the switch until it ends, or until SIGTERM or SIGINT arrives; return its exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--thrift-port", type=int, default=9090)
    parser.add_argument("--device-id")  # accepted and ignored: the id has no visible effect
    options, words = parser.parse_known_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="simple-switch-") as folder:
            return _run(words, options.thrift_port, Path(folder))
    except (SetupError, Refused, OSError, ValueError) as error:
        print(f"simple_switch: {error}", file=sys.stderr)
        return 1


def _run(words: Sequence[str], port: int, folder: Path) -> int:
    binary, info, address = embedded_binary(), folder / "p4info.txtpb", f"unix:{folder / 'grpc'}"
    program = _program(words)
    p4info = p4info_of(json.loads(program.read_text())) if program else p4i.P4Info()
    info.write_text(text_format.MessageToString(p4info))
    with_info = ["--p4info", str(info)] if program else []
    process = Process("the switch", [str(binary), *words, *with_info, "--grpc-server-addr", address], log=None)
    switch = Switch(EMBEDDED, process, Endpoints(address, folder))

    def end(_number: int, _frame: FrameType | None) -> None:
        if process.exit_code() is None:
            os.kill(process.pid, signal.SIGTERM)

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        try:
            switch.await_ready()
        except SetupError:
            if (code := process.exit_code()) is None:
                raise
            return code  # the switch itself has printed the reason
        client = Client.primary(address)
        try:
            with _Sessions(port, Control(client, p4info), p4info) as sessions:
                threading.Thread(target=sessions.serve_forever, daemon=True).start()
                # wait() is avoided: a signal that arrives just before the call would be handled only after wait()
                # returns.
                while (code := process.exit_code()) is None:
                    time.sleep(_LOOK_S)
                return code
        finally:
            client.close()
    finally:
        switch.end()


def _program(words: Sequence[str]) -> Path | None:
    """Return the program of a command line: the last word that ends in `.json`; None without such a word."""
    programs = [word for word in words if word.endswith(".json")]
    return Path(programs[-1]) if programs else None


class _Sessions(socketserver.ThreadingTCPServer):
    """A server of simple_switch_CLI sessions on a port of the loopback interface."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, control: Control, p4info: p4i.P4Info) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.control, self.p4info = control, p4info


class _Connection(socketserver.BaseRequestHandler):
    """A client's connection; it runs one session."""

    def handle(self) -> None:
        sessions = cast(_Sessions, self.server)
        # If the client has disconnected, no answer is needed.
        with suppress(OSError), self.request.makefile("r") as commands, self.request.makefile("w") as replies:
            Session(sessions.control, sessions.p4info, commands, replies).cmdloop()


if __name__ == "__main__":
    sys.exit(main())
