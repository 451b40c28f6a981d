//! Single updates and read patterns that the server refuses, for every kind of object.

use super::entities::*;
use crate::common::*;
use p4::entity::Entity::{self, *};
use p4::update::Type::{self, Delete, Insert, Modify, Unspecified};
use sluice_p4runtime::proto::p4::v1 as p4;

/// Returns updates that the server refuses, each with a description of its error.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
pub fn writes() -> Vec<(&'static str, Type, Entity)> {
    let meter_config = |cir, pir, eburst| p4::MeterConfig { cir, pir, eburst, ..Default::default() };
    let some_count = Some(p4::CounterData { byte_count: 0, packet_count: 1 });
    let colours = Some(p4::MeterCounterData { green: some_count, ..Default::default() });
    let wrong_param =
        p4::Action { action_id: FORWARD, params: vec![p4::action::Param { param_id: 9, value: vec![1] }] };
    let mut watch = set_of(&[1]);
    #[allow(deprecated)]
    let old = p4::action_profile_action::WatchKind::Watch(1);
    watch.action_profile_actions[0].watch_kind = Some(old);
    vec![
        ("no update type", Unspecified, TableEntry(table(key(), to(1)))),
        ("table id missing", Insert, TableEntry(entry(0, key(), to(1)))),
        ("unknown table", Insert, TableEntry(entry(77, key(), to(1)))),
        ("exact field missing", Insert, TableEntry(table(vec![], to(1)))),
        ("unknown match field", Insert, TableEntry(table(vec![exact(2, &[1])], to(1)))),
        ("match field twice", Insert, TableEntry(table(vec![exact(1, &[1]), exact(1, &[1])], to(1)))),
        ("match of another kind", Insert, TableEntry(table(vec![lpm(1, &[1], 8)], to(1)))),
        ("value too wide", Insert, TableEntry(table(vec![exact(1, &[1; 7])], to(1)))),
        ("value empty", Insert, TableEntry(table(vec![exact(1, &[])], to(1)))),
        ("prefix too long", Insert, TableEntry(entry(LPM, vec![lpm(1, &[1], 33)], to(1)))),
        ("prefix of zero bits", Insert, TableEntry(entry(LPM, vec![lpm(1, &[0], 0)], to(1)))),
        ("bits beyond the prefix", Insert, TableEntry(entry(LPM, vec![lpm(1, &[1], 8)], to(1)))),
        ("mask of zero", Insert, ternary_entry(vec![ternary(1, &[0], &[0])])),
        ("bits outside the mask", Insert, ternary_entry(vec![ternary(1, &[3], &[1])])),
        ("range upside down", Insert, ternary_entry(vec![range(3, &[2], &[1])])),
        ("range of every value", Insert, ternary_entry(vec![range(3, &[0], &[0xff, 0xff])])),
        ("priority missing", Insert, TableEntry(entry(TERNARY, vec![], to(1)))),
        ("priority of no use", Insert, TableEntry(p4::TableEntry { priority: 4, ..table(key(), to(1)) })),
        ("action missing", Insert, TableEntry(table(key(), None))),
        ("action empty", Insert, TableEntry(table(key(), Some(p4::TableAction::default())))),
        ("unknown action", Insert, TableEntry(table(key(), direct(action(5, &[]))))),
        ("action of another table", Insert, TableEntry(table(key(), direct(action(LEARN, &[]))))),
        ("parameter missing", Insert, TableEntry(table(key(), direct(action(FORWARD, &[]))))),
        ("unknown parameter", Insert, TableEntry(table(key(), direct(wrong_param)))),
        ("parameter too wide", Insert, TableEntry(table(key(), direct(action(FORWARD, &[&[2, 0]]))))),
        ("action only for defaults", Insert, TableEntry(table(key(), direct(action(DROP, &[]))))),
        ("action only for entries", Modify, TableEntry(default_of(EXACT, to(1)))),
        ("entry exists already", Insert, TableEntry(table(vec![exact(1, &[9])], to(1)))),
        ("entry to modify does not exist", Modify, TableEntry(table(key(), to(1)))),
        ("entry to delete does not exist", Delete, TableEntry(table(key(), None))),
        ("is_const", Insert, TableEntry(p4::TableEntry { is_const: true, ..table(key(), to(1)) })),
        (
            "time_since_last_hit",
            Insert,
            TableEntry(p4::TableEntry {
                time_since_last_hit: Some(p4::table_entry::IdleTimeout::default()),
                ..table(key(), to(1))
            }),
        ),
        ("const table", Insert, TableEntry(entry(CONST, key(), to(1)))),
        ("const default", Modify, TableEntry(default_of(LPM, to(1)))),
        ("default inserted", Insert, TableEntry(default_of(TERNARY, to(1)))),
        ("default with a key", Modify, TableEntry(p4::TableEntry { r#match: key(), ..default_of(EXACT, None) })),
        (
            "default with idle timeout",
            Modify,
            TableEntry(p4::TableEntry { idle_timeout_ns: 1, ..default_of(EXACT, None) }),
        ),
        (
            "idle timeout without support",
            Insert,
            TableEntry(p4::TableEntry { idle_timeout_ns: 5, ..entry(LPM, vec![], to(1)) }),
        ),
        ("idle timeout negative", Insert, TableEntry(p4::TableEntry { idle_timeout_ns: -5, ..table(key(), to(1)) })),
        (
            "no direct counter",
            Insert,
            TableEntry(p4::TableEntry { counter_data: some_count, ..entry(LPM, vec![], to(1)) }),
        ),
        (
            "no direct meter",
            Insert,
            TableEntry(p4::TableEntry { meter_counter_data: colours, ..entry(LPM, vec![], to(1)) }),
        ),
        (
            "direct meter's colours not zero",
            Modify,
            DirectMeterEntry(p4::DirectMeterEntry {
                table_entry: Some(table(vec![exact(1, &[9])], None)),
                counter_data: colours,
                config: None,
            }),
        ),
        ("direct counter of nothing", Modify, DirectCounterEntry(p4::DirectCounterEntry::default())),
        (
            "direct counter inserted",
            Insert,
            DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(table(key(), None)), data: some_count }),
        ),
        (
            "direct counter of no entry",
            Modify,
            DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(table(key(), None)), data: some_count }),
        ),
        ("pool table with an action", Insert, TableEntry(entry(POOL_TABLE, key(), to(1)))),
        ("direct table with a group", Insert, {
            let kind = p4::table_action::Type::ActionProfileGroupId(1);
            TableEntry(table(key(), Some(p4::TableAction { r#type: Some(kind) })))
        }),
        ("member 0", Insert, pool_entry(p4::table_action::Type::ActionProfileMemberId(0))),
        ("unknown member", Insert, pool_entry(p4::table_action::Type::ActionProfileMemberId(55))),
        ("unknown group", Insert, pool_entry(p4::table_action::Type::ActionProfileGroupId(55))),
        ("group without selector", Insert, {
            let kind = p4::table_action::Type::ActionProfileGroupId(1);
            TableEntry(entry(PLAIN_POOL_TABLE, key(), Some(p4::TableAction { r#type: Some(kind) })))
        }),
        ("one-shot without members", Insert, one_shot(set_of(&[]))),
        ("one-shot of weight 0", Insert, one_shot(set_of(&[0]))),
        ("one-shot too large", Insert, one_shot(set_of(&[60, 5]))),
        ("one-shot chosen in an unknown way", Insert, {
            one_shot(p4::ActionProfileActionSet { action_selection_mode: 3, ..set_of(&[1]) })
        }),
        ("one-shot counted in an unknown way", Insert, {
            one_shot(p4::ActionProfileActionSet { size_semantics: 3, ..set_of(&[1]) })
        }),
        ("watch_port that does not exist", Insert, watched(&[9])),
        ("watch_port too wide", Insert, watched(&[1; 5])),
        ("watch", Insert, one_shot(watch)),
        ("unknown profile", Insert, member(7, 1, Some(forward(1)))),
        ("member id missing", Insert, member(POOL, 0, Some(forward(1)))),
        ("member without action", Insert, member(POOL, 7, None)),
        ("member exists already", Insert, member(POOL, 1, Some(forward(1)))),
        ("member does not exist", Modify, member(POOL, 7, Some(forward(1)))),
        ("member in use", Delete, member(POOL, 1, None)),
        ("member too many", Insert, member(PLAIN_POOL, 17, Some(forward(1)))),
        ("group of a plain profile", Insert, group(PLAIN_POOL, 2, &[(1, 1)])),
        ("group id missing", Insert, group(POOL, 0, &[(1, 1)])),
        ("group exists already", Insert, group(POOL, 1, &[(1, 1)])),
        ("group does not exist", Modify, group(POOL, 2, &[(1, 1)])),
        ("group of an unknown member", Insert, group(POOL, 2, &[(55, 1)])),
        ("group with a member twice", Insert, group(POOL, 2, &[(1, 1), (1, 1)])),
        ("group member of weight 0", Insert, group(POOL, 2, &[(1, 0)])),
        ("group too large for the profile", Insert, group(POOL, 2, &[(1, 64)])),
        ("group with a negative max_size", Insert, sized_group(POOL, 2, &[(1, 1)], -1)),
        ("group of another max_size", Modify, sized_group(POOL, 1, &[(1, 1)], 5)),
        ("group in use", Delete, group(POOL, 1, &[])),
        ("unknown counter", Modify, counter(7, 0, 1)),
        ("counter inserted", Insert, counter(BY_PORT, 0, 1)),
        ("counter beyond its end", Modify, counter(BY_PORT, 8, 1)),
        ("counter with a negative index", Modify, counter(BY_PORT, -1, 1)),
        ("counter with a negative count", Modify, counter(BY_PORT, 1, -1)),
        ("unknown meter", Modify, meter(7, 0, meter_config(1, 1, 0))),
        ("meter with cir above pir", Modify, meter(LIMIT, 0, meter_config(2, 1, 0))),
        ("meter with eburst", Modify, meter(LIMIT, 0, meter_config(1, 1, 1))),
        ("meter with a negative rate", Modify, meter(LIMIT, 0, meter_config(-1, 1, 0))),
        ("meter's colours not zero", Modify, {
            let entry = p4::MeterEntry { meter_id: LIMIT, index: index(1), config: None, counter_data: colours };
            MeterEntry(entry)
        }),
        ("unknown register", Modify, register(7, 0, bits(&[1]))),
        ("register without data", Modify, register(SEEN, 0, None)),
        ("register beyond its end", Modify, register(SEEN, 16, bits(&[1]))),
        ("register value too wide", Modify, register(SEEN, 0, bits(&[1, 0, 0, 0, 0]))),
        ("register value of another form", Modify, {
            register(SEEN, 0, Some(p4::P4Data { data: Some(p4::p4_data::Data::Bool(true)) }))
        }),
        ("signed register value too wide", Modify, register(BALANCE, 0, bits(&[0, 0x80]))),
        ("multicast group 0", Insert, multicast(0, vec![])),
        ("multicast group too high", Insert, multicast(0x1_0000, vec![])),
        ("multicast group exists already", Insert, multicast(6, vec![])),
        ("multicast group does not exist", Delete, multicast(7, vec![])),
        ("replica without port", Insert, multicast(7, vec![p4::Replica::default()])),
        ("replica port too wide", Insert, multicast(7, vec![replica(&[1; 5], 0)])),
        ("replica instance too wide", Insert, multicast(7, vec![replica(&[1], 0x1_0000)])),
        ("replica twice", Insert, multicast(7, vec![replica(&[1], 0), replica(&[1], 0)])),
        ("replica as its own backup", Insert, multicast(7, vec![backed_by(1)])),
        ("clone session 0", Insert, session(0, 0)),
        ("clone session too high", Insert, session(0x8000, 0)),
        ("clone session with a negative length", Insert, session(7, -1)),
        (
            "replication of neither kind",
            Insert,
            PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry::default()),
        ),
        ("unknown value set", Modify, ValueSetEntry(p4::ValueSetEntry::default())),
        ("value set inserted", Insert, value_set(vec![])),
        ("value set too large", Modify, value_set((1..=5).map(|value| vec![exact(1, &[value])]).collect())),
        ("value set member twice", Modify, value_set(vec![key(), key()])),
        ("unknown digest", Insert, digest(7, 1)),
        ("digest not enabled", Modify, digest(id_of("learn_t"), 1)),
        ("digest with a negative size", Insert, digest(id_of("learn_t"), -1)),
        ("extern", Insert, ExternEntry(p4::ExternEntry { extern_type_id: 1, ..Default::default() })),
    ]
}

/// Returns patterns that the server refuses to read, each with a description of its error.
pub fn reads() -> Vec<(&'static str, Entity)> {
    vec![
        ("unknown table", TableEntry(entry(77, vec![], None))),
        ("key without table", TableEntry(entry(0, key(), None))),
        ("entries of a member", {
            let kind = p4::table_action::Type::ActionProfileMemberId(1);
            TableEntry(entry(POOL_TABLE, vec![], Some(p4::TableAction { r#type: Some(kind) })))
        }),
        ("counter of no entry", {
            DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(table(key(), None)), data: None })
        }),
        ("counter of a table without", {
            DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(entry(LPM, vec![], None)), data: None })
        }),
        ("idle time of the default", {
            let time_since_last_hit = Some(p4::table_entry::IdleTimeout::default());
            TableEntry(p4::TableEntry { time_since_last_hit, ..default_of(EXACT, None) })
        }),
        ("unknown register", register(7, 0, None)),
        ("register beyond its end", register(SEEN, 16, None)),
        ("extern", ExternEntry(p4::ExternEntry { extern_type_id: 1, ..Default::default() })),
    ]
}
