"""Test that a newer controller replaces an older one without losing a connection, while a client has open connections
and makes new ones."""

from __future__ import annotations

from topo.testbed.network import READY_S
from topo.tests import needs
from topo.tests.fixtures import lab_fixture
from topo.tests.steadynet import KEPT, Load, SteadyNetwork

pytestmark = needs.ROOT

ROUTES, SERVERS_TABLE = "SluiceIngress.forward.routes", "SluiceIngress.translate.servers"


net = lab_fixture(SteadyNetwork)


def test_controllers_and_programs_are_replaced_under_load(net: SteadyNetwork) -> None:
    first = net.start_version(net.version("first"))
    assert "adopted=no" in first.await_output("sluice: ready", READY_S)
    load = Load(net)
    load.goes_on()

    # A newer controller on standby takes over after the first controller was killed.
    newer = net.start_version(net.version("newer"))
    newer.await_output("sluice: standby", READY_S)
    first.stop(timeout_s=0.0)
    assert newer.await_output("sluice: ready", READY_S).endswith("adopted=yes updates=0")
    load.goes_on()

    # A third controller starts after the second has ended. Its P4 program has a larger table, and the switch's state is
    # kept.
    newer.stop()
    load.goes_on()
    newest = net.start_version(net.version("newest", ROUTES, 16384))
    assert newest.await_output("sluice: ready", READY_S).endswith("adopted=yes updates=0")
    assert "asking the switch to replace its program and to keep its state" in newest.output()
    load.goes_on()
    newest.stop()

    # A controller whose P4 program has too small a table for the switch's entries reports this, and changes nothing.
    bad = net.start_version(net.version("bad", SERVERS_TABLE, 1))
    assert bad.wait(READY_S) == 1
    assert "whose state cannot be kept" in bad.output() and "Nothing was changed" in bad.output()
    load.goes_on()
    again = net.start_version(net.directory / "newest/sluice.yaml")
    assert again.await_output("sluice: ready", READY_S).endswith("adopted=yes updates=0")
    load.goes_on()

    load.stop()
    whole = load.progress()
    assert whole.faults == [] and whole.kept_answers > 15 * KEPT and whole.new_answers > 50
    again.stop()
