"""Programs a switch that measures all transfers of one server, or reads its slots: in the switch's namespace.

python -m experiments.sabtswitch program
python -m experiments.sabtswitch read
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.proto import p4r
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.names import Action, Table
from sluice.switch.choice import program_for
from sluice.switch.programmer import Programmer
from sluice.switch.registers import open_registers
from sluice.switch.session import Session
from sluice.switch.transfers import Transfers
from sluice.switch.transfers import read as read_transfers

from experiments.sabtnet import CLIENT, FAR, GRPC, MACS, PORT, SERVER, VIP

CONFIG = f"""\
switch: {{address: "{GRPC}", device_id: 1, pipeline: ""}}
interfaces:
- {{port: 1, mac: "{MACS["sw1"]}", address: 10.0.1.1/24}}
- {{port: 2, mac: "{MACS["sw2"]}", address: 10.0.2.1/24}}
routes: [{{to: {FAR}, via: {CLIENT}}}]
services:
- {{name: web, address: {VIP}, port: {PORT}, servers: [{{name: s1, address: {SERVER}, port: {PORT}}}]}}
control: "CONTROL"
"""
PATIENCE_S = 10.0


def configuration() -> Config:
    """Return the switch's; nobody listens on its control socket."""
    return parse(CONFIG.replace("CONTROL", str(Path(tempfile.gettempdir()) / "sabt.sock")))


def program() -> None:
    """Load the program, with one service and the server's entry."""
    neighbours = {CLIENT: (1, MACS["cli"]), SERVER: (2, MACS["srv"])}
    with Programmer(configuration(), neighbours) as switch:
        number = switch.server("web", "s1").id
        action = P4TableAction(Action.MANAGE, measured=1, sampling=0, closed=0, send_cap=0, receive_cap=0)
        entry = P4TableEntry(Table.RESOURCES, match=P4TableMatch(server=number), action=action)
    asyncio.run(_insert(entry))


async def _insert(entry: P4TableEntry) -> None:
    async with await _session() as session:
        update = p4r.Update(type=p4r.Update.INSERT, entity=entry.encode(session.pipeline.schema))
        await session.write([update])


async def _session() -> Session:
    at = configuration().switch
    return Session(at.address, at.device_id, await program_for(at), 1 << 60)


async def slots() -> list[dict[str, float]]:
    """Return the columns of all slots that are somebody's."""
    async with await _session() as session:
        seen = await read_transfers(await open_registers(session, None))
    names = [one.name for one in fields(Transfers)]
    told = [{name: getattr(seen, name)[slot].item() for name in names} for slot in (seen.flow >= 0).nonzero()[0]]
    return [{**row, "rtt_s": seen.rtt_s[int(row["flow"]) % seen.flow.size].item()} for row in told]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Program a switch, or read its transfers.")
    parser.add_argument("what", choices=["program", "read"])
    if parser.parse_args(arguments).what == "program":
        program()
    else:
        print(json.dumps(asyncio.run(slots())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
