//! Tests action profiles: members, groups, one-shot groups, and the selection of members.

use crate::common::{Switch, entry, exact};
use crc::{CRC_32_ISO_HDLC, Crc};
use proptest::prelude::*;
use sluice_engine::{
    ControlError, EntryAction, Group, GroupMember, Member, OneShotGroup, OneShotMember, ProfileLimit, ProfileSize,
    Selection,
};

fn frame(service: u8, source: u32, port: u16) -> Vec<u8> {
    [&[service][..], &source.to_be_bytes(), &port.to_be_bytes()].concat()
}

fn out_port(s: &mut Switch, service: u8, source: u32, port: u16) -> Option<u32> {
    s.send(0, 1, &frame(service, source, port)).first().map(|o| o.0)
}

/// Returns the member that BMv2 selects. In the list of members, each member is repeated according to its weight. The
/// CRC-32 of the selector fields, modulo the length of this list, is the index of the selected member.
fn model(weights: &[(u32, u32)], source: u32, port: u16) -> u32 {
    let wheel: Vec<u32> = weights.iter().flat_map(|&(p, w)| std::iter::repeat_n(p, w as usize)).collect();
    let hash = Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&[&source.to_be_bytes()[..], &port.to_be_bytes()].concat());
    wheel[hash as usize % wheel.len()]
}

fn one_shot(s: &Switch, weights: &[(u32, u32)]) -> EntryAction {
    let t = s.table("choose");
    let member = |&(port, weight): &(u32, u32)| OneShotMember {
        call: s.call(t, "forward", &[port.into()]),
        weight,
        watch_port: Some(1),
    };
    EntryAction::OneShot(weights.iter().map(member).collect::<Vec<_>>().into())
}

#[test]
fn one_shot_groups_select_by_weight_and_change_atomically() {
    let mut s = Switch::new("selector");
    let t = s.table("choose");
    let before = [(1, 1), (2, 3), (3, 4)];
    let e = entry(vec![exact(1)], 0, one_shot(&s, &before));
    s.engine.table_insert(0, t, &e).unwrap();
    let mut counts = [0; 4];
    for i in 0..8000u32 {
        let (source, port) = (i.wrapping_mul(2_654_435_761), i as u16);
        let selected = out_port(&mut s, 1, source, port).unwrap();
        assert_eq!(selected, model(&before, source, port));
        counts[selected as usize] += 1;
    }
    assert!(
        (850..1150).contains(&counts[1]) && (2800..3200).contains(&counts[2]) && (3800..4200).contains(&counts[3]),
        "{counts:?}"
    );

    let after = [(3, 5), (4, 2)];
    let e = entry(vec![exact(1)], 0, one_shot(&s, &after));
    s.engine.table_modify(0, t, &e).unwrap();
    for i in 0..100 {
        assert_eq!(out_port(&mut s, 1, i, 80), Some(model(&after, i, 80)));
    }
    let EntryAction::OneShot(group) = s.engine.table_get(t, &e.key, 0).unwrap().entry.action else { panic!() };
    assert_eq!(group.members.iter().map(|m| m.weight).collect::<Vec<_>>(), [5, 2]);
    assert_eq!(group.members[0].watch_port, Some(1));

    let empty = entry(vec![exact(2)], 0, EntryAction::OneShot(OneShotGroup::default()));
    assert!(matches!(s.engine.table_insert(0, t, &empty), Err(ControlError::InvalidArgument(_))));
    let weightless = entry(vec![exact(2)], 0, one_shot(&s, &[(1, 0)]));
    assert!(matches!(s.engine.table_insert(0, t, &weightless), Err(ControlError::InvalidArgument(_))));
}

#[test]
fn a_one_shot_group_can_select_at_random() {
    let mut s = Switch::new("selector");
    let t = s.table("choose");
    let EntryAction::OneShot(mut group) = one_shot(&s, &[(1, 1), (2, 3)]) else { panic!() };
    group.selection = Selection::Random;
    let e = entry(vec![exact(1)], 0, EntryAction::OneShot(group));
    s.engine.table_insert(0, t, &e).unwrap();
    // The same packet is sent every time, so only the random selection can vary.
    let chosen: Vec<u32> = (0..4000).map(|_| out_port(&mut s, 1, 7, 80).unwrap()).collect();
    let second = chosen.iter().filter(|&&port| port == 2).count();
    assert!((2850..3150).contains(&second), "{second}");
    let EntryAction::OneShot(group) = s.engine.table_get(t, &e.key, 0).unwrap().entry.action else { panic!() };
    assert_eq!(group.selection, Selection::Random);
    // All members watch port 1, so no member is eligible after port 1 goes down. The program then sends to port 7.
    s.engine.set_port(1, false);
    assert_eq!(out_port(&mut s, 1, 7, 80), Some(7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]
    #[test]
    fn the_selection_is_that_of_the_model(weights in proptest::collection::vec((1u32..500, 1u32..40), 1..20), source: u32, port: u16) {
        let mut s = Switch::new("selector");
        let e = entry(vec![exact(9)], 0, one_shot(&s, &weights));
        s.engine.table_insert(0, s.table("choose"), &e).unwrap();
        prop_assert_eq!(out_port(&mut s, 9, source, port), Some(model(&weights, source, port)));
    }
}

#[test]
fn groups_and_members_by_id() {
    let mut s = Switch::new("selector");
    let t = s.table("choose");
    let p = s.program.action_profile("I.members").unwrap();
    let member = |s: &Switch, id: u32, port: u64| Member { id, call: s.call(t, "forward", &[port]) };
    for (id, port) in [(10, 1), (20, 2), (30, 3)] {
        let m = member(&s, id, port);
        s.engine.member_insert(p, &m).unwrap();
    }
    let of = |id, weight| GroupMember { member: id, weight, watch_port: None };
    let mut group = Group { id: 1, members: vec![of(10, 1), of(20, 2)], max_size: 8 };
    s.engine.group_insert(p, &group).unwrap();
    assert!(matches!(s.engine.group_insert(p, &group), Err(ControlError::AlreadyExists(_))));
    s.engine.table_insert(0, t, &entry(vec![exact(1)], 0, EntryAction::Group(1))).unwrap();
    s.engine.table_insert(0, t, &entry(vec![exact(2)], 0, EntryAction::Member(30))).unwrap();
    assert_eq!(out_port(&mut s, 2, 0, 0), Some(3));
    for i in 0..50 {
        assert_eq!(out_port(&mut s, 1, i, 0), Some(model(&[(1, 1), (2, 2)], i, 0)));
    }

    // If a member's action is changed, all groups use the new action from the next packet on.
    let changed = member(&s, 20, 5);
    s.engine.member_modify(p, &changed).unwrap();
    assert_eq!(out_port(&mut s, 1, 7, 0), Some(model(&[(1, 1), (5, 2)], 7, 0)));
    group.members = vec![of(30, 1)];
    s.engine.group_modify(p, &group).unwrap();
    assert_eq!(out_port(&mut s, 1, 7, 0), Some(3));
    assert_eq!(s.engine.groups(p), std::slice::from_ref(&group));

    // An empty group runs no action, so the egress port does not change.
    s.engine.group_modify(p, &Group { members: vec![], ..group.clone() }).unwrap();
    assert_eq!(out_port(&mut s, 1, 7, 0), Some(7));

    // A group cannot be deleted while an entry refers to it, and a member cannot be deleted while a group refers to it.
    assert!(matches!(s.engine.group_delete(p, 1), Err(ControlError::FailedPrecondition(_))));
    assert!(matches!(s.engine.member_delete(p, 30), Err(ControlError::FailedPrecondition(_))));
    s.engine.member_delete(p, 20).unwrap();
    s.engine.table_delete(t, &[exact(1)], 0).unwrap();
    s.engine.table_delete(t, &[exact(2)], 0).unwrap();
    s.engine.group_delete(p, 1).unwrap();
    s.engine.member_delete(p, 30).unwrap();
    assert_eq!(s.engine.members(p).iter().map(|m| m.id).collect::<Vec<_>>(), [10]);
    let unknown = Group { id: 2, members: vec![of(99, 1)], max_size: 0 };
    assert!(matches!(s.engine.group_insert(p, &unknown), Err(ControlError::NotFound(_))));
}

#[test]
fn a_profile_does_not_exceed_its_limit() {
    let mut s = Switch::new("selector");
    let t = s.table("choose");
    let p = s.program.action_profile("I.members").unwrap();
    s.engine.limit_profile(p, Some(ProfileLimit::Weights(6)));
    let entry_with =
        |s: &Switch, service: u8, weights: &[(u32, u32)]| entry(vec![exact(service.into())], 0, one_shot(s, weights));
    let insert = |s: &mut Switch, service, weights: &[(u32, u32)]| {
        let e = entry_with(s, service, weights);
        s.engine.table_insert(0, t, &e)
    };
    insert(&mut s, 1, &[(1, 2), (2, 2)]).unwrap();
    let full = insert(&mut s, 2, &[(1, 3)]).unwrap_err();
    assert_eq!(
        full.to_string(),
        "resource exhausted: the action profile holds 6 weights together; make room, or declare a larger size"
    );
    insert(&mut s, 2, &[(1, 2)]).unwrap();
    let larger = entry_with(&s, 1, &[(1, 5)]);
    assert!(matches!(s.engine.table_modify(0, t, &larger), Err(ControlError::ResourceExhausted(_))));
    let replacement = entry_with(&s, 1, &[(1, 4)]);
    s.engine.table_modify(0, t, &replacement).unwrap();
    assert_eq!(s.engine.profile_size(p), ProfileSize { weights: 6, places: 2 });

    // The limit is now three members in all groups together, whatever their weights. Entry 2 has one member, so entry 1
    // may have two members.
    s.engine.limit_profile(p, Some(ProfileLimit::Places(3)));
    let two_members = entry_with(&s, 1, &[(1, 40), (2, 50)]);
    s.engine.table_modify(0, t, &two_members).unwrap();
    assert!(matches!(insert(&mut s, 3, &[(1, 1)]), Err(ControlError::ResourceExhausted(_))));
    s.engine.table_delete(t, &[exact(2)], 0).unwrap();
    insert(&mut s, 3, &[(1, 1)]).unwrap();
    assert_eq!(s.engine.profile_size(p), ProfileSize { weights: 91, places: 3 });
}

#[test]
fn members_whose_port_is_down_are_left_out() {
    let mut s = Switch::new("selector");
    let t = s.table("choose");
    let p = s.program.action_profile("I.members").unwrap();
    let watched = |s: &Switch, port: u32| OneShotMember {
        call: s.call(t, "forward", &[port.into()]),
        weight: 1,
        watch_port: Some(port),
    };
    let action = EntryAction::OneShot(vec![watched(&s, 1), watched(&s, 2)].into());
    s.engine.table_insert(0, t, &entry(vec![exact(1)], 0, action)).unwrap();
    for id in [1, 2] {
        let call = s.call(t, "forward", &[id]);
        s.engine.member_insert(p, &Member { id: id as u32, call }).unwrap();
    }
    let of = |member| GroupMember { member, weight: 3, watch_port: Some(member) };
    s.engine.set_port(2, false);
    s.engine.group_insert(p, &Group { id: 9, members: vec![of(1), of(2)], max_size: 0 }).unwrap();
    s.engine.table_insert(0, t, &entry(vec![exact(2)], 0, EntryAction::Group(9))).unwrap();
    let ports = |s: &mut Switch, service| {
        let mut ports: Vec<_> = (0..64).filter_map(|i| out_port(s, service, i, 80)).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    assert_eq!((ports(&mut s, 1), ports(&mut s, 2)), (vec![1], vec![1]));
    s.engine.set_port(2, true);
    assert_eq!((ports(&mut s, 1), ports(&mut s, 2)), (vec![1, 2], vec![1, 2]));
    s.engine.set_port(1, false);
    assert_eq!((ports(&mut s, 1), ports(&mut s, 2)), (vec![2], vec![2]));
    // If no member is eligible, no action runs, so the egress port does not change.
    s.engine.set_port(2, false);
    assert_eq!((ports(&mut s, 1), ports(&mut s, 2)), (vec![7], vec![7]));
}

#[test]
fn a_profile_without_selector_accepts_only_members() {
    let mut s = Switch::new("selector");
    let t = s.table("pick");
    let p = s.program.action_profile("I.plain").unwrap();
    let call = s.call(t, "forward", &[4]);
    s.engine.member_insert(p, &Member { id: 1, call: call.clone() }).unwrap();
    for wrong in [EntryAction::Group(1), EntryAction::Call(call), EntryAction::OneShot(OneShotGroup::default())] {
        let e = entry(vec![exact(80)], 0, wrong);
        assert!(matches!(s.engine.table_insert(0, t, &e), Err(ControlError::InvalidArgument(_))));
    }
    s.engine.table_insert(0, t, &entry(vec![exact(80)], 0, EntryAction::Member(1))).unwrap();
    assert_eq!(out_port(&mut s, 0xff, 0, 80), Some(4));
    assert_eq!(out_port(&mut s, 0xff, 0, 81), Some(7), "a miss without default action does nothing");
    assert!(s.engine.table_default(t).action.is_none());
}
