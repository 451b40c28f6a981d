//! Compares the code and message of every refusal of the server with the file `golden/errors.txt`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p sluice-p4runtime --test suite errors` writes this file again.

mod calls;
mod entities;
mod programs;
mod updates;

use std::fmt::Write as _;

use crate::common::*;
use calls::{packet_outs, pipelines, requests, streams};
use entities::{digest, group, member, multicast, table, to};
use p4::entity::Entity::{self, TableEntry};
use p4::stream_message_response::Update as FromSwitch;
use p4::update::Type::{self, Insert};
use programs::{limits, reconciliations, translations};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::{Code, Status};
use updates::{reads, writes};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/errors.txt");
const HEAD: &str = "\
# Everything that the P4Runtime server refuses, with what it answers: request | code | text.
# Written by tests/errors.rs; UPDATE_GOLDEN=1 writes it anew.
";

/// Returns the name of a code in the specification's spelling.
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

    /// Makes an update that must be refused, and adds the code and message of the refusal to the text for the golden
    /// file.
    async fn write(&mut self, controller: &mut Controller, what: &str, kind: Type, entity: Entity) {
        let Err((code, text)) = controller.try_write(kind, entity).await else { panic!("accepted: {what}") };
        self.line(&format!("write: {what}"), code, &text);
    }

    /// Adds the code and message of the stream's next message, which must be an error, to the text for the golden file.
    async fn stream_error(&mut self, what: &str, controller: &mut Controller) {
        let FromSwitch::Error(error) = controller.next().await else { panic!("no error: {what}") };
        self.line(what, Code::from_i32(error.canonical_code), &error.message);
    }
}

/// The verbs with which the remedy in a message begins.
const REMEDIES: &str = "INSERT MODIFY DELETE VERIFY_AND_SAVE bid clear close compile correct declare delete exchange give insert leave \
    make match modify open push read remove send start use write";

/// Every message of the server must contain a remedy, which begins after the first semicolon.
#[test]
fn every_refusal_has_a_remedy() {
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    let lacks_remedy = |line: &&str| {
        let text = line.splitn(3, " | ").last().unwrap();
        let remedy = text.split_once("; ").map_or("", |(_, remedy)| remedy);
        let mut clauses = remedy.split([';', ',', ':']).map(str::trim_start);
        // The messages that the server copies from p4lang/PI state the remedy differently.
        let is_from_pi = text.contains(" must be set to ") || text.contains(" must not be set ");
        !is_from_pi && !clauses.any(|clause| REMEDIES.split(' ').any(|word| clause.split(' ').next() == Some(word)))
    };
    let without: Vec<_> = golden.lines().filter(|line| !line.starts_with('#')).filter(lacks_remedy).collect();
    assert!(without.is_empty(), "these have no remedy:\n{}", without.join("\n"));
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
    golden.write(&mut controller, "digest exists already", Insert, digest(id_of("learn_t"), 1)).await;
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
    for (actual, expected) in golden.0.lines().zip(expected.lines()) {
        assert_eq!(actual, expected, "(UPDATE_GOLDEN=1 writes the file anew)");
    }
    assert_eq!(golden.0.lines().count(), expected.lines().count(), "(UPDATE_GOLDEN=1 writes the file anew)");
}
