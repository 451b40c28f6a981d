//! Tests all entities except table entries over gRPC: the server accepts or refuses them, applies them to packets and
//! returns them to readers.

use std::collections::HashMap;

use crate::common::*;
use p4::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use p4::entity::Entity::{
    self, ActionProfileGroup, ActionProfileMember, CounterEntry, DigestEntry, MeterEntry, PacketReplicationEngineEntry,
    RegisterEntry, TableEntry, ValueSetEntry,
};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type::{Delete, Insert, Modify};
use sluice_p4runtime::proto::p4::config::v1 as p4info;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

/// Returns a one-shot group. Each member is a pair of the port to which it forwards and its weight.
fn set_of(members: &[(u8, i32)]) -> p4::ActionProfileActionSet {
    let member = |(port, weight): &(u8, i32)| p4::ActionProfileAction {
        action: Some(forward(*port)),
        weight: *weight,
        watch_kind: None,
    };
    p4::ActionProfileActionSet { action_profile_actions: members.iter().map(member).collect(), ..Default::default() }
}

/// Returns a table action with a one-shot group. Each member is a pair of a port and a weight.
fn one_shot(members: &[(u8, i32)]) -> Option<p4::TableAction> {
    let kind = p4::table_action::Type::ActionProfileActionSet(set_of(members));
    Some(p4::TableAction { r#type: Some(kind) })
}

/// Sends 256 packets from different sources. Returns the number of packets that left by each port.
fn shares(switch: &Switch, dst: u8) -> HashMap<u32, usize> {
    let mut shares = HashMap::new();
    for source in 0..=255 {
        // Two bytes of the source vary. If only one varied, the two low bits of the selector's CRC would take only two
        // of their four values.
        let mut packet = frame(dst, source, 0x800);
        packet[9..11].fill(source);
        for (port, _) in switch.packet(1, &packet) {
            *shares.entry(port).or_default() += 1;
        }
    }
    shares
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_groups_follow_their_weights() {
    let (switch, mut controller) = Switch::ready().await;
    let pool = |members| TableEntry(entry(POOL_TABLE, vec![exact(1, &[5])], one_shot(members)));
    controller.insert(pool(&[(1, 3), (2, 1)])).await;
    assert_eq!(controller.read(TableEntry(entry(POOL_TABLE, vec![], None))).await, [pool(&[(1, 3), (2, 1)])]);
    let counts = shares(&switch, 5);
    assert_eq!(counts.values().sum::<usize>(), 256);
    assert!((150..230).contains(&counts[&1]), "{counts:?}");
    controller.modify(pool(&[(2, 1)])).await;
    assert_eq!(shares(&switch, 5), HashMap::from([(2, 256)]));
    controller.refused(Modify, pool(&[(2, 0)]), Code::InvalidArgument, "member 0: the weight 0 is not positive").await;
    let wrong = TableEntry(entry(POOL_TABLE, vec![exact(1, &[6])], direct(forward(1))));
    controller.refused(Insert, wrong, Code::InvalidArgument, "I.pool; give a member, group or action set").await;
    let wrong = TableEntry(entry(PLAIN_POOL_TABLE, vec![exact(1, &[6])], one_shot(&[(1, 1)])));
    controller.refused(Insert, wrong, Code::InvalidArgument, "I.plain_pool has no selector").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_groups_select_at_random_or_by_hash() {
    let (switch, mut controller) = Switch::ready().await;
    for mode in [ActionSelectionMode::Random, ActionSelectionMode::Hash] {
        let mut set = set_of(&[(1, 1), (2, 1)]);
        set.action_selection_mode = mode.into();
        let kind = p4::table_action::Type::ActionProfileActionSet(set);
        let pool = TableEntry(entry(POOL_TABLE, vec![exact(1, &[5])], Some(p4::TableAction { r#type: Some(kind) })));
        controller.insert(pool.clone()).await;
        let read = controller.read(TableEntry(entry(POOL_TABLE, vec![], None))).await;
        assert_eq!(read, std::slice::from_ref(&pool));
        // The test sends the same packet every time.
        let packets = (0..256).flat_map(|_| switch.packet(1, &frame(5, 1, 0x800)));
        let by_port_1 = packets.filter(|(port, _)| *port == 1).count();
        match mode {
            ActionSelectionMode::Random => assert!((80..176).contains(&by_port_1), "{by_port_1}"),
            _ => assert!([0, 256].contains(&by_port_1), "{by_port_1}"),
        }
        controller.delete(pool).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_groups() {
    let (switch, mut controller) = Switch::ready().await;
    let member = |id, port| {
        ActionProfileMember(p4::ActionProfileMember {
            action_profile_id: POOL,
            member_id: id,
            action: Some(forward(port)),
        })
    };
    let group = |members: &[(u32, i32)]| {
        let member = |(member_id, weight): &(u32, i32)| p4::action_profile_group::Member {
            member_id: *member_id,
            weight: *weight,
            watch_kind: None,
        };
        ActionProfileGroup(p4::ActionProfileGroup {
            action_profile_id: POOL,
            group_id: 4,
            members: members.iter().map(member).collect(),
            max_size: 0,
        })
    };
    controller.insert(member(1, 1)).await;
    controller.insert(member(2, 2)).await;
    controller.refused(Insert, member(2, 2), Code::AlreadyExists, "action profile I.pool, member 2").await;
    controller.refused(Insert, group(&[(1, 1), (9, 1)]), Code::NotFound, "action profile I.pool, group 4").await;
    controller.refused(Insert, group(&[(1, 1), (1, 1)]), Code::InvalidArgument, "member 1 is given twice").await;
    controller.insert(group(&[(1, 1), (2, 1)])).await;
    let to_group = p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(4)) };
    controller.insert(TableEntry(entry(POOL_TABLE, vec![exact(1, &[5])], Some(to_group)))).await;
    assert_eq!(shares(&switch, 5).len(), 2);
    controller.modify(member(2, 7)).await;
    let counts = shares(&switch, 5);
    assert!(counts.contains_key(&7) && !counts.contains_key(&2), "{counts:?}");
    controller.refused(Delete, member(2, 7), Code::FailedPrecondition, "member 2").await;
    controller.refused(Delete, group(&[]), Code::FailedPrecondition, "group 4").await;
    controller.modify(group(&[(1, 2)])).await;
    assert_eq!(shares(&switch, 5), HashMap::from([(1, 256)]));
    let all = ActionProfileMember(p4::ActionProfileMember::default());
    assert_eq!(controller.read(all).await, [member(1, 1), member(2, 7)]);
    assert_eq!(controller.read(ActionProfileGroup(p4::ActionProfileGroup::default())).await, [group(&[(1, 2)])]);
    controller.delete(TableEntry(entry(POOL_TABLE, vec![exact(1, &[5])], None))).await;
    controller.delete(group(&[])).await;
    controller.delete(member(2, 7)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_group_may_have_different_actions() {
    let (switch, mut controller) = Switch::ready().await;
    let actions = [(1, forward(7)), (2, action(DROP, &[]))];
    for (member_id, action) in actions {
        let member = p4::ActionProfileMember { action_profile_id: POOL, member_id, action: Some(action) };
        controller.insert(ActionProfileMember(member)).await;
    }
    let member = |member_id| p4::action_profile_group::Member { member_id, weight: 1, watch_kind: None };
    let members = vec![member(1), member(2)];
    let group = p4::ActionProfileGroup { action_profile_id: POOL, group_id: 4, members, max_size: 0 };
    controller.insert(ActionProfileGroup(group)).await;
    let to_group = p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(4)) };
    controller.insert(TableEntry(entry(POOL_TABLE, vec![exact(1, &[5])], Some(to_group)))).await;
    let before = switch.device.engine_counts().ingress;
    let by_port_7 = shares(&switch, 5)[&7];
    let dropped = switch.device.engine_counts().ingress - before;
    assert!((64..192).contains(&by_port_7) && by_port_7 as u64 + dropped == 256, "{by_port_7} and {dropped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_too_large_to_be_read_back_are_refused() {
    const LIMIT: usize = 2 << 20;
    let (_, mut controller) = Switch::ready().await;
    let text = "give at most 2097152, so that it can be read back in one message";
    let with_metadata = |bytes| {
        let entry = entry(EXACT, vec![exact(1, &[5])], direct(forward(1)));
        TableEntry(p4::TableEntry { metadata: vec![7; bytes], ..entry })
    };
    controller.refused(Insert, with_metadata(LIMIT), Code::ResourceExhausted, text).await;
    // The largest accepted entry is read after a small one, in one message below the limit of the client.
    let small_entry = |dst| TableEntry(entry(EXACT, vec![exact(1, &[dst])], direct(forward(1))));
    controller.insert(small_entry(1)).await;
    controller.insert(with_metadata(LIMIT - 100)).await;
    controller.refused(Modify, with_metadata(LIMIT), Code::ResourceExhausted, text).await;
    let entries = controller.read(TableEntry(entry(EXACT, vec![], None))).await;
    assert!(entries.len() == 2 && entries.contains(&with_metadata(LIMIT - 100)));
    controller.delete(with_metadata(LIMIT)).await;

    let group = |replicas: u32| {
        let replica = |number: u32| p4::Replica {
            port_kind: Some(p4::replica::PortKind::Port((number >> 16).to_be_bytes()[2..].to_vec())),
            instance: number & 0xffff,
            ..Default::default()
        };
        let replicas = (1 << 16..(1 << 16) + replicas).map(replica).collect();
        let group = p4::MulticastGroupEntry { multicast_group_id: 9, replicas, ..Default::default() };
        let group = Some(p4::packet_replication_engine_entry::Type::MulticastGroupEntry(group));
        PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: group })
    };
    controller.refused(Insert, group(300_000), Code::ResourceExhausted, text).await;
    controller.insert(group(150_000)).await;
    let all = p4::MulticastGroupEntry::default();
    let all = Some(p4::packet_replication_engine_entry::Type::MulticastGroupEntry(all));
    let all = PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: all });
    assert!(controller.read(all).await == [group(150_000)]);
}

/// Starts a switch with a changed action selector in P4Info. Returns the switch's primary controller.
async fn with_pool(change: impl Fn(&mut p4info::ActionProfile)) -> Controller {
    let (_, mut controller) = Switch::ready().await;
    let mut config = config(2);
    change(&mut config.p4info.as_mut().unwrap().action_profiles[0]);
    controller.push(Action::VerifyAndCommit, Some(config)).await.unwrap();
    controller
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_limited_as_p4info_declares() {
    let pool = |dst, weights: &[i32]| {
        let members: Vec<_> = weights.iter().map(|weight| (1, *weight)).collect();
        TableEntry(entry(POOL_TABLE, vec![exact(1, &[dst])], one_shot(&members)))
    };
    // This profile is limited by weights: 10 in total, 6 in a group.
    let mut controller = with_pool(|profile| (profile.size, profile.max_group_size) = (10, 6)).await;
    let over = "the group has 7 weights together, the limit is 6";
    controller.refused(Insert, pool(1, &[3, 4]), Code::InvalidArgument, over).await;
    controller.insert(pool(1, &[3, 3])).await;
    let full = "the action profile holds 10 weights together";
    controller.refused(Insert, pool(2, &[5]), Code::ResourceExhausted, full).await;
    controller.insert(pool(2, &[4])).await;
    controller.modify(pool(1, &[6])).await;
    controller.delete(pool(1, &[6])).await;
    controller.insert(pool(3, &[6])).await;
    // A group whose size is counted in members may exceed the weight limit of a group, but not that of the profile.
    controller.delete(pool(3, &[6])).await;
    let mut set = set_of(&[(1, 4), (2, 5)]);
    set.size_semantics = SizeSemantics::SumOfMembers.into();
    let kind = p4::table_action::Type::ActionProfileActionSet(set);
    let counted = entry(POOL_TABLE, vec![exact(1, &[3])], Some(p4::TableAction { r#type: Some(kind) }));
    let full = "the action profile holds 10 weights together";
    controller.refused(Insert, TableEntry(counted.clone()), Code::ResourceExhausted, full).await;
    controller.delete(pool(2, &[4])).await;
    controller.insert(TableEntry(counted.clone())).await;
    assert_eq!(controller.read(TableEntry(entry(POOL_TABLE, vec![], None))).await, [TableEntry(counted)]);

    // This profile is limited by members: 3 in total, 2 in a group. A member's weight may be at most 9.
    let mut controller = with_pool(|profile| {
        (profile.size, profile.max_group_size) = (3, 2);
        let members = p4info::action_profile::SumOfMembers { max_member_weight: 9 };
        let semantics = p4info::action_profile::SelectorSizeSemantics::SumOfMembers(members);
        profile.selector_size_semantics = Some(semantics);
    })
    .await;
    let over = "the group has 3 members, the limit is 2";
    controller.refused(Insert, pool(1, &[1, 1, 1]), Code::InvalidArgument, over).await;
    controller.refused(Insert, pool(1, &[10]), Code::InvalidArgument, "the weight 10 is above 9").await;
    controller.insert(pool(1, &[9, 9])).await;
    let full = "the action profile holds 3 members of groups";
    controller.refused(Insert, pool(2, &[1, 1]), Code::ResourceExhausted, full).await;
    controller.insert(pool(2, &[9])).await;

    // A profile without selector is limited by its number of members.
    let member = |id| {
        let action = Some(forward(1));
        ActionProfileMember(p4::ActionProfileMember { action_profile_id: PLAIN_POOL, member_id: id, action })
    };
    for id in 1..=16 {
        controller.insert(member(id)).await;
    }
    let full = "the action profile holds 16 members";
    controller.refused(Insert, member(17), Code::ResourceExhausted, full).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters() {
    let (switch, mut controller) = Switch::ready().await;
    let cell = |at: Option<p4::Index>, data| CounterEntry(p4::CounterEntry { counter_id: BY_PORT, index: at, data });
    let counts = |packet_count, byte_count| Some(p4::CounterData { byte_count, packet_count });
    switch.packet(3, &frame(1, 1, 0x800));
    switch.packet(3, &frame(1, 1, 0x800));
    assert_eq!(controller.read(cell(index(3), None)).await, [cell(index(3), counts(2, 120))]);
    assert_eq!(controller.read(cell(None, None)).await.len(), 8);
    assert_eq!(controller.read(CounterEntry(p4::CounterEntry::default())).await.len(), 8);
    controller.modify(cell(index(3), counts(5, 6))).await;
    assert_eq!(controller.read(cell(index(3), None)).await, [cell(index(3), counts(5, 6))]);
    controller.modify(cell(None, counts(0, 0))).await;
    assert_eq!(controller.read(cell(index(3), None)).await, [cell(index(3), counts(0, 0))]);
    controller
        .refused(Modify, cell(index(8), counts(0, 0)), Code::OutOfRange, "beyond the last cell; give 0 to 7")
        .await;
    controller.refused(Modify, cell(index(-1), counts(0, 0)), Code::InvalidArgument, "index -1 is negative").await;
    controller.refused(Insert, cell(index(1), counts(0, 0)), Code::InvalidArgument, "always exists; MODIFY it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn meters() {
    let (switch, mut controller) = Switch::ready().await;
    let cell =
        |at, config| MeterEntry(p4::MeterEntry { meter_id: LIMIT, index: index(at), config, counter_data: None });
    let config = p4::MeterConfig { cir: 1, cburst: 2, pir: 1, pburst: 2, eburst: 0 };
    controller.insert(TableEntry(entry(EXACT, vec![exact(1, &[7])], direct(forward(2))))).await;
    assert_eq!(controller.read(cell(1, None)).await, [cell(1, None)]);
    controller.modify(cell(1, Some(config))).await;
    assert_eq!(controller.read(cell(1, None)).await, [cell(1, Some(config))]);
    let passed = (0..50).filter(|_| !switch.packet(1, &frame(7, 1, 0x800)).is_empty()).count();
    assert!((2..=4).contains(&passed), "{passed} of 50 passed a burst of 2 and 1 packet a second");
    controller.modify(cell(1, None)).await;
    assert!((0..50).all(|_| !switch.packet(1, &frame(7, 1, 0x800)).is_empty()));
    let wrong = p4::MeterConfig { cir: 2, ..config };
    controller.refused(Modify, cell(1, Some(wrong)), Code::InvalidArgument, "meter I.limit: cir (2) is above").await;
    let wrong = p4::MeterConfig { eburst: 2, ..config };
    controller.refused(Modify, cell(1, Some(wrong)), Code::InvalidArgument, "eburst").await;
    controller.refused(Modify, cell(8, None), Code::OutOfRange, "beyond the last cell; give 0 to 7").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_count_by_colour() {
    let (switch, mut controller) = Switch::ready().await;
    let config = p4::MeterConfig { cir: 0, cburst: 1, pir: 0, pburst: 3, eburst: 0 };
    let cell = |at, config, counter_data| {
        MeterEntry(p4::MeterEntry { meter_id: LIMIT, index: index(at), config, counter_data })
    };
    let colours = |counts: [i64; 3]| {
        let [green, yellow, red] =
            counts.map(|packets| Some(p4::CounterData { packet_count: packets, byte_count: 60 * packets }));
        Some(p4::MeterCounterData { green, yellow, red })
    };
    let requested = Some(p4::MeterCounterData::default());
    switch.packet(1, &frame(7, 1, 0x800));
    controller.modify(cell(1, Some(config), None)).await;
    for _ in 0..7 {
        switch.packet(1, &frame(7, 1, 0x800));
    }
    assert_eq!(controller.read(cell(1, None, requested)).await, [cell(1, Some(config), colours([2, 2, 4]))]);
    assert_eq!(controller.read(cell(2, None, requested)).await, [cell(2, None, colours([0; 3]))]);
    controller.modify(cell(1, Some(config), requested)).await;
    assert_eq!(controller.read(cell(1, None, requested)).await, [cell(1, Some(config), colours([0; 3]))]);
    let refused = "meter I.limit: a meter's counts by colour can only be cleared; give 0";
    controller.refused(Modify, cell(1, None, colours([0, 0, 1])), Code::InvalidArgument, refused).await;
}

fn register(id: u32, at: Option<i64>, data: Option<p4::P4Data>) -> Entity {
    RegisterEntry(p4::RegisterEntry { register_id: id, index: at.map(|index| p4::Index { index }), data })
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_read_and_written() {
    let (switch, mut controller) = Switch::ready().await;
    switch.packet(3, &frame(1, 0x42, 0x800));
    assert_eq!(controller.read(register(SEEN, Some(3), None)).await, [register(SEEN, Some(3), bits(&[1]))]);
    assert_eq!(
        controller.read(register(LAST_SOURCE, Some(3), None)).await[0],
        register(LAST_SOURCE, Some(3), bits(&[0x42]))
    );
    controller.modify(register(SEEN, Some(3), bits(&[0, 0, 1, 0xff]))).await;
    switch.packet(3, &frame(1, 0x42, 0x800));
    assert_eq!(controller.read(register(SEEN, Some(3), None)).await, [register(SEEN, Some(3), bits(&[2, 0]))]);
    controller.modify(register(SEEN, None, bits(&[9]))).await;
    let all = controller.read(register(SEEN, None, None)).await;
    assert!(all.into_iter().eq((0..16).map(|at| register(SEEN, Some(at), bits(&[9])))));
    assert_eq!(controller.read(register(BALANCE, Some(0), None)).await, [register(BALANCE, Some(0), bits(&[0xff]))]);
    controller.modify(register(BALANCE, Some(1), bits(&[0xff, 0x80]))).await;
    assert_eq!(controller.read(register(BALANCE, Some(1), None)).await, [register(BALANCE, Some(1), bits(&[0x80]))]);
    let cases = [
        (register(SEEN, Some(16), bits(&[1])), Code::OutOfRange, "register I.seen: the index 16 is beyond"),
        (register(SEEN, Some(-1), bits(&[1])), Code::InvalidArgument, "index -1 is negative"),
        (register(SEEN, Some(1), bits(&[1, 0, 0, 0, 0])), Code::OutOfRange, "needs 33 bits, the field has 32"),
        (register(SEEN, Some(1), bits(&[])), Code::OutOfRange, "the value is empty"),
        (register(SEEN, Some(1), None), Code::InvalidArgument, "data is missing"),
        (register(99, Some(1), bits(&[1])), Code::InvalidArgument, "there is no register with id 0x63"),
        (register(BALANCE, Some(1), bits(&[0, 0x80])), Code::OutOfRange, "more than 8 bits"),
    ];
    for (entity, code, text) in cases {
        controller.refused(Modify, entity, code, text).await;
    }
    controller.refused(Delete, register(SEEN, Some(1), None), Code::InvalidArgument, "always exists; MODIFY it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_register_is_read_in_messages_below_four_megabytes() {
    let (_switch, mut controller) = Switch::ready().await;
    controller.modify(register(LAST_SOURCE, None, bits(&[0xff; 6]))).await;
    // The reply must consist of several messages: the client refuses messages above 4 MB, the default limit of gRPC.
    let cells = controller.read(register(LAST_SOURCE, None, None)).await;
    assert_eq!(cells.len(), 300_000);
    assert_eq!(cells[299_999], register(LAST_SOURCE, Some(299_999), bits(&[0xff; 6])));
    // In a read, the register id 0 means all registers.
    assert_eq!(controller.read(register(0, None, None)).await.len(), 300_000 + 16 + 2);
}

fn replica(port: u32, instance: u32) -> p4::Replica {
    let port_kind = Some(p4::replica::PortKind::Port(vec![port as u8]));
    p4::Replica { port_kind, instance, ..Default::default() }
}

fn group(id: u32, replicas: Vec<p4::Replica>) -> Entity {
    use p4::packet_replication_engine_entry::Type;
    let entry = p4::MulticastGroupEntry { multicast_group_id: id, replicas, metadata: b"all".to_vec() };
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: Some(Type::MulticastGroupEntry(entry)) })
}

#[tokio::test(flavor = "multi_thread")]
async fn multicast_groups() {
    let (switch, mut controller) = Switch::ready().await;
    let broadcast = direct(action(BROADCAST, &[&[6]]));
    let entry = p4::TableEntry { priority: 1, ..entry(TERNARY, vec![], broadcast) };
    controller.insert(TableEntry(entry)).await;
    assert_eq!(switch.packet(1, &frame(1, 1, 0x800)), []);
    controller.insert(group(6, vec![replica(2, 0), replica(3, 0)])).await;
    let mut ports: Vec<_> = switch.packet(1, &frame(1, 1, 0x800)).iter().map(|(port, _)| *port).collect();
    ports.sort_unstable();
    assert_eq!(ports, [2, 3]);
    #[allow(deprecated)]
    let old_form = p4::Replica { port_kind: Some(p4::replica::PortKind::EgressPort(4)), ..Default::default() };
    controller.modify(group(6, vec![old_form.clone()])).await;
    assert_eq!(controller.read(group(0, vec![])).await, [group(6, vec![old_form])]);
    controller.refused(Insert, group(6, vec![]), Code::AlreadyExists, "multicast group 6").await;
    controller.refused(Modify, group(7, vec![]), Code::NotFound, "multicast group 7").await;
    controller.refused(Insert, group(0, vec![]), Code::InvalidArgument, "ids begin at 1").await;
    let twice = vec![replica(2, 1), replica(2, 1)];
    controller.refused(Modify, group(6, twice), Code::InvalidArgument, "port 2 with instance 1 is given twice").await;
    controller.delete(group(6, vec![])).await;
    assert_eq!(switch.packet(1, &frame(1, 1, 0x800)), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn clone_sessions() {
    use p4::packet_replication_engine_entry::Type;
    let (switch, mut controller) = Switch::ready().await;
    let session = |packet_length_bytes| {
        let session = p4::CloneSessionEntry {
            session_id: 7,
            replicas: vec![replica(5, 0)],
            packet_length_bytes,
            ..Default::default()
        };
        PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry {
            r#type: Some(Type::CloneSessionEntry(session)),
        })
    };
    let mirror = direct(action(MIRROR, &[&[2]]));
    controller.insert(TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, vec![], mirror) })).await;
    controller.insert(session(0)).await;
    let mut out = switch.packet(1, &frame(1, 1, 0x800));
    out.sort();
    assert_eq!(out, [(2, frame(1, 1, 0x800)), (5, frame(1, 1, 0x800))]);
    controller.modify(session(20)).await;
    let out = switch.packet(1, &frame(1, 1, 0x800));
    assert!(out.contains(&(5, frame(1, 1, 0x800)[..20].to_vec())), "{out:?}");
    let read = controller.read(session(0)).await;
    assert_eq!(read, [session(20)]);
    controller.delete(session(0)).await;
    assert_eq!(switch.packet(1, &frame(1, 1, 0x800)).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn value_sets() {
    let (_switch, mut controller) = Switch::ready().await;
    let set = |values: &[u8]| {
        let member = |value: &u8| p4::ValueSetMember { r#match: vec![exact(1, &[*value])] };
        ValueSetEntry(p4::ValueSetEntry { value_set_id: LABELLED, members: values.iter().map(member).collect() })
    };
    controller.modify(set(&[1, 2])).await;
    assert_eq!(controller.read(ValueSetEntry(p4::ValueSetEntry::default())).await, [set(&[1, 2])]);
    controller.refused(Modify, set(&[1, 1]), Code::AlreadyExists, "a member is given twice").await;
    controller.refused(Modify, set(&[1, 2, 3, 4, 5]), Code::ResourceExhausted, "holds 4 members, not 5").await;
    controller.modify(set(&[])).await;
    assert_eq!(controller.read(set(&[])).await, [set(&[])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_configurations() {
    let (_switch, mut controller) = Switch::ready().await;
    let digest = |max_list_size| {
        DigestEntry(p4::DigestEntry {
            digest_id: id_of("learn_t"),
            config: Some(p4::digest_entry::Config { max_timeout_ns: 1, max_list_size, ack_timeout_ns: 2 }),
        })
    };
    controller
        .refused(Modify, digest(1), Code::NotFound, "configuration of digest learn_t: does not exist; INSERT it first")
        .await;
    controller.insert(digest(1)).await;
    controller
        .refused(Insert, digest(1), Code::AlreadyExists, "configuration of digest learn_t: exists already; MODIFY it")
        .await;
    controller.modify(digest(5)).await;
    assert_eq!(controller.read(DigestEntry(p4::DigestEntry::default())).await, [digest(5)]);
    controller.delete(digest(0)).await;
    assert_eq!(controller.read(digest(0)).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_pattern_of_a_read_has_its_outcome() {
    let (_switch, mut controller) = Switch::ready().await;
    let patterns = vec![register(SEEN, Some(1), None), register(SEEN, Some(99), None), register(98, None, None)];
    let status = controller.try_read(patterns).await.unwrap_err();
    let codes: Vec<_> = errors(&status).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::Ok, Code::OutOfRange, Code::InvalidArgument]);
}
