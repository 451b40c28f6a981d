//! Tests groups and members of action profiles, which clients write as action sets or with their own ids.

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_tofino::proto::data_field::Value;
use tonic::Code;

use crate::common::{Bench, Controller, action, exact, id};
use crate::stand_in::store::{key_number, number};
use p4::entity::Entity;
use p4::update::Type;

const CHOICE_TABLE: &str = "SluiceIngress.balance.by_ratio.choose";
const GROUPS: &str = "SluiceIngress.balance.by_ratio.groups";
const MEMBERS: &str = "SluiceIngress.balance.by_ratio.ratios";

/// Returns the entry of service 1 with an action set of these servers and weights.
fn shares(shares: &[(u8, i32)]) -> Entity {
    let actions = shares.iter().map(|(server, weight)| p4::ActionProfileAction {
        action: Some(action("choose_server", &[&[*server], &[1], &[0]])),
        weight: *weight,
        watch_kind: None,
    });
    let set = p4::ActionProfileActionSet { action_profile_actions: actions.collect(), ..Default::default() };
    Entity::TableEntry(p4::TableEntry {
        table_id: id("choose"),
        r#match: vec![exact(1, &[1])],
        action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileActionSet(set)) }),
        ..Default::default()
    })
}

/// Returns the group to which the entry refers, and the number of times that the group lists each member.
fn entry_group(bench: &Bench) -> (u32, Vec<usize>) {
    let store = bench.driver.store.lock();
    let (_, data) = store.rows(CHOICE_TABLE).entries.values().next().expect("an entry");
    let group = number(&data.fields[0]);
    let rows = store.rows(GROUPS);
    let (_, data) = rows.entries.values().find(|(key, _)| key_number(key) == group).expect("the entry's group");
    let Some(Value::IntArrVal(list)) = &data.fields[0].value else { panic!("{data:?}") };
    let mut members = list.val.clone();
    members.dedup();
    (group, members.iter().map(|member| list.val.iter().filter(|listed| *listed == member).count()).collect())
}

/// Returns the keys of the members in the driver.
fn members(bench: &Bench) -> Vec<Vec<u8>> {
    bench.driver.store.lock().rows(MEMBERS).entries.keys().cloned().collect()
}

async fn read_back(controller: &mut Controller) -> Entity {
    Entity::TableEntry(controller.entries("choose").await.remove(0))
}

#[tokio::test]
async fn an_action_set_becomes_a_group_with_its_weights() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(shares(&[(1, 3), (2, 1)])).await;
    assert_eq!(entry_group(&bench).1, [3, 1]);
    assert_eq!(read_back(&mut controller).await, shares(&[(1, 3), (2, 1)]));
}

#[tokio::test]
async fn a_changed_weight_creates_a_new_group_but_no_member() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(shares(&[(1, 3), (2, 1)])).await;
    let (old, members_before) = (entry_group(&bench).0, members(&bench));
    controller.modify(shares(&[(1, 3), (2, 2)])).await;
    let (new, weights) = entry_group(&bench);
    assert_ne!(new, old);
    assert_eq!(weights, [3, 2]);
    assert_eq!(bench.driver.store.lock().rows(GROUPS).entries.len(), 1, "the old group is deleted");
    assert_eq!(members(&bench), members_before);
    // A write of the same weights as before must change nothing.
    controller.modify(shares(&[(1, 3), (2, 2)])).await;
    assert_eq!(entry_group(&bench).0, new);
    assert_eq!(members(&bench), members_before);
}

#[tokio::test]
async fn members_that_no_group_uses_any_more_are_deleted() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(shares(&[(1, 1), (2, 1)])).await;
    controller.modify(shares(&[(2, 1), (3, 1)])).await;
    assert_eq!(members(&bench).len(), 2);
    controller.delete(shares(&[])).await;
    let store = bench.driver.store.lock();
    assert!([CHOICE_TABLE, GROUPS, MEMBERS].iter().all(|table| store.rows(table).entries.is_empty()));
}

#[tokio::test]
async fn a_group_that_exceeds_the_drivers_memory_changes_nothing() {
    let (bench, mut controller) = Bench::ready().await;
    controller.insert(shares(&[(1, 1), (2, 1)])).await;
    let before = (entry_group(&bench), members(&bench));
    *bench.driver.full.lock() = Some(GROUPS.to_owned());
    let (code, text) = controller.write(Type::Modify, shares(&[(1, 2), (4, 1)])).await.unwrap_err();
    assert_eq!(code, Code::ResourceExhausted, "{text}");
    assert_eq!((entry_group(&bench), members(&bench)), before);
    assert_eq!(read_back(&mut controller).await, shares(&[(1, 1), (2, 1)]));
    *bench.driver.full.lock() = None;
    controller.modify(shares(&[(1, 2), (4, 1)])).await;
    assert_eq!(entry_group(&bench).1, [2, 1]);
}

#[tokio::test]
async fn members_and_groups_with_ids_of_the_clients_own() {
    let (bench, mut controller) = Bench::ready().await;
    let profile = id("ratios");
    let member = |member_id: u32| {
        let action = Some(action("choose_server", &[&[9], &[1], &[0]]));
        Entity::ActionProfileMember(p4::ActionProfileMember { action_profile_id: profile, member_id, action })
    };
    let group = |members: &[(u32, i32)]| {
        let members = members.iter().map(|(member_id, weight)| p4::action_profile_group::Member {
            member_id: *member_id,
            weight: *weight,
            ..Default::default()
        });
        Entity::ActionProfileGroup(p4::ActionProfileGroup {
            action_profile_id: profile,
            group_id: 4,
            members: members.collect(),
            ..Default::default()
        })
    };
    assert_eq!(controller.write(Type::Insert, group(&[(1, 1)])).await.unwrap_err().0, Code::NotFound);
    controller.insert(member(1)).await;
    controller.insert(member(2)).await;
    controller.insert(group(&[(1, 2), (2, 1)])).await;
    let Entity::TableEntry(mut entry) = shares(&[]) else { panic!() };
    let to_group = p4::table_action::Type::ActionProfileGroupId(4);
    entry.action = Some(p4::TableAction { r#type: Some(to_group) });
    controller.insert(Entity::TableEntry(entry.clone())).await;
    assert_eq!(entry_group(&bench), (4, vec![2, 1]));
    let all = Entity::ActionProfileGroup(p4::ActionProfileGroup::default());
    assert_eq!(controller.read(all).await, [group(&[(1, 2), (2, 1)])]);
    // The driver refuses to delete a group to which an entry refers.
    assert_eq!(controller.write(Type::Delete, group(&[])).await.unwrap_err().0, Code::AlreadyExists);
    assert_eq!(controller.entries("choose").await, [entry]);
}
