"""Tests of the reconciler: it writes only differences, and no entity before the entities to which it refers."""

from __future__ import annotations

from dataclasses import replace

from configs import web
from fakeswitch import FakeSwitch
from finsy.proto import p4r
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.features import world_of
from sluice.loops.commands import reconfigure
from sluice.names import Action, Meter, Table
from sluice.switch.admission import Bucket, changes
from sluice.switch.programmer import initial_state
from sluice.switch.reconcile import read_back, reconcile, wanted_entries
from sluice.switch.session import Session


def _config(rate: int = 250) -> Config:
    limit = f"  admission: {{rate_per_s: {rate}, burst: 25}}\n  servers:"
    return parse(web().replace("  servers:", limit))


async def test_what_is_referred_to_comes_first_and_goes_last(switch: FakeSwitch, session: Session) -> None:
    readback = await read_back(session)
    state = initial_state(_config())
    await reconcile(session, readback, state)
    names = {table.id: table.alias for table in switch.schema.tables}
    tables = [u.entity.table_entry for u in switch.writes[0].updates if u.entity.HasField("table_entry")]
    order = list(dict.fromkeys(names[entry.table_id] for entry in tables))
    assert order.index("servers") < order.index("choose") < order.index("services")
    assert order.index("owned") < order.index("services")

    single_server = parse(web().replace("  - {name: s2, address: 10.0.3.2, port: 80}\n", ""))
    await reconcile(session, readback, initial_state(single_server))
    deleted = [u for u in switch.writes[-1].updates if u.type == p4r.Update.DELETE]
    order = list(dict.fromkeys(names[u.entity.table_entry.table_id] for u in deleted))
    assert order == ["services", "origins", "servers"]


async def test_read_back_state_needs_no_write(switch: FakeSwitch, session: Session) -> None:
    state = initial_state(_config(), {"10.0.2.2": (2, "02:aa:00:00:00:02")})
    assert await reconcile(session, await read_back(session), state) > 0
    before = len(switch.writes)
    assert await reconcile(session, await read_back(session), state) == 0
    assert len(switch.writes) == before


async def test_meter_is_written_only_on_change_for_a_write_refills_it(switch: FakeSwitch, session: Session) -> None:
    readback = await read_back(session)
    await reconcile(session, readback, initial_state(_config()))
    assert await reconcile(session, readback, initial_state(_config(rate=251))) == 1, "a small change is a change"
    admission = (switch.schema.meters[str(Meter.ADMISSION)].id, 1)
    switch.meters[admission].cir -= 1
    rounded = await read_back(session)
    assert await reconcile(session, rounded, initial_state(_config(rate=251))) == 0, "BMv2 reads 249 back for 250"
    without = replace(initial_state(parse(web())))
    assert await reconcile(session, rounded, without) == 1
    assert admission not in switch.meters, "without a limit everything is green"


def test_rounding_is_forgiven_only_in_what_was_read_back() -> None:
    have, want = {1: Bucket(1000, 100)}, {1: Bucket(1005, 100)}
    assert list(changes(Meter.ADMISSION, have, want, rounded=True)) == []
    assert len(list(changes(Meter.ADMISSION, have, want, rounded=False))) == 1
    assert len(list(changes(Meter.ADMISSION, have, {1: Bucket(1100, 100)}, rounded=True))) == 1


async def test_weights_change_in_one_update(switch: FakeSwitch, session: Session) -> None:
    readback = await read_back(session)
    state = initial_state(_config())
    await reconcile(session, readback, state)
    assert await reconcile(session, readback, replace(state, weights={1: {1: 1, 2: 255}})) == 1
    (update,) = switch.writes[-1].updates
    assert update.type == p4r.Update.MODIFY
    members = update.entity.table_entry.action.action_profile_action_set.action_profile_actions
    assert [m.weight for m in members] == [1, 255]


async def test_same_weights_in_another_order_are_the_same(switch: FakeSwitch, session: Session) -> None:
    state = initial_state(_config())
    await reconcile(session, await read_back(session), state)
    for entry in switch.entries("choose"):
        members = entry.action.action_profile_action_set.action_profile_actions
        turned = list(reversed(members))
        del members[:]
        members.extend(turned)
    assert await reconcile(session, await read_back(session), state) == 0


async def test_leading_zeros_do_not_matter(switch: FakeSwitch, session: Session) -> None:
    state = initial_state(_config())
    await reconcile(session, await read_back(session), state)
    for entry in switch.entries("servers"):
        for param in entry.action.action.params:
            param.value = b"\0" + param.value
    assert await reconcile(session, await read_back(session), state) == 0


def test_an_endpoint_that_a_server_has_left_may_be_a_services() -> None:
    own = "  - {name: s2, address: 10.0.3.2, port: 80}\n"
    world = world_of(parse(web()))
    new = "- {name: new, address: 10.0.3.2, port: 80, servers: [{name: s3, address: 10.0.3.3, port: 80}]}"
    reconfigure(world, parse(web(more=new).replace(own, "")), 0.0)
    entries = {str(entry.match): entry.action for entry in wanted_entries(world.state(), [Table.SERVICES])}
    assert len(entries) == 4, "two services and a server of each"
    (action,) = (action for match, action in entries.items() if "10.0.3.2" in match)
    assert action is not None and str(Action.TO_SERVICE) in str(action)
