//! Every refusal with its code and its text, against `golden/errors.txt`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p sluice-p4runtime --test suite errors` writes the file anew.

use std::fmt::Write as _;

use crate::common::*;
use crate::pipelines::with_meters;
use crate::reconcile::{with_cells, with_room_for};
use crate::translation::{metadata, of, strings, translated};
use p4::entity::Entity::{self, *};
use p4::packet_replication_engine_entry::Type as Replication;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type::{self, Delete, Insert, Modify, Unspecified};
use sluice_p4runtime::proto::p4::{config::v1 as p4info, v1 as p4};
use tonic::{Code, Status};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/errors.txt");
const HEAD: &str = "\
# Everything that the P4Runtime server refuses, with what it answers: request | code | text.
# Written by tests/errors.rs; UPDATE_GOLDEN=1 writes it anew.
";

fn table(fields: Vec<p4::FieldMatch>, action: Option<p4::TableAction>) -> p4::TableEntry {
    entry(EXACT, fields, action)
}

fn key() -> Vec<p4::FieldMatch> {
    vec![exact(1, &[1])]
}

fn to(port: u8) -> Option<p4::TableAction> {
    direct(forward(port))
}

fn default_of(table: u32, action: Option<p4::TableAction>) -> p4::TableEntry {
    p4::TableEntry { is_default_action: true, ..entry(table, vec![], action) }
}

fn ternary_entry(fields: Vec<p4::FieldMatch>) -> Entity {
    TableEntry(p4::TableEntry { priority: 1, ..entry(TERNARY, fields, to(1)) })
}

fn range(field_id: u32, low: &[u8], high: &[u8]) -> p4::FieldMatch {
    let range = p4::field_match::Range { low: low.to_vec(), high: high.to_vec() };
    p4::FieldMatch { field_id, field_match_type: Some(p4::field_match::FieldMatchType::Range(range)) }
}

fn pool_entry(kind: p4::table_action::Type) -> Entity {
    TableEntry(entry(POOL_TABLE, key(), Some(p4::TableAction { r#type: Some(kind) })))
}

fn set_of(weights: &[i32]) -> p4::ActionProfileActionSet {
    let member = |weight: &i32| p4::ActionProfileAction { action: Some(forward(1)), weight: *weight, watch_kind: None };
    p4::ActionProfileActionSet { action_profile_actions: weights.iter().map(member).collect(), ..Default::default() }
}

fn one_shot(set: p4::ActionProfileActionSet) -> Entity {
    pool_entry(p4::table_action::Type::ActionProfileActionSet(set))
}

fn watched(port: &[u8]) -> Entity {
    let mut set = set_of(&[1]);
    set.action_profile_actions[0].watch_kind = Some(p4::action_profile_action::WatchKind::WatchPort(port.to_vec()));
    one_shot(set)
}

fn member(profile: u32, id: u32, action: Option<p4::Action>) -> Entity {
    ActionProfileMember(p4::ActionProfileMember { action_profile_id: profile, member_id: id, action })
}

fn group(profile: u32, id: u32, members: &[(u32, i32)]) -> Entity {
    sized_group(profile, id, members, 0)
}

fn sized_group(profile: u32, id: u32, members: &[(u32, i32)], max_size: i32) -> Entity {
    let member = |(member_id, weight): &(u32, i32)| p4::action_profile_group::Member {
        member_id: *member_id,
        weight: *weight,
        watch_kind: None,
    };
    let members = members.iter().map(member).collect();
    ActionProfileGroup(p4::ActionProfileGroup { action_profile_id: profile, group_id: id, members, max_size })
}

fn multicast(id: u32, replicas: Vec<p4::Replica>) -> Entity {
    let group = p4::MulticastGroupEntry { multicast_group_id: id, replicas, ..Default::default() };
    let kind = Some(Replication::MulticastGroupEntry(group));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

fn session(id: u32, packet_length_bytes: i32) -> Entity {
    let session = p4::CloneSessionEntry { session_id: id, packet_length_bytes, ..Default::default() };
    let kind = Some(Replication::CloneSessionEntry(session));
    PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind })
}

fn replica(port: &[u8], instance: u32) -> p4::Replica {
    let port_kind = Some(p4::replica::PortKind::Port(port.to_vec()));
    p4::Replica { port_kind, instance, ..Default::default() }
}

/// A replica on port 1 with this one as its backup.
fn backed_by(port: u8) -> p4::Replica {
    p4::Replica { backup_replicas: vec![p4::BackupReplica { port: vec![port], instance: 1 }], ..replica(&[1], 0) }
}

fn counter(id: u32, at: i64, packets: i64) -> Entity {
    let data = Some(p4::CounterData { byte_count: 0, packet_count: packets });
    CounterEntry(p4::CounterEntry { counter_id: id, index: index(at), data })
}

fn meter(id: u32, at: i64, config: p4::MeterConfig) -> Entity {
    MeterEntry(p4::MeterEntry { meter_id: id, index: index(at), config: Some(config), counter_data: None })
}

fn register(id: u32, at: i64, data: Option<p4::P4Data>) -> Entity {
    RegisterEntry(p4::RegisterEntry { register_id: id, index: index(at), data })
}

fn value_set(members: Vec<Vec<p4::FieldMatch>>) -> Entity {
    let members = members.into_iter().map(|r#match| p4::ValueSetMember { r#match }).collect();
    ValueSetEntry(p4::ValueSetEntry { value_set_id: LABELLED, members })
}

fn digest(digest_id: u32, max_list_size: i32) -> Entity {
    let config = Some(p4::digest_entry::Config { max_list_size, ..Default::default() });
    DigestEntry(p4::DigestEntry { digest_id, config })
}

/// Updates that are refused, by what is wrong with them.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn writes() -> Vec<(&'static str, Type, Entity)> {
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
        ("range of everything", Insert, ternary_entry(vec![range(3, &[0], &[0xff, 0xff])])),
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
        ("entry is there", Insert, TableEntry(table(vec![exact(1, &[9])], to(1)))),
        ("entry to modify is not there", Modify, TableEntry(table(key(), to(1)))),
        ("entry to delete is not there", Delete, TableEntry(table(key(), None))),
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
        ("member is there", Insert, member(POOL, 1, Some(forward(1)))),
        ("member is not there", Modify, member(POOL, 7, Some(forward(1)))),
        ("member in use", Delete, member(POOL, 1, None)),
        ("member too many", Insert, member(PLAIN_POOL, 17, Some(forward(1)))),
        ("group of a plain profile", Insert, group(PLAIN_POOL, 2, &[(1, 1)])),
        ("group id missing", Insert, group(POOL, 0, &[(1, 1)])),
        ("group is there", Insert, group(POOL, 1, &[(1, 1)])),
        ("group is not there", Modify, group(POOL, 2, &[(1, 1)])),
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
        ("multicast group is there", Insert, multicast(6, vec![])),
        ("multicast group is not there", Delete, multicast(7, vec![])),
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

/// Patterns that cannot be read.
fn reads() -> Vec<(&'static str, Entity)> {
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

/// A code as the specification writes it.
fn name(code: Code) -> String {
    let camel = format!("{code:?}");
    let mut name = String::new();
    for (place, letter) in camel.chars().enumerate() {
        if place > 0 && letter.is_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

struct Golden(String);

impl Golden {
    fn line(&mut self, request: &str, code: Code, text: &str) {
        writeln!(self.0, "{request} | {} | {text}", name(code)).unwrap();
    }

    fn status(&mut self, request: &str, status: &Status) {
        self.line(request, status.code(), status.message());
    }

    /// The refusal of an update.
    async fn write(&mut self, controller: &mut Controller, what: &str, kind: Type, entity: Entity) {
        let Err((code, text)) = controller.try_write(kind, entity).await else { panic!("accepted: {what}") };
        self.line(&format!("write: {what}"), code, &text);
    }

    /// The next message of a stream.
    async fn stream_error(&mut self, what: &str, controller: &mut Controller) {
        let FromSwitch::Error(error) = controller.next().await else { panic!("no error: {what}") };
        self.line(what, Code::from_i32(error.canonical_code), &error.message);
    }
}

/// The words that remedies begin with.
const REMEDIES: &str = "INSERT MODIFY DELETE VERIFY_AND_SAVE bid clear close compile declare delete exchange give insert leave \
    make mend modify open push read remove send start use write";

/// The part of a text behind its first semicolon says what to do.
#[test]
fn every_refusal_has_a_remedy() {
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    let lacks_remedy = |line: &&str| {
        let text = line.splitn(3, " | ").last().unwrap();
        let remedy = text.split_once("; ").map_or("", |(_, remedy)| remedy);
        let mut clauses = remedy.split([';', ',', ':']).map(str::trim_start);
        // texts that are p4lang/PI's, word for word, say it so
        let in_pi_words = text.contains(" must be set to ") || text.contains(" must not be set ");
        !in_pi_words && !clauses.any(|clause| REMEDIES.split(' ').any(|word| clause.split(' ').next() == Some(word)))
    };
    let without: Vec<_> = golden.lines().filter(|line| !line.starts_with('#')).filter(lacks_remedy).collect();
    assert!(without.is_empty(), "these do not say what to do:\n{}", without.join("\n"));
}

async fn with_state() -> (Switch, Controller) {
    let (switch, mut controller) = Switch::ready().await;
    for port in 1..=4 {
        switch.device.set_port(port, true);
    }
    controller.insert(TableEntry(table(vec![exact(1, &[9])], to(1)))).await;
    controller.insert(member(POOL, 1, Some(forward(1)))).await;
    controller.insert(group(POOL, 1, &[(1, 1)])).await;
    let grouped = p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(1)) };
    controller.insert(TableEntry(entry(POOL_TABLE, vec![exact(1, &[9])], Some(grouped)))).await;
    controller.insert(multicast(6, vec![])).await;
    for id in 1..=16 {
        controller.insert(member(PLAIN_POOL, id, Some(forward(1)))).await;
    }
    (switch, controller)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_its_code_and_its_text() {
    let (switch, mut controller) = with_state().await;
    let mut golden = Golden(HEAD.to_owned());
    for (what, kind, entity) in writes() {
        golden.write(&mut controller, what, kind, entity).await;
    }
    controller.insert(digest(id_of("learn_t"), 1)).await;
    golden.write(&mut controller, "digest is there", Insert, digest(id_of("learn_t"), 1)).await;
    for (what, pattern) in reads() {
        let status = controller.try_read(vec![pattern]).await.expect_err(what);
        let (code, text) = errors(&status).remove(0);
        golden.line(&format!("read: {what}"), code, &text);
    }
    requests(&mut controller, &mut golden).await;
    pipelines(&mut controller, &mut golden).await;
    reconciliations(&mut controller, &mut golden).await;
    streams(&switch, &mut golden).await;
    packet_outs(&mut golden).await;
    limits(&mut golden).await;
    translations(&mut golden).await;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &golden.0).unwrap();
    }
    let expected = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    for (found, expected) in golden.0.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "(UPDATE_GOLDEN=1 writes the file anew)");
    }
    assert_eq!(golden.0.lines().count(), expected.lines().count(), "(UPDATE_GOLDEN=1 writes the file anew)");
}

/// Requests that are refused as a whole.
async fn requests(controller: &mut Controller, golden: &mut Golden) {
    let election_id = Some(p4::Uint128 { high: 0, low: controller.election });
    let good = p4::WriteRequest { device_id: DEVICE, election_id, ..Default::default() };
    #[allow(deprecated)]
    let wrong = [
        ("another device", p4::WriteRequest { device_id: 77, ..good.clone() }),
        ("a role id", p4::WriteRequest { role_id: 1, ..good.clone() }),
        ("an unknown role", p4::WriteRequest { role: "x".to_owned(), ..good.clone() }),
        ("no election id", p4::WriteRequest { election_id: None, ..good.clone() }),
        ("not the primary", p4::WriteRequest { election_id: Some(p4::Uint128 { high: 0, low: 1 }), ..good.clone() }),
        ("an unknown atomicity", p4::WriteRequest { atomicity: 9, ..good.clone() }),
    ];
    for (what, request) in wrong {
        golden.status(&format!("write request: {what}"), &controller.client.write(request).await.unwrap_err());
    }
    let updates = vec![p4::Update { r#type: Insert as i32, entity: None }];
    let status = controller.write_all(updates).await.unwrap_err();
    golden.line("write: no entity", errors(&status)[0].0, &errors(&status)[0].1);
    let batch = vec![
        update(Insert, TableEntry(table(vec![exact(1, &[2])], to(1)))),
        update(Insert, TableEntry(table(vec![], to(1)))),
        update(Insert, TableEntry(table(vec![exact(1, &[3])], to(1)))),
    ];
    let atomicity = p4::write_request::Atomicity::RollbackOnError as i32;
    let status = controller.write_batch(atomicity, batch).await.unwrap_err();
    golden.status("batch: one of three is wrong", &status);
    for (place, (code, text)) in errors(&status).iter().enumerate() {
        golden.line(&format!("batch: update {}", place + 1), *code, text);
    }
    let empty = Switch::start().await;
    let mut early = empty.controller(1).await;
    golden.status("write request: no pipeline", &early.write_all(vec![]).await.unwrap_err());
    let pattern = TableEntry(p4::TableEntry::default());
    golden.status("read request: no pipeline", &early.try_read(vec![pattern]).await.unwrap_err());
}

async fn pipelines(controller: &mut Controller, golden: &mut Golden) {
    let without = |json: bool, info: bool| {
        let mut config = config(1);
        config.p4_device_config = if json { config.p4_device_config } else { vec![] };
        config.p4info = config.p4info.filter(|_| info);
        Some(config)
    };
    let mut garbage = config(1);
    garbage.p4_device_config = b"{}".to_vec();
    let wrong = [
        ("no config", Action::Verify, None),
        ("no P4Info", Action::Verify, without(true, false)),
        ("no program", Action::Verify, without(false, true)),
        ("a program of nothing", Action::Verify, Some(garbage)),
        ("arrays too large", Action::Verify, Some(with_meters(1 << 28))),
        ("no action", Action::Unspecified, Some(config(1))),
        ("commit of nothing", Action::Commit, None),
        ("commit with a config", Action::Commit, Some(config(1))),
    ];
    for (what, action, config) in wrong {
        golden.status(&format!("pipeline: {what}"), &controller.push(action, config).await.unwrap_err());
    }
}

async fn streams(switch: &Switch, golden: &mut Golden) {
    let bid = |device_id, low| {
        let election_id = Some(p4::Uint128 { high: 0, low });
        ToSwitch::Arbitration(p4::MasterArbitrationUpdate { device_id, election_id, ..Default::default() })
    };
    let role = |role| {
        let role = Some(role);
        ToSwitch::Arbitration(p4::MasterArbitrationUpdate { device_id: DEVICE, role, ..Default::default() })
    };
    #[allow(deprecated)]
    let numbered = p4::Role { id: 4, ..Default::default() };
    let configured = p4::Role { name: "x".to_owned(), config: Some(prost_types::Any::default()), ..Default::default() };
    for (what, bid) in [
        ("another device", bid(77, 1)),
        ("an election id in use", bid(DEVICE, 10)),
        ("a role id", role(numbered)),
        ("a role config", role(configured)),
    ] {
        let mut controller = Controller::connect(switch, 1).await;
        controller.tell(bid).await;
        golden.status(&format!("bid: {what}"), &controller.try_next().await.unwrap_err());
    }
    let other = p4::Role { name: "x".to_owned(), ..Default::default() };
    for (election, what, bid) in [(1, "another device later", bid(77, 1)), (2, "another role later", role(other))] {
        let mut controller = switch.controller(election).await;
        controller.tell(bid).await;
        golden.status(&format!("bid: {what}"), &controller.try_next().await.unwrap_err());
    }
    let mut controller = Controller::connect(switch, 1).await;
    controller.tell_nothing().await;
    golden.status("stream: an empty message", &controller.try_next().await.unwrap_err());
    let mut primary = switch.controller(12).await;
    let twice = vec![p4::PacketMetadata { metadata_id: 1, value: vec![4] }; 2];
    let messages = [
        ("a packet with metadata twice", ToSwitch::Packet(p4::PacketOut { payload: vec![1; 60], metadata: twice })),
        ("an acknowledgement of no digest", { ToSwitch::DigestAck(p4::DigestListAck { digest_id: 1, list_id: 1 }) }),
        ("a message of another type", ToSwitch::Other(prost_types::Any::default())),
    ];
    for (what, message) in messages {
        primary.tell(message).await;
        let FromSwitch::Error(error) = primary.next().await else { panic!("no error: {what}") };
        golden.line(&format!("stream: {what}"), Code::from_i32(error.canonical_code), &error.message);
    }
    let mut backup = switch.controller(5).await;
    backup.tell(ToSwitch::Packet(p4::PacketOut::default())).await;
    golden.stream_error("stream: a packet of a backup", &mut backup).await;
    open_too_many(switch, golden).await;
}

/// One more stream than may be open.
async fn open_too_many(switch: &Switch, golden: &mut Golden) {
    // A connection has 128 calls under way at most.
    let clients = [switch.client().await, switch.client().await, switch.client().await];
    let mut open = Vec::new();
    loop {
        let mut client = clients[open.len() / 100].clone();
        match client.stream_channel(tokio_stream::pending()).await {
            Ok(stream) => open.push(stream),
            Err(status) => break golden.status("stream: too many", &status),
        }
    }
}

/// What a controller has the switch send.
async fn packet_outs(golden: &mut Golden) {
    let packet = || ToSwitch::Packet(p4::PacketOut { payload: vec![1; 60], metadata: metadata(&[&[4], &[0], &[0]]) });
    let switch = Switch::start_with(None).await;
    let mut controller = switch.controller(1).await;
    controller.tell(packet()).await;
    golden.stream_error("stream: a packet without a CPU port", &mut controller).await;
    let switch = Switch::start().await;
    let mut controller = switch.controller(1).await;
    controller.tell(packet()).await;
    golden.stream_error("stream: a packet without a pipeline", &mut controller).await;
    controller.push(Action::VerifyAndCommit, Some(config(1))).await.unwrap();
    while switch.device.counters().packet_out_refused.get() < 2 {
        controller.tell(packet()).await;
    }
    golden.stream_error("stream: a packet too many", &mut controller).await;
}

/// A switch with the program, of which P4Info says something else.
async fn with_info(change: impl FnOnce(&mut p4info::P4Info)) -> Controller {
    let switch = Switch::start().await;
    let mut controller = switch.controller(1).await;
    let mut config = config(1);
    change(config.p4info.as_mut().unwrap());
    controller.push(Action::VerifyAndCommit, Some(config)).await.unwrap();
    controller.insert(member(POOL, 1, Some(forward(1)))).await;
    controller
}

/// Limits that only P4Info has.
async fn limits(golden: &mut Golden) {
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

/// Names that stand for numbers.
async fn translations(golden: &mut Golden) {
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
    golden.write(&mut controller, "name of nothing", Delete, TableEntry(table(vec![exact(1, b"b")], None))).await;
    let unknown = p4::PacketOut { payload: vec![1; 60], metadata: metadata(&[b"downlink", &[0], &[0]]) };
    controller.tell(ToSwitch::Packet(unknown)).await;
    golden.stream_error("stream: a packet with a name of nothing", &mut controller).await;
    // With the first one as many as there are numbers.
    let to = |number: u32| direct(action(FORWARD, &[format!("p{number}").as_bytes()]));
    let ports = (1..=511u32)
        .map(|number| update(Insert, TableEntry(entry(LPM, vec![lpm(1, &number.to_be_bytes(), 32)], to(number)))));
    controller.write_all(ports.collect()).await.unwrap();
    golden.write(&mut controller, "name too many", Insert, of(b"b", b"p512")).await;
}

/// State that the next program cannot have.
async fn reconciliations(controller: &mut Controller, golden: &mut Golden) {
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
