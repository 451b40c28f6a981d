"""Random groups of action selectors, and frames that choose among their members.

The program (selectors.p4) has two tables for every hash algorithm of v1model: the first table's groups are created
member by member, the second table's groups are one-shot. PI, BMv2's P4Runtime server, accepts only one of the two
methods per selector.

To compile it in this folder: `p4c-bm2-ss --p4v 16 -o selectors.json --p4runtime-files selectors.p4info.txtpb
selectors.p4`.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from finsy.proto import p4r

from topo.testbed.entities import Entities

PORTS = tuple(range(1, 13))
"""Output ports of members; all frames arrive on the first of these ports."""
ALGORITHMS = ("crc32", "crc32_custom", "crc16", "crc16_custom", "csum16", "xor16", "identity")
"""Hash algorithms, in the order of the table numbers in frames."""
IDS = range(1, 11)
"""Ids of members and groups. There are few, so that handles are freed and reused."""
DIRECT = 100
"""Entry keys from this number on are bound directly to a member, whose id is the key minus this number."""
WEIGHTS = (1, 1, 1, 2, 3, 5, 8)
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


@dataclass
class Profile:
    """The content of a selector whose groups are created member by member."""

    members: set[int] = field(default_factory=set[int])
    groups: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """Members by group; each group has a table entry with the group's number as key."""
    direct: set[int] = field(default_factory=set[int])
    """Members to which a table entry is bound directly."""

    def used(self) -> set[int]:
        """Return the members that an entry or a group uses; these members cannot be deleted."""
        return self.direct.union(*self.groups.values())


class World:
    """The content of the selectors, with random changes that are valid in sequence."""

    def __init__(self, entities: Entities, rng: random.Random) -> None:
        self._entities, self._rng = entities, rng
        self._profiles = {name: Profile() for name in ALGORITHMS}
        self._one_shot = {name: set[int]() for name in ALGORITHMS}

    def start(self) -> list[p4r.Update]:
        """Return the writes of members and groups of every table."""
        return [update for _ in range(40) for update in self.change()]

    def change(self) -> list[p4r.Update]:
        """Return a few random changes."""
        kinds: list[Callable[[str], list[p4r.Update]]] = [
            self._insert_member,
            self._insert_member,
            self._modify_member,
            self._delete_member,
            self._insert_group,
            self._modify_group,
            self._modify_group,
            self._delete_group,
            self._bind_member,
            self._set_one_shot,
            self._set_one_shot,
            self._delete_one_shot,
        ]
        names = self._rng.choices(ALGORITHMS, k=self._rng.randint(8, 24))
        return [update for name in names for update in self._rng.choice(kinds)(name)]

    # -- tables whose groups are created member by member

    def _insert_member(self, name: str) -> list[p4r.Update]:
        profile = self._profiles[name]
        free = sorted(set(IDS) - profile.members)
        if not free:
            return []
        profile.members.add(identifier := self._rng.choice(free))
        return [self._member(INSERT, name, identifier)]

    def _modify_member(self, name: str) -> list[p4r.Update]:
        members = sorted(self._profiles[name].members)
        return [self._member(MODIFY, name, self._rng.choice(members))] if members else []

    def _delete_member(self, name: str) -> list[p4r.Update]:
        profile = self._profiles[name]
        idle = sorted(profile.members - profile.used())
        if not idle:
            return []
        profile.members.remove(identifier := self._rng.choice(idle))
        return [self._member(DELETE, name, identifier)]

    def _insert_group(self, name: str) -> list[p4r.Update]:
        profile = self._profiles[name]
        free = sorted(set(IDS) - profile.groups.keys())
        if not free or not profile.members:
            return []
        identifier = self._rng.choice(free)
        action = p4r.TableAction(action_profile_group_id=identifier)
        # BMv2 refuses an entry for an empty group; a group with an entry may become empty.
        return [self._group(INSERT, name, identifier, least=1), self._entry(INSERT, name, identifier, action)]

    def _modify_group(self, name: str) -> list[p4r.Update]:
        groups = sorted(self._profiles[name].groups)
        return [self._group(MODIFY, name, self._rng.choice(groups))] if groups else []

    def _delete_group(self, name: str) -> list[p4r.Update]:
        profile = self._profiles[name]
        if not profile.groups:
            return []
        identifier = self._rng.choice(sorted(profile.groups))
        del profile.groups[identifier]
        group = p4r.ActionProfileGroup(action_profile_id=self._profile(name), group_id=identifier)
        entity = p4r.Entity(action_profile_group=group)
        return [self._entry(DELETE, name, identifier, None), p4r.Update(type=DELETE, entity=entity)]

    def _bind_member(self, name: str) -> list[p4r.Update]:
        """Insert or delete a table entry that is bound directly to a member."""
        profile = self._profiles[name]
        if not profile.members:
            return []
        identifier = self._rng.choice(sorted(profile.members))
        if identifier in profile.direct:
            profile.direct.remove(identifier)
            return [self._entry(DELETE, name, DIRECT + identifier, None)]
        profile.direct.add(identifier)
        action = p4r.TableAction(action_profile_member_id=identifier)
        return [self._entry(INSERT, name, DIRECT + identifier, action)]

    def _member(self, kind: p4r.Update.Type.ValueType, name: str, identifier: int) -> p4r.Update:
        made = p4r.ActionProfileMember(action_profile_id=self._profile(name), member_id=identifier)
        if kind != DELETE:
            made.action.CopyFrom(self._forward(name))
        return p4r.Update(type=kind, entity=p4r.Entity(action_profile_member=made))

    def _group(self, kind: p4r.Update.Type.ValueType, name: str, identifier: int, least: int = 0) -> p4r.Update:
        """Return the write of a group that has at least `least` members, in random order."""
        profile = self._profiles[name]
        chosen = self._rng.sample(sorted(profile.members), self._rng.randint(least, len(profile.members)))
        profile.groups[identifier] = set(chosen)
        made = p4r.ActionProfileGroup(action_profile_id=self._profile(name), group_id=identifier)
        for member in chosen:
            made.members.add(member_id=member, weight=self._rng.choice(WEIGHTS))
        return p4r.Update(type=kind, entity=p4r.Entity(action_profile_group=made))

    # -- tables with one-shot groups

    def _set_one_shot(self, name: str) -> list[p4r.Update]:
        there = self._one_shot[name]
        identifier = self._rng.choice(IDS)
        members = [
            (self._rng.choice(WEIGHTS), {"port": self._rng.choice(PORTS)}) for _ in range(self._rng.randint(1, 8))
        ]
        table = f"{name}_one_shot"
        entity = self._entities.group_entry(table, {"group": identifier}, "forward", members)
        kind = MODIFY if identifier in there else INSERT
        there.add(identifier)
        return [p4r.Update(type=kind, entity=entity)]

    def _delete_one_shot(self, name: str) -> list[p4r.Update]:
        there = self._one_shot[name]
        if not there:
            return []
        there.remove(identifier := self._rng.choice(sorted(there)))
        return [self._entry(DELETE, f"{name}_one_shot", identifier, None)]

    # -- random parts of entities

    def _profile(self, name: str) -> int:
        return self._entities.table(f"I.{name}").implementation_id

    def _forward(self, name: str) -> p4r.Action:
        """Return the action that sends a frame by a random port."""
        entity = self._entities.entry(f"I.{name}", {}, "forward", {"port": self._rng.choice(PORTS)})
        return entity.table_entry.action.action

    def _entry(
        self, kind: p4r.Update.Type.ValueType, name: str, group: int, action: p4r.TableAction | None
    ) -> p4r.Update:
        entity = self._entities.entry(f"I.{name}", {"group": group}, "forward", {})
        entity.table_entry.action.Clear()
        if action:
            entity.table_entry.action.CopyFrom(action)
        return p4r.Update(type=kind, entity=entity)


class Frames:
    """Random frames to every table and group, including groups that do not exist."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def take(self, count: int) -> list[tuple[int, bytes]]:
        """Return `count` frames with their ports."""
        return [(PORTS[0], self._one(number)) for number in range(count)]

    def _one(self, number: int) -> bytes:
        rng = self._rng
        table = rng.randrange(2 * len(ALGORITHMS) + 1)
        group = rng.choice(IDS) + rng.choice((0, 0, 0, DIRECT))
        # Small numbers are included because csum16, xor16 and identity then give small hashes.
        hashed = rng.choice((rng.getrandbits(56), rng.getrandbits(5)))
        return struct.pack("!BB", table, group) + hashed.to_bytes(7, "big") + struct.pack("!I", number)
