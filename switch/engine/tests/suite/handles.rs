//! Tests the order in which a group selects members. It must be the order of BMv2 and PI (its P4Runtime library), which
//! order members by handles.

use std::collections::BTreeMap;

use crate::common::{Switch, entry, exact, json};
use proptest::prelude::*;
use serde_json::Value;
use sluice_engine::{EntryAction, Group, GroupMember, Member, ProfileId};

/// Loads a program whose selector's hash is equal to its input, so that a number in the packet selects the member.
fn switches() -> [Switch; 2] {
    let mut program: Value = serde_json::from_slice(&json("selector")).unwrap();
    *algorithm(&mut program) = "identity".into();
    Switch::both_of(&program)
}

fn algorithm(program: &mut Value) -> &mut Value {
    program.pointer_mut("/pipelines/0/action_profiles/0/selector/algo").expect("the selector of the first profile")
}

fn profile(s: &Switch) -> ProfileId {
    s.program.action_profile("I.members").unwrap()
}

fn create(s: &mut Switch, id: u32) {
    let (p, call) = (profile(s), s.call(s.table("choose"), "forward", &[id.into()]));
    s.engine.member_insert(p, &Member { id, call }).unwrap();
}

fn group(id: u32, weights: &[(u32, u32)]) -> Group {
    let members = weights.iter().map(|&(member, weight)| GroupMember { member, weight, watch_port: None });
    Group { id, members: members.collect(), max_size: 0 }
}

/// Adds an entry that applies group `id` to packets whose first byte is `id`.
fn bind(s: &mut Switch, id: u32) {
    let t = s.table("choose");
    s.engine.table_insert(0, t, &entry(vec![exact(id.into())], 0, EntryAction::Group(id))).unwrap();
}

/// Returns the members that the hashes 0 to `count` - 1 select. Each member sends to the port whose number is its id.
fn order(s: &mut Switch, group: u32, count: usize) -> Vec<u32> {
    let chosen = |hash: u64| {
        let frame = [&[group as u8][..], &hash.to_be_bytes()[2..]].concat();
        s.send(0, 1, &frame).first().expect("a frame").0
    };
    (0..count as u64).map(chosen).collect()
}

#[test]
fn a_group_selects_in_the_order_in_which_its_members_were_created() {
    for mut s in switches() {
        let p = profile(&s);
        [30, 10, 20].into_iter().for_each(|id| create(&mut s, id));
        s.engine.group_insert(p, &group(1, &[(10, 1), (20, 1), (30, 1)])).unwrap();
        bind(&mut s, 1);
        assert_eq!(order(&mut s, 1, 4), [30, 10, 20, 30]);
        s.engine.group_modify(p, &group(1, &[(20, 1), (30, 1)])).unwrap();
        assert_eq!(order(&mut s, 1, 3), [30, 20, 30]);
        // A member that is created later gets the smallest free handle. A member that is modified keeps its handle.
        s.engine.member_delete(p, 10).unwrap();
        create(&mut s, 11);
        create(&mut s, 12);
        let call = s.call(s.table("choose"), "forward", &[31]);
        s.engine.member_modify(p, &Member { id: 30, call }).unwrap();
        s.engine.group_modify(p, &group(1, &[(12, 1), (20, 1), (11, 1), (30, 1)])).unwrap();
        assert_eq!(order(&mut s, 1, 5), [31, 11, 20, 12, 31]);
    }
}

#[test]
fn copies_come_after_all_earlier_members() {
    for mut s in switches() {
        let p = profile(&s);
        [1, 2, 3].into_iter().for_each(|id| create(&mut s, id));
        s.engine.group_insert(p, &group(1, &[(1, 2), (2, 1), (3, 1)])).unwrap();
        bind(&mut s, 1);
        assert_eq!(order(&mut s, 1, 5), [1, 2, 3, 1, 1]);
        // Copies are created in the order of the members' ids, and all groups share the copies. Member 1 has the
        // handles 0 and 3. Member 2 gets the additional handles 4 and 5, and member 3 gets the handle 6.
        s.engine.group_insert(p, &group(2, &[(3, 2), (2, 3), (1, 1)])).unwrap();
        bind(&mut s, 2);
        assert_eq!(order(&mut s, 2, 6), [1, 2, 3, 2, 2, 3]);
        s.engine.group_modify(p, &group(1, &[(2, 2), (1, 2)])).unwrap();
        assert_eq!(order(&mut s, 1, 4), [1, 2, 1, 2]);
        // A copy may get the handle of a deleted member.
        s.engine.group_modify(p, &group(2, &[(2, 1)])).unwrap();
        s.engine.member_delete(p, 3).unwrap();
        s.engine.group_modify(p, &group(1, &[(2, 3), (1, 2)])).unwrap();
        assert_eq!(order(&mut s, 1, 5), [1, 2, 2, 1, 2]);
    }
}

#[test]
fn thirty_two_bits_of_the_hash_select() {
    for mut s in switches() {
        [1, 2, 3].into_iter().for_each(|id| create(&mut s, id));
        let p = profile(&s);
        s.engine.group_insert(p, &group(1, &[(1, 1), (2, 1), (3, 1)])).unwrap();
        bind(&mut s, 1);
        for (high, low, member) in [(0u16, 1u32, 2), (1, 1, 2), (0xffff, 2, 3), (7, u32::MAX, 1)] {
            let frame = [&[1][..], &high.to_be_bytes(), &low.to_be_bytes()].concat();
            assert_eq!(s.send(0, 1, &frame)[0].0, member, "{high:x} {low:x}");
        }
    }
}

/// A model of PI and BMv2: members get the smallest free handle, and copies are created by weight.
#[derive(Default)]
struct Model {
    used: Vec<bool>,
    members: BTreeMap<u32, Vec<usize>>,
    groups: BTreeMap<u32, BTreeMap<u32, u32>>,
}

impl Model {
    fn take(&mut self) -> usize {
        let handle = self.used.iter().position(|used| !used).unwrap_or(self.used.len());
        self.used.resize(self.used.len().max(handle + 1), false);
        self.used[handle] = true;
        handle
    }

    fn member(&mut self, id: u32) {
        let handle = self.take();
        self.members.insert(id, vec![handle]);
    }

    fn delete(&mut self, id: u32) {
        self.members.remove(&id).into_iter().flatten().for_each(|handle| self.used[handle] = false);
    }

    fn set(&mut self, id: u32, weights: Option<BTreeMap<u32, u32>>) {
        for (&member, &weight) in weights.iter().flatten() {
            while self.members[&member].len() < weight as usize {
                let handle = self.take();
                self.members.get_mut(&member).unwrap().push(handle);
            }
        }
        match weights {
            Some(weights) => drop(self.groups.insert(id, weights)),
            None => drop(self.groups.remove(&id)),
        }
        for (id, handles) in &mut self.members {
            let most = self.groups.values().filter_map(|group| group.get(id)).max().map_or(1, |&most| most as usize);
            handles.drain(most..).for_each(|handle| self.used[handle] = false);
        }
    }

    fn order(&self, group: u32) -> Vec<u32> {
        let handles = |(member, &weight): (&u32, &u32)| {
            self.members[member].iter().take(weight as usize).map(|&handle| (handle, *member)).collect::<Vec<_>>()
        };
        let mut order: Vec<_> = self.groups[&group].iter().flat_map(handles).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, member)| member).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// After each of several arbitrary changes, groups must select their members in the order of the model. Some of the
    /// changes are rolled back, which must restore the previous order.
    #[test]
    fn the_order_is_that_of_the_model(
        changes in proptest::collection::vec((1u32..8, 1u32..4, proptest::collection::btree_map(1u32..8, 1u32..5, 0..5), 0..5), 1..40)
    ) {
        let [mut s, _] = switches();
        let (p, mut model) = (profile(&s), Model::default());
        for (member, id, weights, kind) in changes {
            let existing: BTreeMap<u32, u32> =
                weights.into_iter().filter(|(member, _)| model.members.contains_key(member)).collect();
            // The members are written in reverse order, because the order of writing must not affect the selection.
            let written = group(id, &existing.iter().rev().map(|(&member, &weight)| (member, weight)).collect::<Vec<_>>());
            let used = model.groups.values().any(|group| group.contains_key(&member));
            let exists = model.groups.contains_key(&id);
            match kind {
                0 if !model.members.contains_key(&member) => {
                    create(&mut s, member);
                    model.member(member);
                }
                1 if model.members.contains_key(&member) && !used => {
                    s.engine.member_delete(p, member).unwrap();
                    model.delete(member);
                }
                2 if exists => {
                    s.engine.table_delete(s.table("choose"), &[exact(id.into())], 0).unwrap();
                    s.engine.group_delete(p, id).unwrap();
                    model.set(id, None);
                }
                3 if exists => {
                    // A change that is rolled back must have no effect. The test first changes a group's members, and
                    // then a member that is in no group.
                    let saved = s.engine.group_save(p, id, existing.keys().copied());
                    s.engine.group_modify(p, &written).unwrap();
                    s.engine.group_restore(saved).unwrap();
                    if model.members.contains_key(&member) && !used {
                        let saved = s.engine.member_save(p, member);
                        s.engine.member_delete(p, member).unwrap();
                        s.engine.member_restore(saved).unwrap();
                    }
                }
                _ if exists => {
                    s.engine.group_modify(p, &written).unwrap();
                    model.set(id, Some(existing));
                }
                _ => {
                    s.engine.group_insert(p, &written).unwrap();
                    bind(&mut s, id);
                    model.set(id, Some(existing));
                }
            }
            for &id in model.groups.keys() {
                let expected = model.order(id);
                if !expected.is_empty() {
                    prop_assert_eq!(order(&mut s, id, expected.len()), expected);
                }
            }
        }
    }
}
