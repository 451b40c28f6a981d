//! Tests which member a group selects for a packet, after members were deleted and weights changed.

use crate::common::*;
use crate::reconcile::with_room_for;
use p4::entity::Entity::{self, ActionProfileGroup, ActionProfileMember, TableEntry};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type::{Delete, Insert, Modify};
use p4::write_request::Atomicity::{DataplaneAtomic, RollbackOnError};
use sluice_p4runtime::proto::p4::v1 as p4;

fn member(id: u32) -> Entity {
    let action = Some(forward(id as u8));
    ActionProfileMember(p4::ActionProfileMember { action_profile_id: POOL, member_id: id, action })
}

fn group(group_id: u32, weights: &[(u32, i32)]) -> Entity {
    let member = |&(member_id, weight): &_| p4::action_profile_group::Member { member_id, weight, watch_kind: None };
    let members = weights.iter().map(member).collect();
    ActionProfileGroup(p4::ActionProfileGroup { action_profile_id: POOL, group_id, members, max_size: 16 })
}

/// Creates a group of the members 1 and 3. Member 2 is created between them and deleted again, so that the number by
/// which the engine refers to it (its handle) is free.
async fn prepare(controller: &mut Controller) {
    for id in [1, 2, 3] {
        controller.insert(member(id)).await;
    }
    controller.delete(member(2)).await;
    let action = Some(p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(1)) });
    controller.insert(group(1, &[(1, 1), (3, 1)])).await;
    controller.insert(TableEntry(entry(POOL_TABLE, vec![exact(1, &[5])], action))).await;
}

/// Returns the ports by which packets from 64 sources leave. The member with id N forwards to port N.
fn selected(switch: &Switch) -> Vec<u32> {
    let packet = |source| switch.packet(1, &frame(5, source, 0x800)).first().expect("a frame").0;
    (0..64).map(packet).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undone_batch_changes_no_selection() {
    let (switch, mut controller) = Switch::ready().await;
    prepare(&mut controller).await;
    // A member of weight 2 is in the group twice: by its own handle, and by the handle of a copy. A group is ordered by
    // handles. While member 2 occupies the low handle, the copy of member 1 receives a handle after that of member 3.
    // The failed batches below delete this copy, and use the low handle, which is free again. The rollback must restore
    // the copy's handle.
    controller.insert(member(2)).await;
    controller.modify(group(1, &[(1, 2), (3, 1)])).await;
    controller.delete(member(2)).await;
    let before = selected(&switch);
    for atomicity in [RollbackOnError, DataplaneAtomic] {
        for changes in [
            vec![update(Modify, group(1, &[(3, 1)]))],
            vec![update(Modify, group(1, &[(1, 1)])), update(Insert, member(4)), update(Modify, group(1, &[(4, 3)]))],
            vec![update(Modify, group(1, &[])), update(Delete, member(3)), update(Delete, member(1))],
            vec![update(Insert, member(6)), update(Insert, group(2, &[(3, 4), (6, 2), (1, 3)]))],
        ] {
            let failing = [changes, vec![update(Delete, member(99))]].concat();
            controller.write_batch(atomicity as i32, failing).await.unwrap_err();
            assert_eq!(selected(&switch), before);
        }
    }
    // The rollbacks must have freed the handle again. So, after further changes, packets must select the same members
    // as on a switch without the failed batches.
    controller.insert(member(7)).await;
    controller.modify(group(1, &[(7, 1), (1, 2), (3, 1)])).await;
    let after = selected(&switch);
    let (switch, mut controller) = Switch::ready().await;
    prepare(&mut controller).await;
    controller.insert(member(7)).await;
    controller.modify(group(1, &[(7, 1), (1, 2), (3, 1)])).await;
    assert_eq!(selected(&switch), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconciled_program_selects_the_same_members() {
    let (switch, mut controller) = Switch::ready().await;
    prepare(&mut controller).await;
    // Weight 2 gives member 1 a copy. The copy receives the free handle, which precedes the handle of member 3.
    controller.modify(group(1, &[(1, 2), (3, 1)])).await;
    let before = selected(&switch);
    controller.push(Action::ReconcileAndCommit, Some(with_room_for(1000))).await.unwrap();
    assert_eq!(selected(&switch), before);
}
