//! Compares the replies of the stand-in with those of a real driver that runs the test program `campus.p4`. The
//! environment variable `SLUICE_DRIVER=http://127.0.0.1:50052` contains the URI of the real driver. Without it, the
//! test compares nothing.

use sluice_tofino::bfrt::{self, exact, stream, ternary};
use sluice_tofino::client::{Address, Driver as Client};
use sluice_tofino::proto::{DataField, KeyField, TableData, TableEntry, TableKey, update::Type};
use tonic::Code;

use crate::stand_in::{CAMPUS, Driver};

/// Returns the id of a table in the driver.
fn id(client: &Client, name: &str) -> u32 {
    let program = client.program().expect("a driver that runs campus");
    let mut tables = program.info.tables.iter().chain(&program.device_info.tables);
    tables.find(|table| table.name == name).unwrap_or_else(|| panic!("no {name}")).id
}

/// Returns the code of the driver's reply to an update.
async fn outcome(client: &Client, kind: Type, entry: TableEntry) -> Code {
    let outcome = client.write(vec![bfrt::update(kind, entry)]).await.expect("an answer").remove(0);
    outcome.err().map_or(Code::Ok, |fault| fault.code)
}

/// Sends a list of requests. Returns a description of each request with the code of the driver's reply.
async fn answers(uri: &str) -> Vec<(&'static str, Code)> {
    let address = Address { uri: uri.to_owned(), device: 0, client: 77, program: None };
    let (client, _events) = Client::connect(address).await.expect("a driver that runs campus");
    let row = |table: &str, key: Vec<KeyField>, action_id: u32, fields: Vec<DataField>| {
        bfrt::entry(id(&client, table), TableKey { fields: key }, TableData { action_id, fields })
    };
    let short = |number: u16| vec![exact(1, number.to_be_bytes())];
    let (hosts, set) = ("pipe.Ingress.hosts", "pipe.IngressParser.ipv4_types");
    let known_action = 19_822_884;
    let host = |last: u8| vec![exact(1, [2, 0, 0, 0, 0, last]), exact(2, [0, 1])];
    let member = |value: u16| vec![ternary(1, value.to_be_bytes().to_vec(), vec![255, 255])];
    let node = |number: u32| vec![exact(1, number.to_be_bytes())];
    let node_data = || vec![stream(1, [0, 5]), bfrt::numbers(2, vec![]), bfrt::numbers(3, vec![2, 3])];
    let group_data = |nodes: Vec<u32>| {
        let count = nodes.len();
        vec![bfrt::numbers(1, nodes), bfrt::flags(2, vec![false; count]), bfrt::numbers(3, vec![0; count])]
    };
    let session_data =
        || vec![bfrt::flag(5, true), bfrt::name(6, "BOTH"), stream(7, 3_u32.to_be_bytes()), bfrt::flag(8, true)];
    let requests = vec![
        ("insert an entry", Type::Insert, row(hosts, host(1), known_action, vec![])),
        ("insert the same entry", Type::Insert, row(hosts, host(1), known_action, vec![])),
        ("modify a missing entry", Type::Modify, row(hosts, host(2), known_action, vec![])),
        ("delete a missing entry", Type::Delete, row(hosts, host(2), 0, vec![])),
        ("delete the entry", Type::Delete, row(hosts, host(1), 0, vec![])),
        ("insert a member", Type::Insert, row(set, member(0x88b6), 0, vec![])),
        ("insert the same member", Type::Insert, row(set, member(0x88b6), 0, vec![])),
        ("delete the member", Type::Delete, row(set, member(0x88b6), 0, vec![])),
        ("delete a missing member", Type::Delete, row(set, member(0x88b6), 0, vec![])),
        ("insert a node", Type::Insert, row("$pre.node", node(0x4000_0001), 0, node_data())),
        ("insert a group", Type::Insert, row("$pre.mgid", short(7), 0, group_data(vec![0x4000_0001]))),
        ("insert a group of a missing node", Type::Insert, row("$pre.mgid", short(8), 0, group_data(vec![77]))),
        ("insert nodes alone", Type::Insert, row("$pre.mgid", short(9), 0, vec![bfrt::numbers(1, vec![0x4000_0001])])),
        ("delete all groups", Type::Delete, bfrt::whole_table(id(&client, "$pre.mgid"))),
        ("delete the group", Type::Delete, row("$pre.mgid", short(7), 0, vec![])),
        ("delete a missing group", Type::Delete, row("$pre.mgid", short(7), 0, vec![])),
        ("delete the node", Type::Delete, row("$pre.node", node(0x4000_0001), 0, vec![])),
        ("insert a session", Type::Insert, row("$mirror.cfg", short(5), 2, session_data())),
        ("insert the same session", Type::Insert, row("$mirror.cfg", short(5), 2, session_data())),
        ("modify a session", Type::Modify, row("$mirror.cfg", short(5), 2, session_data())),
        ("modify a missing session", Type::Modify, row("$mirror.cfg", short(50), 2, session_data())),
        ("delete a missing session", Type::Delete, row("$mirror.cfg", short(50), 2, vec![])),
        ("insert session 0", Type::Insert, row("$mirror.cfg", short(0), 2, session_data())),
        ("insert the last session", Type::Insert, row("$mirror.cfg", short(1015), 2, session_data())),
        ("insert a session beyond the last", Type::Insert, row("$mirror.cfg", short(1023), 2, session_data())),
        ("delete all sessions", Type::Delete, bfrt::whole_table(id(&client, "$mirror.cfg"))),
        ("insert a missing port", Type::Insert, row("$PORT", node(5000), 0, vec![bfrt::name(1, "BF_SPEED_10G")])),
    ];
    let mut answers = Vec::new();
    for (what, kind, entry) in requests {
        answers.push((what, outcome(&client, kind, entry).await));
    }
    answers
}

#[tokio::test]
async fn the_stand_in_answers_as_the_driver_does() {
    let driver = Driver::new(CAMPUS);
    let (uri, _served) = driver.serve("127.0.0.1:0").await;
    let stand_in_answers = answers(&uri).await;
    let Ok(real_uri) = std::env::var("SLUICE_DRIVER") else {
        println!("not compared with a real driver: SLUICE_DRIVER is not set");
        return;
    };
    assert_eq!(stand_in_answers, answers(&real_uri).await);
}
