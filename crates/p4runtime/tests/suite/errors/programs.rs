//! Requests that are refused because of a declaration in P4Info, or because a new program cannot store the state of the
//! old one.

use super::Golden;
use super::entities::*;
use crate::common::*;
use crate::reconcile::{with_cells, with_room_for};
use crate::translation::{metadata, of, strings, translated};
use p4::entity::Entity::*;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as ToSwitch;
use p4::update::Type::{Delete, Insert, Modify};
use sluice_p4runtime::proto::p4::{config::v1 as p4info, v1 as p4};

/// Starts a switch with the program and a changed P4Info, and inserts a member. Returns the switch's primary
/// controller.
pub async fn with_info(change: impl FnOnce(&mut p4info::P4Info)) -> Controller {
    let switch = Switch::start().await;
    let mut controller = switch.controller(1).await;
    let mut config = config(1);
    change(config.p4info.as_mut().unwrap());
    controller.push(Action::VerifyAndCommit, Some(config)).await.unwrap();
    controller.insert(member(POOL, 1, Some(forward(1)))).await;
    controller
}

/// Makes updates that exceed limits which only P4Info declares.
pub async fn limits(golden: &mut Golden) {
    use p4info::action_profile::{SelectorSizeSemantics, SumOfMembers};
    let mut limited = with_info(|info| info.action_profiles[0].max_group_size = 6).await;
    limited.insert(sized_group(POOL, 1, &[], 5)).await;
    for (what, kind, entity) in [
        ("group without max_size", Insert, sized_group(POOL, 2, &[], 0)),
        ("group with a max_size too large", Insert, sized_group(POOL, 2, &[], 7)),
        ("group of another max_size, limited", Modify, sized_group(POOL, 1, &[], 4)),
        ("group beyond its max_size", Insert, sized_group(POOL, 2, &[(1, 4)], 3)),
        ("one-shot beyond the profile's group size", Insert, one_shot(set_of(&[4, 3]))),
    ] {
        golden.write(&mut limited, what, kind, entity).await;
    }
    let mut weighed = with_info(|info| {
        let members = SumOfMembers { max_member_weight: 9 };
        info.action_profiles[0].selector_size_semantics = Some(SelectorSizeSemantics::SumOfMembers(members));
    })
    .await;
    golden.write(&mut weighed, "member too heavy", Insert, group(POOL, 1, &[(1, 10)])).await;
    let mut even = with_info(|info| info.action_profiles[0].weights_disallowed = true).await;
    golden.write(&mut even, "weight where there are none", Insert, group(POOL, 1, &[(1, 1)])).await;
    let mut ranged = with_info(|info| {
        let range = p4info::match_field::MatchType::Range as i32;
        info.value_sets[0].r#match[0].r#match = Some(p4info::match_field::Match::MatchType(range));
    })
    .await;
    golden.write(&mut ranged, "range in a value set", Modify, value_set(vec![vec![range(1, &[1], &[2])]])).await;
}

/// Sends updates that the server refuses because of the names of translated values that they contain.
pub async fn translations(golden: &mut Golden) {
    let switch = Switch::start().await;
    let mut controller = switch.controller(1).await;
    controller.push(Action::VerifyAndCommit, Some(translated(&strings()))).await.unwrap();
    controller.insert(of(b"a", b"uplink")).await;
    let wrong: [(&str, &[u8]); 5] = [
        ("name empty", b""),
        ("name too long", &[b'x'; 257]),
        ("name not UTF-8", &[0xff]),
        ("name a number too large", b"512"),
        ("name a number that has a name", b"511"),
    ];
    for (what, port) in wrong {
        golden.write(&mut controller, what, Insert, of(b"b", port)).await;
    }
    golden.write(&mut controller, "unknown name", Delete, TableEntry(table(vec![exact(1, b"b")], None))).await;
    let unknown = p4::PacketOut { payload: vec![1; 60], metadata: metadata(&[b"downlink", &[0], &[0]]) };
    controller.send(ToSwitch::Packet(unknown)).await;
    golden.stream_error("stream: a packet with an unknown name", &mut controller).await;
    // These 511 names and the name above use up all 512 numbers of a port.
    let to = |number: u32| direct(action(FORWARD, &[format!("p{number}").as_bytes()]));
    let ports = (1..=511u32)
        .map(|number| update(Insert, TableEntry(entry(LPM, vec![lpm(1, &number.to_be_bytes(), 32)], to(number)))));
    controller.write_all(ports.collect()).await.unwrap();
    golden.write(&mut controller, "name too many", Insert, of(b"b", b"p512")).await;
}

/// Attempts to replace the program by programs that cannot store its state.
pub async fn reconciliations(controller: &mut Controller, golden: &mut Golden) {
    let any = |source| {
        TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, vec![ternary(1, &[source], &[255])], to(1)) })
    };
    let far = |data| register(LAST_SOURCE, 200, data);
    let refused = async |controller: &mut Controller, config| {
        controller.push(Action::ReconcileAndCommit, Some(config)).await.unwrap_err()
    };
    controller.insert(any(1)).await;
    controller.insert(any(2)).await;
    golden.status("pipeline: a table too small", &refused(controller, with_room_for(1)).await);
    controller.delete(any(2)).await;
    controller.modify(far(bits(&[1]))).await;
    golden.status("pipeline: an array too small", &refused(controller, with_cells(100)).await);
}
