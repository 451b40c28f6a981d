"""A Tofino under Stratum, as P4Runtime shows it: its limits, and what it refuses, in its words.

After ``stratum/hal/lib/barefoot`` (bfrt_table_manager.cc, bfrt_node.cc, bf_sde_wrapper.cc) and ``p4_service.cc``
of stratum/stratum, and the driver's ``pipe_mgr_meter_drv_workflows.c`` and ``pipe_mgr_select_tbl.c`` of
p4lang/open-p4studio. No packet processing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
from fakeswitch import FakeSwitch
from finsy.proto import U128, p4r, rpc_code, rpc_status
from google.protobuf import any_pb2
from sluice.switch.bucket import Bucket
from sluice.switch.targets import tofinometer

Place = tuple[int, int]


class Refusal(Exception):
    """An update or an entity that is not carried out, and why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class StratumSwitch(FakeSwitch):
    """Members and groups instead of one-shot groups, no metadata, one field of a pair, meters that round."""

    def __init__(self, *, device_id: int = 1) -> None:
        super().__init__(device_id=device_id)
        self.fail_at: tuple[str, int] | None = None
        """It is lost, once, when an update of this kind of entity and type is to be carried out."""
        self.requests: list[set[tuple[str, int]]] = []
        """What each request was about: kinds of entities, and types of updates."""
        self.asked: list[p4r.Entity] = []
        """What was read."""

    def _forget(self) -> None:
        super()._forget()
        self.members: dict[Place, p4r.Action] = {}
        self.groups: dict[Place, tuple[int, ...]] = {}

    def weights(self, service_id: int, alias: str = "choose") -> dict[int, int]:
        """The copies of each server in a service's group."""
        profile = self.schema.tables[alias].action_profile
        assert profile is not None
        for entry in self.entries(alias):
            if int.from_bytes(entry.match[0].exact.value, "big") == service_id:
                copies = [
                    int.from_bytes(self.members[profile.id, member].params[0].value, "big")
                    for member in self.groups[profile.id, entry.action.action_profile_group_id]
                ]
                return {server: copies.count(server) for server in copies}
        return {}

    def surplus(self) -> tuple[int, int]:
        """Groups that no entry uses, and members that no group uses."""
        used = set(self._groups_in_use())
        members = {(place[0], number) for place, numbers in self.groups.items() for number in numbers}
        return len(self.groups.keys() - used), len(self.members.keys() - members)

    # -- the pipeline

    async def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: Any
    ) -> p4r.SetForwardingPipelineConfigResponse:
        await self._check_device(request.device_id, context)
        if request.action == p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "RECONCILE_AND_COMMIT action not supported yet")
        if not request.config.p4_device_config.startswith(b"\x0a"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Unknown format for p4_device_config.")
        return await super().SetForwardingPipelineConfig(request, context)

    async def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: Any
    ) -> p4r.GetForwardingPipelineConfigResponse:
        await self._check_device(request.device_id, context)
        return await super().GetForwardingPipelineConfig(request, context)

    async def _check_device(self, device_id: int, context: Any) -> None:
        if device_id == 0:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Invalid device ID.")

    async def _check_pipeline(self, context: Any) -> None:
        if self.config is None:
            text = "No valid forwarding pipeline config has been pushed for any node so far."
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)

    async def _check_primary(self, request: Any, context: Any) -> None:
        primary = self._primary()
        bid = U128.decode(request.election_id)
        if primary is None or bid != primary.election_id:
            text = f"Election ID {{ low: {bid} }} is not active for role <default>"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)

    # -- writes

    async def Write(self, request: p4r.WriteRequest, context: Any) -> p4r.WriteResponse:
        await self._check_device(request.device_id, context)
        await self._check_pipeline(context)
        await self._check_primary(request, context)
        errors: list[p4r.Error] = []
        for update in request.updates:
            if (update.entity.WhichOneof("entity"), update.type) == self.fail_at:
                self.fail_at = None
                await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
            try:
                self._carry_out(update)
                errors.append(p4r.Error())
            except Refusal as refusal:
                errors.append(p4r.Error(canonical_code=refusal.code, message=refusal.text))
        self.requests.append({(update.entity.WhichOneof("entity") or "", update.type) for update in request.updates})
        await _answer(errors, "One or more write operations failed.", context)
        self.writes.append(request)
        return p4r.WriteResponse()

    def tried(self, update: p4r.Update) -> str:
        """What an update is refused with; nothing when it is carried out."""
        try:
            self._carry_out(update)
        except Refusal as refusal:
            return refusal.text
        return ""

    def _carry_out(self, update: p4r.Update) -> None:
        match update.entity.WhichOneof("entity"):
            case "table_entry":
                self._table_entry(update.type, update.entity.table_entry)
            case "action_profile_member":
                self._member(update.type, update.entity.action_profile_member)
            case "action_profile_group":
                self._group(update.type, update.entity.action_profile_group)
            case "meter_entry":
                self._meter(update.entity.meter_entry)
            case "register_entry":
                self._update(update)
            case "digest_entry":
                self._digest(update)
            case _:
                raise Refusal(rpc_code.UNIMPLEMENTED, f"Unsupported entity type: {update}")

    def _table_entry(self, kind: int, entry: p4r.TableEntry) -> None:
        profile = self.schema.tables[entry.table_id].action_profile
        if kind != p4r.Update.DELETE:
            match entry.action.WhichOneof("type"):
                case "action" if profile is None:
                    pass
                case "action_profile_group_id" if profile is not None:
                    if (profile.id, entry.action.action_profile_group_id) not in self.groups:
                        raise Refusal(rpc_code.NOT_FOUND, "Could not add table entry with: group not found")
                case "action_profile_action_set":
                    raise Refusal(rpc_code.UNIMPLEMENTED, "Unsupported action type: 4")
                case other:
                    raise AssertionError(f"the controller writes {other} into table {entry.table_id}")
        kept = p4r.TableEntry()
        kept.CopyFrom(entry)
        kept.ClearField("metadata")
        error = self._update_table(kind, kept)
        if error.canonical_code:
            raise Refusal(error.canonical_code, f"Could not write table entry: {error.message}")

    def _member(self, kind: int, member: p4r.ActionProfileMember) -> None:
        place = (member.action_profile_id, member.member_id)
        if kind == p4r.Update.INSERT:
            if place in self.members:
                raise Refusal(rpc_code.ALREADY_EXISTS, "Could not add action profile member with: Already exists")
            size = self.schema.action_profiles[member.action_profile_id].size
            if sum(profile == member.action_profile_id for profile, _ in self.members) >= size:
                raise Refusal(rpc_code.RESOURCE_EXHAUSTED, "Could not add action profile member with: No space")
        elif place not in self.members:
            raise Refusal(rpc_code.NOT_FOUND, "Could not delete action profile member with: Object not found")
        if kind == p4r.Update.DELETE:
            if any(place[0] == profile and place[1] in group for (profile, _), group in self.groups.items()):
                raise Refusal(rpc_code.INTERNAL, "Could not delete action profile member with: In use")
            del self.members[place]
        else:
            self.members[place] = member.action

    def _group(self, kind: int, group: p4r.ActionProfileGroup) -> None:
        place = (group.action_profile_id, group.group_id)
        if kind == p4r.Update.DELETE:
            if place not in self.groups:
                raise Refusal(rpc_code.NOT_FOUND, "Could not delete action profile group with: Object not found")
            if place in self._groups_in_use():
                raise Refusal(rpc_code.INTERNAL, "Could not delete action profile group with: In use")
            del self.groups[place]
            return
        if any(member.weight > 1 for member in group.members):
            raise Refusal(rpc_code.UNIMPLEMENTED, "Member weights greater than 1 are not supported.")
        numbers = tuple(member.member_id for member in group.members)
        most = self.schema.action_profiles[group.action_profile_id].max_group_size
        if kind == p4r.Update.INSERT and place in self.groups:
            raise Refusal(rpc_code.ALREADY_EXISTS, "Could not add action profile group with: Already exists")
        if len(set(numbers)) < len(numbers):
            raise Refusal(rpc_code.ALREADY_EXISTS, "Could not add action profile group with: Already exists")
        if any((place[0], number) not in self.members for number in numbers):
            raise Refusal(rpc_code.NOT_FOUND, "Could not add action profile group with: Object not found")
        if len(numbers) > group.max_size or (most and group.max_size > most):
            raise Refusal(rpc_code.INVALID_ARGUMENT, "Could not add action profile group with: Invalid arguments")
        self.groups[place] = numbers

    def _groups_in_use(self) -> Iterator[Place]:
        for entry in self.tables.values():
            profile = self.schema.tables[entry.table_id].action_profile
            if profile is not None:
                yield (profile.id, entry.action.action_profile_group_id)

    def _meter(self, entry: p4r.MeterEntry) -> None:
        cell = (entry.meter_id, entry.index.index)
        self.meters.pop(cell, None)
        if not entry.HasField("config"):
            return
        asked = entry.config
        if asked.pir < asked.cir:
            text = f"Meter configuration {asked} is invalid: committed rate cannot be greater than peak rate."
            raise Refusal(rpc_code.INTERNAL, text)
        held = tofinometer.held(Bucket(asked.cir, asked.cburst))
        config = p4r.MeterConfig(cir=held.rate, cburst=held.burst, pir=held.rate, pburst=held.burst)
        self.meters[cell] = config

    def _digest(self, update: p4r.Update) -> None:
        """bf_sde_wrapper.cc, InsertDigest: of the configuration it takes the timeout, which goes to the hardware."""
        assert update.entity.digest_entry.config.max_timeout_ns > 0, "what a timeout of 0 does is not known"
        error = self._update_digest(update.type, update.entity.digest_entry)
        if error.canonical_code:
            raise Refusal(error.canonical_code, "'learn_obj->bfRtLearnCallbackRegister' failed: Already exists")

    # -- reads

    async def Read(self, request: p4r.ReadRequest, context: Any) -> AsyncIterator[p4r.ReadResponse]:
        await self._check_device(request.device_id, context)
        await self._check_pipeline(context)
        errors: list[p4r.Error] = []
        self.asked += request.entities
        for wanted in request.entities:
            try:
                entities = self._found(wanted)
            except Refusal as refusal:
                errors.append(p4r.Error(canonical_code=refusal.code, message=refusal.text))
                continue
            errors.append(p4r.Error())
            yield p4r.ReadResponse(entities=entities)
        yield p4r.ReadResponse()
        await _answer(errors, "One or more read operations failed.", context)

    def _found(self, wanted: p4r.Entity) -> list[p4r.Entity]:
        match wanted.WhichOneof("entity"):
            case "action_profile_member":
                return [
                    p4r.Entity(
                        action_profile_member=p4r.ActionProfileMember(
                            action_profile_id=profile, member_id=member, action=action
                        )
                    )
                    for (profile, member), action in self.members.items()
                    if profile == wanted.action_profile_member.action_profile_id
                ]
            case "action_profile_group":
                return [
                    p4r.Entity(
                        action_profile_group=p4r.ActionProfileGroup(
                            action_profile_id=profile,
                            group_id=group,
                            max_size=len(members),
                            members=[p4r.ActionProfileGroup.Member(member_id=m, weight=1) for m in members],
                        )
                    )
                    for (profile, group), members in self.groups.items()
                    if profile == wanted.action_profile_group.action_profile_id
                ]
            case "register_entry":
                self._check_field(wanted.register_entry.register_id)
                return self._read(wanted)
            case _:
                return self._read(wanted)

    def _check_field(self, register_id: int) -> None:
        for register in self.schema.p4info.registers:
            if register.preamble.id == register_id and register.type_spec.HasField("struct"):
                members = self.schema.p4info.type_info.structs[register.type_spec.struct.name].members
                if all(member.name != "f1" for member in members):
                    raise Refusal(rpc_code.INTERNAL, "Could not find register data field id.")


async def _answer(errors: list[p4r.Error], text: str, context: Any) -> None:
    """End the call with the errors, where there are any (p4_service.cc, ToGrpcStatus)."""
    if not any(error.canonical_code for error in errors):
        return
    status = rpc_status.Status(code=rpc_code.UNKNOWN, message=text)
    for error in errors:
        detail = any_pb2.Any()
        detail.Pack(error)
        status.details.append(detail)
    await context.abort(grpc.StatusCode.UNKNOWN, text, (("grpc-status-details-bin", status.SerializeToString()),))
