"""Test with real TCP of a server whose process ends, so that its host refuses connections, while all servers have open
connections."""

from __future__ import annotations

from contextlib import ExitStack

from topo.plan.network import LOAD_CLIENT, SERVER_NAMES, VIP, WEB_PORT
from topo.testbed.namespaces import connect_in
from topo.tests import needs
from topo.tests.talking import TIMEOUT_S, TalkingLab, connections

pytestmark = needs.LONG

HELD, NEW = 30, 90
SLACK = 4
"""Number of connections by which the server may exceed its share: the switch learns of the process's end by the first
RST, and its selection of servers deviates from the shares by one or two connections."""


def test_a_server_whose_process_ended_gets_no_more_than_its_share() -> None:
    """The server's host answers SYNs by RSTs, and the ratios stay equal, so that only the switch can limit the server's
    connections to its share."""
    with TalkingLab() as lab, connections(lab, HELD) as existing, ExitStack() as stack:
        assert {connection.server for connection in existing} == set(SERVER_NAMES)
        lab.talkers[SERVER_NAMES[0]].stop()
        refused = 0
        for _ in range(NEW):
            client = lab.pid(LOAD_CLIENT.name)
            try:
                stack.enter_context(connect_in(client, (str(VIP), WEB_PORT), TIMEOUT_S))
            except ConnectionRefusedError:
                refused += 1
        print(f"{refused} of {NEW} refused")
        assert 0 < refused <= NEW / len(SERVER_NAMES) + SLACK
