//! Tests metrics, the trace of packets, and log files.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::common::{FORWARD, P4INFO, PROGRAM, Switch, controller, frame};
use serde_json::{Value, json};
use sluice_ports::pcap::PcapWriter;

/// Starts a switch that reads two frames from files. The switch drops the first frame and sends the second one to port
/// 9.
fn with_two_frames(directory: &Path, more: &str) -> Switch {
    reading_two_frames(directory, &format!("-i 1@f1 -i 9@f2 {more}"))
}

/// Starts a switch that reads two frames from files. `more` contains the flags for its ports.
fn reading_two_frames(directory: &Path, more: &str) -> Switch {
    for (number, frames) in [(1, vec![frame(1, 0x0800, 60), frame(1, 0xbeef, 60)]), (2, vec![])] {
        let mut file = PcapWriter::create(&directory.join(format!("f{number}_in.pcap"))).unwrap();
        for frame in frames {
            file.write(UNIX_EPOCH, &frame).unwrap();
        }
        file.flush().unwrap();
    }
    let flags = format!(
        "{PROGRAM} --p4info {P4INFO} --device-id 7 --use-files 1 {more} -- \
         --grpc-server-addr 127.0.0.1:0"
    );
    let mut switch = Switch::spawn(directory, &flags);
    switch.await_ready();
    switch
}

/// Requests a page until its text contains `text`, for at most a minute.
fn scrape(address: &str, path: &str, text: &str) -> String {
    let started = Instant::now();
    loop {
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        if answer.contains(text) || started.elapsed() > Duration::from_secs(60) {
            assert!(answer.contains(text), "no «{text}» in {answer}");
            return answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn metrics_report_the_switchs_counts() {
    let directory = tempfile::tempdir().unwrap();
    let switch = with_two_frames(directory.path(), "--metrics-addr 127.0.0.1:0");
    let address =
        switch.ready.split_once(", metrics on http://").unwrap().1.trim_end().strip_suffix("/metrics").unwrap();
    let page = scrape(address, "/metrics", "sluice_engine_received_total 2\n");
    for text in [
        "HTTP/1.1 200 OK",
        "content-type: text/plain; version=0.0.4; charset=utf-8",
        "# TYPE sluice_port_rx_packets_total counter\n",
        "sluice_port_up{port=\"9\",interface=\"f2\"} 1",
        "sluice_port_rx_packets_total{port=\"1\",interface=\"f1\"} 2\n",
        "sluice_port_tx_packets_total{port=\"9\",interface=\"f2\"} 1\n",
        "sluice_engine_emitted_total 1\n",
        "sluice_table_entries{table=\"I.const_t\"} 1",
        "sluice_table_size{table=\"I.exact_t\"} 4",
        "sluice_no_such_port_total 0\n",
    ] {
        assert!(page.contains(text), "no «{text}» in {page}");
    }
    controller(&switch.address(), async |mut session| session.act(FORWARD, 9).await);
    scrape(address, "/metrics", "sluice_controller_updates_total 1\n");
    scrape(address, "/", "HTTP/1.1 404");
    let flags = format!("--no-p4 --grpc-server-addr 127.0.0.1:0 --metrics-addr {address}");
    let (code, err) = Switch::spawn(Path::new("."), &flags).end();
    assert_eq!(code, Some(1));
    assert!(err.contains(&format!("cannot serve metrics on {address}")), "{err}");
}

/// Returns the JSON traces of the two frames in a switch with these ports.
fn traces(ports: &str) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let flags = format!("{ports} --trace=json --log-file log --log-level info");
    let switch = reading_two_frames(directory.path(), &flags);
    let log = || std::fs::read_to_string(directory.path().join("log.txt")).unwrap_or_default();
    let started = Instant::now();
    while log().lines().filter(|line| line.starts_with('{')).count() < 2 && started.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    switch.stop(libc::SIGTERM);
    let log = log();
    let packets: Vec<Value> =
        log.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(packets.len(), 2, "{log}");
    packets
}

#[test]
fn the_trace_reports_losses_after_the_program() {
    for (ports, reason) in
        [("-i 1@f1", "no such port 9"), ("-i 1@f1 --cpu-port 9", "packet-in: there is no primary controller")]
    {
        let packets = traces(ports);
        let steps = packets[1]["steps"].as_array().unwrap();
        let [.., emit, drop] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(*emit, json!({ "step": "emit", "port": 9, "length": 60 }));
        assert_eq!(*drop, json!({ "step": "drop", "reason": reason }));
    }
}

#[test]
fn the_trace_of_a_packet_is_a_json_object() {
    let packets = traces("-i 1@f1 -i 9@f2");
    let steps = |packet: usize| packets[packet]["steps"].as_array().unwrap().clone();
    let has = |packet: usize, expected: Value| {
        let fits = |step: &Value| expected.as_object().unwrap().iter().all(|(name, value)| step[name] == *value);
        assert!(steps(packet).iter().any(fits), "no {expected} in {}", packets[packet]);
    };
    assert_eq!((&packets[0]["packet"], &packets[0]["port"]), (&json!(1), &json!(1)));
    assert_eq!(steps(0)[0], json!({ "step": "ingress", "port": 1, "instance_type": 0, "length": 60 }));
    has(0, json!({ "step": "parser_state", "state": "ethernet" }));
    has(0, json!({ "step": "extract", "header": "ethernet" }));
    has(0, json!({ "step": "table", "table": "I.const_t", "key": { "type": "0x0800" }, "hit": false, "entry": null }));
    has(0, json!({ "step": "condition", "value": false }));
    assert_eq!(steps(0).last().unwrap()["step"], "drop");
    let reason = "drop port 511 at the end of ingress, since action everything127";
    assert_eq!(steps(0).last().unwrap()["reason"], reason);
    has(1, json!({ "step": "table", "table": "I.const_t", "key": { "type": "0xbeef" }, "hit": true }));
    has(1, json!({ "step": "action", "action": "I.forward", "params": { "port": "0x0009" } }));
    has(1, json!({ "step": "egress", "port": 9 }));
    assert_eq!(*steps(1).last().unwrap(), json!({ "step": "emit", "port": 9, "length": 60 }));
}

#[test]
fn log_files_are_named_and_rotated_as_bmv2s() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| std::fs::read_to_string(directory.path().join(name));
    std::fs::write(directory.path().join("s.log.txt"), "from an earlier run\n".repeat(20)).unwrap();
    let flags = "--trace --log-file s.log --log-file-max-size 500 --log-file-max-files 2";
    let switch = with_two_frames(directory.path(), flags);
    let started = Instant::now();
    while !file("s.log.txt").is_ok_and(|log| log.contains("packet 2")) && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    switch.stop(libc::SIGTERM);
    let logs = ["s.log.2.txt", "s.log.1.txt", "s.log.txt"].map(|name| file(name).unwrap());
    assert!(logs.iter().all(|log| log.len() <= 500 && log.ends_with('\n')), "{logs:?}");
    assert!(logs.concat().contains("packet 2"), "{logs:?}");
    assert!(!logs.concat().contains("from an earlier run"), "the oldest goes: {logs:?}");
    assert!(file("s.log.3.txt").is_err());
}
