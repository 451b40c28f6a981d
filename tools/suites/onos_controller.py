"""Imitates ONOS towards a switch: its session, its messages, and its reads after a device has connected.

The messages follow ONOS's module protocols/p4runtime (StreamClientImpl, PipelineConfigClientImpl, ReadRequestImpl and
the codecs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from topo.testbed.entities import Entities, canonical
from topo.testbed.p4runtime import Client

from .errors import expect
from .wired import Wired

ELECTION_ID = 7 << 64 | 1
"""A 128-bit election id of the form that ONOS derives from terms of mastership."""
COOKIE = 0xFEDC_BA98_7654_3210
"""A pipeline cookie of the form that ONOS sends: the 64-bit fingerprint of a pipeconf."""
Match = tuple[int, tuple[bytes, ...]]
"""The priority of a table entry, and its serialised match fields."""


@dataclass(frozen=True)
class Pipeline:
    """A compiled pipeline."""

    name: str
    program: Path
    p4info: Path

    def info(self) -> p4i.P4Info:
        """Return the pipeline's P4Info."""
        return text_format.Parse(self.p4info.read_text(), p4i.P4Info())


class Onos:
    """The session of a master that has pushed its pipeline to the switch. Methods raise Refused."""

    def __init__(self, switch: Wired, pipeline: Pipeline) -> None:
        self.switch = switch
        self.entities = Entities(pipeline.info())
        self.client = Client(switch.address, election_id=ELECTION_ID)
        self.client.push(pipeline.info(), pipeline.program.read_bytes(), COOKIE)

    def write(self, kind: p4r.Update.Type.ValueType, *entities: p4r.Entity) -> None:
        """Send a write request with an update for each entity."""
        self.client.write(p4r.Update(type=kind, entity=entity) for entity in entities)

    def flows(self, table: str) -> dict[Match, p4r.TableEntry]:
        """Read a table's entries with their counters, by priority and match fields."""
        pattern = p4r.TableEntry(table_id=self.entities.table(table).preamble.id, counter_data=p4r.CounterData())
        read = self.client.read([p4r.Entity(table_entry=pattern)])
        return {matched(entity.table_entry): entity.table_entry for entity in read}

    def packet_out(self, frame: bytes, port: int) -> None:
        """Send a packet-out whose only metadata field, as in ONOS's, is the port; `_padding` is omitted."""
        field = p4r.PacketMetadata(metadata_id=1, value=canonical(port))
        self.client.packet_out(p4r.PacketOut(payload=frame, metadata=[field]))

    def profile(self) -> int:
        """Return the id of the pipeline's first action profile."""
        return self._profile().preamble.id

    def member(self, number: int, action: str, param: int) -> p4r.Entity:
        """Return a member of the first action profile; the member's action has a single parameter."""
        action_id = next(each.preamble.id for each in self.entities.p4info.actions if each.preamble.name == action)
        params = [p4r.Action.Param(param_id=1, value=canonical(param))]
        member = p4r.ActionProfileMember(action_profile_id=self.profile(), member_id=number)
        member.action.CopyFrom(p4r.Action(action_id=action_id, params=params))
        return p4r.Entity(action_profile_member=member)

    def group(self, number: int, weights: Mapping[int, int]) -> p4r.Entity:
        """Return a group of the first action profile, with the given weight for each member."""
        members = [p4r.ActionProfileGroup.Member(member_id=key, weight=weight) for key, weight in weights.items()]
        largest = self._profile().max_group_size
        group = p4r.ActionProfileGroup(action_profile_id=self.profile(), group_id=number, max_size=largest)
        group.members.extend(members)
        return p4r.Entity(action_profile_group=group)

    def _profile(self) -> p4i.ActionProfile:
        return self.entities.p4info.action_profiles[0]


def matched(entry: p4r.TableEntry) -> Match:
    """Return an entry's priority and match fields, which identify the entry within its table."""
    fields = sorted(entry.match, key=lambda field: field.field_id)
    return entry.priority, tuple(field.SerializeToString(deterministic=True) for field in fields)


def multicast_group(number: int, ports: Sequence[int] = ()) -> p4r.Entity:
    """Return a multicast group with a replica for each port; in a read, number 0 stands for all groups."""
    entry = p4r.MulticastGroupEntry(multicast_group_id=number, replicas=_replicas(ports))
    made = p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
    return p4r.Entity(packet_replication_engine_entry=made)


def clone_session(number: int, ports: Sequence[int] = ()) -> p4r.Entity:
    """Return a clone session with a replica for each port; in a read, number 0 stands for all sessions."""
    entry = p4r.CloneSessionEntry(session_id=number, replicas=_replicas(ports))
    made = p4r.PacketReplicationEngineEntry(clone_session_entry=entry)
    return p4r.Entity(packet_replication_engine_entry=made)


def _replicas(ports: Sequence[int]) -> list[p4r.Replica]:
    return [p4r.Replica(egress_port=port, instance=1) for port in ports]


def loads(onos: Onos) -> None:
    """Check that the cookie is read back, and that all reads that ONOS sends to a new device succeed."""
    expect(onos.client.pipeline_cookie() == COOKIE, "the cookie is not the one that was given with the pipeline")
    info = onos.entities.p4info
    wanted = [p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True)), multicast_group(0), clone_session(0)]
    for table in info.tables:
        wanted.append(p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id)))
    for direct in info.direct_counters:
        entry = p4r.TableEntry(table_id=direct.direct_table_id)
        wanted.append(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry)))
    for counter in info.counters:
        wanted.append(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id)))
    for profile in info.action_profiles:
        number = profile.preamble.id
        wanted.append(p4r.Entity(action_profile_group=p4r.ActionProfileGroup(action_profile_id=number)))
        wanted.append(p4r.Entity(action_profile_member=p4r.ActionProfileMember(action_profile_id=number)))
    onos.client.read(wanted)
