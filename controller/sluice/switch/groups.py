"""Groups where members have no weights: repeated members, in a new group to which an entry is switched over.

Packets see the old group or the new one, whole. Every step is a request of its own, and what a step needs was done by
the one before: a switch that is lost on the way serves the old groups, and what lies about unused is removed by whoever
reads the switch next.

| step | |
|---|---|
| 1 | what an interrupted change left is removed: groups, then members |
| 2 | new members, a copy for each unit of weight |
| 3 | new groups |
| 4 | entries: those of groups, switched over, and all others, in the order given |
| 5 | groups without an entry are removed |
| 6 | and their members |

Entries are kept as one-shot entries everywhere else; only here are they taken apart and put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from finsy import P4Schema
from finsy.proto import p4r

from .keys import Key, key_of

_Place = tuple[int, int]
"""The number of an action profile, and a member or group of it."""


@dataclass(frozen=True, slots=True)
class _Group:
    profile: int
    number: int
    members: tuple[int, ...]


class _Free:
    """Numbers of an action profile that nothing has, from 1: Stratum reads 0 as all of them."""

    def __init__(self, taken: set[_Place]) -> None:
        self._taken = taken
        self._last: dict[int, int] = {}

    def take(self, profile: int) -> int:
        number = self._last.get(profile, 0) + 1
        while (profile, number) in self._taken:
            number += 1
        self._last[profile] = number
        return number


@dataclass(slots=True)
class Groups:
    """The groups and members that a switch holds, by the entries that use them."""

    schema: P4Schema
    _used: dict[Key, _Group] = field(default_factory=dict[Key, _Group])
    _loose_groups: set[_Place] = field(default_factory=set[_Place])
    _loose_members: set[_Place] = field(default_factory=set[_Place])

    def adopt(self, entities: Iterable[p4r.Entity]) -> list[p4r.TableEntry]:
        """From everything that was read: the entries, those of groups as one-shot entries."""
        entries: list[p4r.TableEntry] = []
        members: dict[_Place, p4r.Action] = {}
        groups: dict[_Place, tuple[int, ...]] = {}
        for entity in entities:
            match entity.WhichOneof("entity"):
                case "table_entry":
                    entries.append(entity.table_entry)
                case "action_profile_member":
                    member = entity.action_profile_member
                    members[member.action_profile_id, member.member_id] = member.action
                case "action_profile_group":
                    group = entity.action_profile_group
                    groups[group.action_profile_id, group.group_id] = tuple(m.member_id for m in group.members)
                case _:
                    pass
        self._used.clear()
        whole = [self._joined(entry, groups, members) for entry in entries]
        used = {(group.profile, group.number) for group in self._used.values()}
        kept = {(group.profile, member) for group in self._used.values() for member in group.members}
        self._loose_groups, self._loose_members = set(groups) - used, set(members) - kept
        return whole

    def _joined(
        self, entry: p4r.TableEntry, groups: Mapping[_Place, tuple[int, ...]], members: Mapping[_Place, p4r.Action]
    ) -> p4r.TableEntry:
        number = entry.action.action_profile_group_id
        if not number:
            return entry
        profile = self._profile(entry.table_id)
        group = _Group(profile, number, groups.get((profile, number), ()))
        self._used[key_of(entry)] = group
        joined = p4r.TableEntry()
        joined.CopyFrom(entry)
        joined.action.ClearField("action_profile_group_id")
        weights: dict[bytes, int] = {}
        for member in group.members:
            action = members[profile, member].SerializeToString(deterministic=True)
            weights[action] = weights.get(action, 0) + 1
        joined.action.action_profile_action_set.action_profile_actions.extend(
            p4r.ActionProfileAction(action=p4r.Action.FromString(action), weight=weight)
            for action, weight in weights.items()
        )
        return joined

    def steps(self, updates: Sequence[p4r.Update]) -> list[list[p4r.Update]]:
        """The requests that bring about ``updates`` (with one-shot entries), each to be made after the one before.

        What they change counts as done: after a failure the switch is to be read again.
        """
        loose_groups, self._loose_groups = self._loose_groups, set()
        loose_members, self._loose_members = self._loose_members, set()
        groups = _Free({(group.profile, group.number) for group in self._used.values()})
        members = _Free({(group.profile, member) for group in self._used.values() for member in group.members})
        new_members: list[p4r.Update] = []
        new_groups: list[p4r.Update] = []
        entries: list[p4r.Update] = []
        old: list[_Group] = []
        for update in updates:
            if update.entity.WhichOneof("entity") != "table_entry":
                entries.append(update)
                continue
            entry = update.entity.table_entry
            key = key_of(entry)
            if (before := self._used.pop(key, None)) is not None:
                old.append(before)
            if not entry.action.HasField("action_profile_action_set"):
                entries.append(update)
                continue
            group, made = self._made(entry, groups, members)
            self._used[key] = group
            new_members += made
            new_groups.append(_group(p4r.Update.INSERT, group))
            entries.append(_switched(update, group))
        gone = [(group.profile, member) for group in old for member in group.members]
        steps = [
            [_group(p4r.Update.DELETE, _Group(*place, ())) for place in sorted(loose_groups)],
            [_member(p4r.Update.DELETE, place) for place in sorted(loose_members)],
            new_members,
            new_groups,
            entries,
            [_group(p4r.Update.DELETE, _Group(one.profile, one.number, ())) for one in old],
            [_member(p4r.Update.DELETE, place) for place in gone],
        ]
        return [step for step in steps if step]

    def _made(self, entry: p4r.TableEntry, groups: _Free, members: _Free) -> tuple[_Group, list[p4r.Update]]:
        """A group of its own for an entry, by numbers that are free, and its members' updates."""
        profile = self._profile(entry.table_id)
        copies = [
            one.action
            for one in entry.action.action_profile_action_set.action_profile_actions
            for _ in range(one.weight)
        ]
        numbers = [members.take(profile) for _ in copies]
        made = [
            _member(p4r.Update.INSERT, (profile, number), action)
            for number, action in zip(numbers, copies, strict=True)
        ]
        return _Group(profile, groups.take(profile), tuple(numbers)), made

    def _profile(self, table: int) -> int:
        profile = self.schema.tables[table].action_profile
        assert profile is not None, f"table {table} has no action profile"
        return profile.id


def _member(kind: p4r.Update.Type.ValueType, place: _Place, action: p4r.Action | None = None) -> p4r.Update:
    member = p4r.ActionProfileMember(action_profile_id=place[0], member_id=place[1], action=action)
    return p4r.Update(type=kind, entity=p4r.Entity(action_profile_member=member))


def _group(kind: p4r.Update.Type.ValueType, group: _Group) -> p4r.Update:
    members = [p4r.ActionProfileGroup.Member(member_id=member, weight=1) for member in group.members]
    made = p4r.ActionProfileGroup(
        action_profile_id=group.profile, group_id=group.number, members=members, max_size=len(members)
    )
    return p4r.Update(type=kind, entity=p4r.Entity(action_profile_group=made))


def _switched(update: p4r.Update, group: _Group) -> p4r.Update:
    entry = p4r.TableEntry()
    entry.CopyFrom(update.entity.table_entry)
    entry.action.Clear()
    entry.action.action_profile_group_id = group.number
    return p4r.Update(type=update.type, entity=p4r.Entity(table_entry=entry))
