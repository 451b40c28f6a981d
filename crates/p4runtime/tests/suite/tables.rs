//! Tests table entries over gRPC: the server accepts or refuses them, applies them to packets and returns them to
//! readers.

use crate::common::*;
use p4::entity::Entity::{self, DirectCounterEntry, DirectMeterEntry, TableEntry};
use p4::set_forwarding_pipeline_config_request::Action;
use p4::update::Type::{Delete, Insert, Modify};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_lives_from_insert_to_delete() {
    let (switch, mut controller) = Switch::ready().await;
    let original = entry(EXACT, vec![exact(1, &[7])], direct(forward(2)));
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), []);
    controller.insert(TableEntry(original.clone())).await;
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), [(2, frame(7, 1, 0x800))]);
    assert_eq!(controller.read(TableEntry(entry(EXACT, vec![], None))).await, [TableEntry(original.clone())]);
    controller.refused(Insert, TableEntry(original.clone()), Code::AlreadyExists, "table I.exact_t").await;
    let changed = p4::TableEntry { action: direct(forward(3)), metadata: b"mark".to_vec(), ..original.clone() };
    controller.modify(TableEntry(changed.clone())).await;
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), [(3, frame(7, 1, 0x800))]);
    let pattern = |metadata: &[u8]| p4::TableEntry { metadata: metadata.to_vec(), ..entry(EXACT, vec![], None) };
    assert_eq!(controller.read(TableEntry(pattern(b"mark"))).await, [TableEntry(changed)]);
    assert_eq!(controller.read(TableEntry(pattern(b"other"))).await, []);
    controller.delete(TableEntry(entry(EXACT, vec![exact(1, &[7])], None))).await;
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)), []);
    controller.refused(Delete, TableEntry(original.clone()), Code::NotFound, "table I.exact_t").await;
    controller.refused(Modify, TableEntry(original), Code::NotFound, "table I.exact_t").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn longest_prefixes_win() {
    let (switch, mut controller) = Switch::ready().await;
    controller
        .modify(Entity::ValueSetEntry(p4::ValueSetEntry {
            value_set_id: LABELLED,
            members: vec![p4::ValueSetMember { r#match: vec![exact(1, &[0x12, 0x34])] }],
        }))
        .await;
    for (fields, port) in [(vec![], 1), (vec![lpm(1, &[10, 0, 0, 0], 8)], 2), (vec![lpm(1, &[10, 1, 0, 0], 16)], 3)] {
        controller.insert(TableEntry(entry(LPM, fields, direct(forward(port))))).await;
    }
    let labelled = |label: [u8; 4]| {
        let mut frame = frame(9, 9, 0x1234);
        frame[14..18].copy_from_slice(&label);
        frame
    };
    for (label, port) in [([10, 1, 2, 3], 3), ([10, 2, 2, 3], 2), ([11, 1, 2, 3], 1)] {
        assert_eq!(switch.packet(1, &labelled(label)), [(port, labelled(label))]);
    }
    let all = controller.read(TableEntry(entry(LPM, vec![], None))).await;
    assert_eq!(all.len(), 3);
    let matching = controller.read(TableEntry(entry(LPM, vec![lpm(1, &[10, 0, 0, 0], 8)], None))).await;
    assert_eq!(matching, [TableEntry(entry(LPM, vec![lpm(1, &[10, 0, 0, 0], 8)], direct(forward(2))))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn larger_priorities_win_and_wildcards_read_back_as_omitted_fields() {
    let (switch, mut controller) = Switch::ready().await;
    let prioritised =
        |priority, fields, port| p4::TableEntry { priority, ..entry(TERNARY, fields, direct(forward(port))) };
    let low = prioritised(1, vec![], 1);
    let by_source = prioritised(5, vec![ternary(1, &[0x20], &[0xf0])], 2);
    let by_port = prioritised(9, vec![optional(2, &[4])], 3);
    for entry in [&low, &by_source, &by_port] {
        controller.insert(TableEntry(entry.clone())).await;
    }
    assert_eq!(switch.packet(1, &frame(9, 0x11, 0x800))[0].0, 1);
    assert_eq!(switch.packet(1, &frame(9, 0x21, 0x800))[0].0, 2);
    assert_eq!(switch.packet(4, &frame(9, 0x21, 0x800))[0].0, 3);
    for entry in [low, by_source, by_port] {
        let pattern = p4::TableEntry { action: None, ..entry.clone() };
        assert_eq!(controller.read(TableEntry(pattern)).await, [TableEntry(entry)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "a list of cases")]
async fn refusals_name_table_field_and_reason() {
    let (_switch, mut controller) = Switch::ready().await;
    let forward = || direct(forward(1));
    let key = || vec![exact(1, &[1])];
    let wide = action(FORWARD, &[&[2, 0]]);
    let cases = [
        (Insert, entry(0, key(), forward()), Code::InvalidArgument, "the table id is missing"),
        (Insert, entry(77, key(), forward()), Code::InvalidArgument, "there is no table with id 0x4d"),
        (Insert, entry(EXACT, vec![], forward()), Code::InvalidArgument, "match field 1 (dst): is missing"),
        (Insert, entry(EXACT, vec![exact(2, &[1])], forward()), Code::InvalidArgument, "there is no match field 2"),
        (Insert, entry(EXACT, vec![exact(1, &[1; 7])], forward()), Code::InvalidArgument, "needs 49 bits"),
        (Insert, entry(EXACT, key(), None), Code::InvalidArgument, "table I.exact_t: the action is missing"),
        (Insert, entry(EXACT, key(), direct(action(LEARN, &[]))), Code::InvalidArgument, "is not one of those"),
        (Insert, entry(EXACT, key(), direct(action(5, &[]))), Code::InvalidArgument, "there is no action with id 0x5"),
        (Insert, entry(EXACT, key(), direct(action(DROP, &[]))), Code::PermissionDenied, "@defaultonly"),
        (Insert, entry(EXACT, key(), direct(action(FORWARD, &[]))), Code::InvalidArgument, "parameter 1 (port)"),
        (Insert, entry(EXACT, key(), direct(wide)), Code::InvalidArgument, "needs 10 bits, the field has 9"),
        (
            Insert,
            p4::TableEntry { priority: 4, ..entry(EXACT, key(), forward()) },
            Code::InvalidArgument,
            "there is no priority; leave it 0",
        ),
        (Insert, entry(TERNARY, vec![], forward()), Code::InvalidArgument, "give a priority above 0"),
        (Insert, entry(CONST, vec![exact(1, &[1])], forward()), Code::PermissionDenied, "table I.const_t"),
        (Delete, entry(CONST, vec![exact(1, &[0xbe, 0xef])], None), Code::PermissionDenied, "are const"),
        (
            Modify,
            p4::TableEntry { is_default_action: true, ..entry(LPM, vec![], forward()) },
            Code::PermissionDenied,
            "the default action is const",
        ),
        (
            Modify,
            p4::TableEntry { is_default_action: true, ..entry(EXACT, vec![], forward()) },
            Code::PermissionDenied,
            "@tableonly",
        ),
        (
            Insert,
            p4::TableEntry { is_default_action: true, ..entry(EXACT, vec![], forward()) },
            Code::InvalidArgument,
            "always exists; MODIFY it",
        ),
        (
            Insert,
            p4::TableEntry { idle_timeout_ns: 5, ..entry(LPM, vec![lpm(1, &[1], 32)], forward()) },
            Code::InvalidArgument,
            "tables which do not support idle timeout",
        ),
        (
            Insert,
            p4::TableEntry { counter_data: Some(p4::CounterData::default()), ..entry(LPM, vec![], forward()) },
            Code::InvalidArgument,
            "no direct counter",
        ),
        (
            Insert,
            p4::TableEntry {
                meter_config: Some(p4::MeterConfig { cir: 9, pir: 1, ..Default::default() }),
                ..entry(EXACT, key(), forward())
            },
            Code::InvalidArgument,
            "cir (9) is above pir (1)",
        ),
    ];
    for (kind, entry, code, text) in cases {
        controller.refused(kind, TableEntry(entry), code, text).await;
    }
    assert_eq!(controller.read(TableEntry(entry(EXACT, vec![], None))).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_table_refuses_and_a_batch_goes_on() {
    let (_switch, mut controller) = Switch::ready().await;
    let updates = (1..=6).map(|dst| {
        let key = if dst == 2 { vec![] } else { vec![exact(1, &[dst])] };
        update(Insert, TableEntry(entry(EXACT, key, direct(forward(1)))))
    });
    let status = controller.write_all(updates.collect()).await.unwrap_err();
    let codes: Vec<_> = errors(&status).iter().map(|(code, _)| *code).collect();
    use Code::{InvalidArgument, Ok, ResourceExhausted};
    assert_eq!(codes, [Ok, InvalidArgument, Ok, Ok, Ok, ResourceExhausted]);
    assert!(status.message().starts_with("2 of 6 failed, first: table I.exact_t: match field 1"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn default_actions_can_be_set_and_reset() {
    let (switch, mut controller) = Switch::ready().await;
    let default = |action| p4::TableEntry { is_default_action: true, ..entry(TERNARY, vec![], action) };
    controller.modify(TableEntry(default(direct(forward(6))))).await;
    assert_eq!(switch.packet(1, &frame(9, 9, 0x800))[0].0, 6);
    assert_eq!(controller.read(TableEntry(default(None))).await, [TableEntry(default(direct(forward(6))))]);
    controller.modify(TableEntry(default(None))).await;
    assert_eq!(switch.packet(1, &frame(9, 9, 0x800)), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_program_can_be_read() {
    let (switch, mut controller) = Switch::ready().await;
    assert_eq!(switch.packet(1, &frame(9, 9, 0xbeef))[0].0, 9);
    let const_entry =
        p4::TableEntry { is_const: true, ..entry(CONST, vec![exact(1, &[0xbe, 0xef])], direct(forward(9))) };
    assert_eq!(controller.read(TableEntry(entry(CONST, vec![], None))).await, [TableEntry(const_entry.clone())]);
    assert_eq!(controller.read(TableEntry(p4::TableEntry::default())).await, [TableEntry(const_entry)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_meters_of_entries() {
    let (switch, mut controller) = Switch::ready().await;
    let counts = |packet_count, byte_count| p4::CounterData { byte_count, packet_count };
    let meter = p4::MeterConfig { cir: 1000, cburst: 100, pir: 2000, pburst: 200, eburst: 0 };
    let key = || vec![exact(1, &[7])];
    let written = p4::TableEntry {
        counter_data: Some(counts(10, 1000)),
        meter_config: Some(meter),
        ..entry(EXACT, key(), direct(action(COUNT_DIRECT, &[&[2]])))
    };
    controller.insert(TableEntry(written.clone())).await;
    switch.packet(1, &frame(7, 1, 0x800));
    let pattern = p4::TableEntry {
        counter_data: Some(counts(0, 0)),
        meter_config: Some(p4::MeterConfig::default()),
        ..entry(EXACT, key(), None)
    };
    let read = controller.read(TableEntry(pattern)).await;
    assert_eq!(read, [TableEntry(p4::TableEntry { counter_data: Some(counts(11, 1060)), ..written })]);
    let plain = controller.read(TableEntry(entry(EXACT, key(), None))).await;
    assert!(matches!(&plain[0], TableEntry(entry) if entry.counter_data.is_none() && entry.meter_config.is_none()));

    let named = || Some(entry(EXACT, key(), None));
    let counter = |data| DirectCounterEntry(p4::DirectCounterEntry { table_entry: named(), data });
    controller.modify(counter(Some(counts(5, 5)))).await;
    assert_eq!(controller.read(counter(None)).await, [counter(Some(counts(5, 5)))]);
    let meter_entry =
        |config| DirectMeterEntry(p4::DirectMeterEntry { table_entry: named(), config, counter_data: None });
    assert_eq!(controller.read(meter_entry(None)).await, [meter_entry(Some(meter))]);
    controller.modify(meter_entry(None)).await;
    assert_eq!(controller.read(meter_entry(None)).await, [meter_entry(None)]);
    controller.refused(Insert, counter(None), Code::InvalidArgument, "always exists; MODIFY it").await;

    let missing = DirectCounterEntry(p4::DirectCounterEntry {
        table_entry: Some(entry(EXACT, vec![exact(1, &[8])], None)),
        data: None,
    });
    let status = controller.try_read(vec![missing]).await.unwrap_err();
    assert_eq!(errors(&status)[0].0, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_of_actions_that_do_not_use_them_are_accepted() {
    let (switch, mut controller) = Switch::ready().await;
    let counts = |packet_count, byte_count| Some(p4::CounterData { byte_count, packet_count });
    let meter_config = Some(p4::MeterConfig { cir: 1000, cburst: 100, pir: 2000, pburst: 200, eburst: 0 });
    let forwards = |counter_data| p4::TableEntry {
        counter_data,
        meter_config,
        ..entry(EXACT, vec![exact(1, &[7])], direct(forward(2)))
    };
    controller.insert(TableEntry(forwards(counts(10, 1000)))).await;
    assert_eq!(switch.packet(1, &frame(7, 1, 0x800)).len(), 1);
    let pattern = p4::TableEntry { action: None, ..forwards(counts(0, 0)) };
    assert_eq!(controller.read(TableEntry(pattern)).await, [TableEntry(forwards(counts(11, 1060)))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_meters_of_default_actions() {
    let (switch, mut controller) = Switch::ready().await;
    let counts = |packet_count, byte_count| p4::CounterData { byte_count, packet_count };
    let default = || p4::TableEntry { is_default_action: true, ..entry(EXACT, vec![], None) };
    let counter = |data| DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(default()), data });
    switch.packet(1, &frame(7, 1, 0x800));
    assert_eq!(controller.read(counter(None)).await, [counter(Some(counts(1, 60)))]);
    controller.modify(counter(Some(counts(5, 5)))).await;

    // The meter of the default action marks packets that match no entry. Its buckets contain 60 and 120 bytes, and each
    // packet has 60 bytes, so both buckets are empty at the third such packet.
    let config = p4::MeterConfig { cir: 1, cburst: 60, pir: 1, pburst: 120, eburst: 0 };
    let labelled = p4::TableEntry {
        metadata: b"miss".to_vec(),
        meter_config: Some(config),
        action: direct(action(NO_ACTION, &[])),
        ..default()
    };
    controller.modify(TableEntry(labelled.clone())).await;
    for _ in 0..3 {
        switch.packet(1, &frame(7, 1, 0x800));
    }
    let pattern = p4::TableEntry {
        counter_data: Some(counts(0, 0)),
        meter_config: Some(p4::MeterConfig::default()),
        meter_counter_data: Some(p4::MeterCounterData::default()),
        ..default()
    };
    let one_packet = Some(counts(1, 60));
    let read = p4::TableEntry {
        counter_data: Some(counts(8, 185)),
        meter_counter_data: Some(p4::MeterCounterData { green: one_packet, yellow: one_packet, red: one_packet }),
        ..labelled
    };
    assert_eq!(controller.read(TableEntry(pattern.clone())).await, [TableEntry(read)]);
    let meter = |config, counter_data| {
        DirectMeterEntry(p4::DirectMeterEntry { table_entry: Some(default()), config, counter_data })
    };
    let zero = Some(p4::CounterData::default());
    let cleared = Some(p4::MeterCounterData { green: zero, yellow: zero, red: zero });
    controller.modify(meter(Some(config), Some(p4::MeterCounterData::default()))).await;
    assert_eq!(controller.read(meter(None, cleared)).await, [meter(Some(config), cleared)]);

    // A write without action resets the default action to the program's declaration. Only the counter keeps its values.
    controller.modify(TableEntry(default())).await;
    let TableEntry(read) = controller.read(TableEntry(pattern)).await.remove(0) else { panic!("no entry") };
    assert_eq!((read.metadata, read.meter_config, read.counter_data), (vec![], None, Some(counts(8, 185))));
    let wrong = p4::TableEntry { is_default_action: true, ..entry(EXACT, vec![exact(1, &[1])], None) };
    let wrong = DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(wrong), data: None });
    controller.refused(Modify, wrong, Code::InvalidArgument, "neither match fields nor priority").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_meters_of_const_default_actions_are_written_as_separate_entities() {
    let (switch, mut controller) = Switch::ready().await;
    let mut constant = config(2);
    constant.p4info.as_mut().unwrap().tables[0].const_default_action_id = NO_ACTION;
    controller.push(Action::VerifyAndCommit, Some(constant)).await.unwrap();
    let counts = |packet_count, byte_count| Some(p4::CounterData { byte_count, packet_count });
    let default = || p4::TableEntry { is_default_action: true, ..entry(EXACT, vec![], None) };
    // A write to a const default action must be refused, with and without an action, even if it only sets the counter.
    for action in [None, direct(action(NO_ACTION, &[]))] {
        let counted = p4::TableEntry { counter_data: counts(5, 5), action, ..default() };
        controller.refused(Modify, TableEntry(counted), Code::PermissionDenied, "the default action is const").await;
    }
    let counter = |data| DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(default()), data });
    controller.modify(counter(counts(5, 5))).await;
    switch.packet(1, &frame(7, 1, 0x800));
    assert_eq!(controller.read(counter(None)).await, [counter(counts(6, 65))]);
    let config = Some(p4::MeterConfig { cir: 1, cburst: 60, pir: 1, pburst: 120, eburst: 0 });
    let meter =
        |config| DirectMeterEntry(p4::DirectMeterEntry { table_entry: Some(default()), config, counter_data: None });
    controller.modify(meter(config)).await;
    let pattern = p4::TableEntry { counter_data: counts(0, 0), meter_config: Some(Default::default()), ..default() };
    let read = p4::TableEntry {
        counter_data: counts(6, 65),
        meter_config: config,
        is_const: true,
        action: direct(action(NO_ACTION, &[])),
        ..default()
    };
    assert_eq!(controller.read(TableEntry(pattern)).await, [TableEntry(read)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_meters_count_by_colour() {
    let (switch, mut controller) = Switch::ready().await;
    let config = p4::MeterConfig { cir: 1, cburst: 60, pir: 1, pburst: 120, eburst: 0 };
    let key = || vec![exact(1, &[7])];
    let limited =
        p4::TableEntry { meter_config: Some(config), ..entry(EXACT, key(), direct(action(COUNT_DIRECT, &[&[2]]))) };
    controller.insert(TableEntry(limited.clone())).await;
    for _ in 0..4 {
        switch.packet(1, &frame(7, 1, 0x800));
    }
    let colours = |counts: [i64; 3]| {
        let [green, yellow, red] =
            counts.map(|packets| Some(p4::CounterData { packet_count: packets, byte_count: 60 * packets }));
        Some(p4::MeterCounterData { green, yellow, red })
    };
    let meter = |counter_data| {
        let table_entry = Some(entry(EXACT, key(), None));
        DirectMeterEntry(p4::DirectMeterEntry { table_entry, config: Some(config), counter_data })
    };
    assert_eq!(controller.read(meter(colours([0; 3]))).await, [meter(colours([1, 1, 2]))]);
    assert_eq!(controller.read(meter(None)).await, [meter(None)]);
    let refused = "a meter's counts by colour can only be cleared; give 0";
    controller.refused(Modify, meter(colours([1, 0, 0])), Code::InvalidArgument, refused).await;
    // A modification without counts by colour does not change them; a modification with counts clears them.
    controller.modify(TableEntry(limited.clone())).await;
    assert_eq!(controller.read(meter(colours([0; 3]))).await, [meter(colours([1, 1, 2]))]);
    controller.modify(TableEntry(p4::TableEntry { meter_counter_data: colours([0; 3]), ..limited })).await;
    assert_eq!(controller.read(meter(colours([0; 3]))).await, [meter(colours([0; 3]))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_entries_are_read_in_several_messages() {
    let (_switch, mut controller) = Switch::ready().await;
    let count = 10_000u32;
    let numbered_entry = |number: u32| p4::TableEntry {
        priority: 1 + number as i32,
        metadata: vec![1; 200],
        ..entry(TERNARY, vec![ternary(1, &(1 << 24 | number).to_be_bytes(), &[0xff; 6])], direct(forward(1)))
    };
    for start in (0..count).step_by(1000) {
        let updates = (start..start + 1000).map(|number| update(Insert, TableEntry(numbered_entry(number))));
        controller.write_all(updates.collect()).await.unwrap();
    }
    let entries = controller.read(TableEntry(entry(TERNARY, vec![], None))).await;
    assert_eq!(entries.len(), count as usize);
    assert_eq!(entries[1234], TableEntry(numbered_entry(1234)));
}

/// Clients may change the initial entries that the program declares with `entries` without `const`.
#[tokio::test(flavor = "multi_thread")]
async fn initial_entries_can_be_changed() {
    let (switch, mut controller) = Switch::ready().await;
    let mut initial = config(2);
    let tables = &mut initial.p4info.as_mut().unwrap().tables;
    let table = tables.iter_mut().find(|table| table.preamble.as_ref().is_some_and(|preamble| preamble.id == CONST));
    let table = table.unwrap();
    (table.is_const_table, table.has_initial_entries) = (false, true);
    table.size = 2;
    controller.push(Action::VerifyAndCommit, Some(initial)).await.unwrap();
    let of = |port| entry(CONST, vec![exact(1, &[0xbe, 0xef])], direct(forward(port)));
    let out =
        |switch: &Switch| switch.packet(1, &frame(1, 1, 0xbeef)).into_iter().map(|(port, _)| port).collect::<Vec<_>>();
    assert_eq!(
        (controller.read(TableEntry(entry(CONST, vec![], None))).await, out(&switch)),
        (vec![TableEntry(of(9))], vec![9])
    );
    controller.modify(TableEntry(of(4))).await;
    assert_eq!(out(&switch), [4]);
    let is_const = p4::TableEntry { is_const: true, ..of(4) };
    controller.refused(Delete, TableEntry(is_const), Code::InvalidArgument, "is_const is for reading").await;
    controller.delete(TableEntry(of(4))).await;
    assert_eq!(out(&switch), [0_u32; 0]);
    controller.insert(TableEntry(of(5))).await;
    assert_eq!(out(&switch), [5]);
}
