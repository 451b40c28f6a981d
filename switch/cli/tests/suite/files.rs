//! Tests the flag `--use-files`, with which captures replace interfaces.

use std::ffi::CString;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::common::{FORWARD, P4INFO, PROGRAM, Switch, capture, controller, frame};
use sluice_ports::pcap::PcapWriter;
use sluice_ports::pcap_reader::PcapReader;

fn flags(wait: i32) -> String {
    format!(
        "{PROGRAM} --p4info {P4INFO} --device-id 7 --use-files {wait} -i 1@pcap1 -i 2@pcap2 -- \
         --grpc-server-addr 127.0.0.1:0"
    )
}

fn mkfifo(path: &Path) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is a valid C string during the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

fn write(file: &mut PcapWriter<BufWriter<File>>, second: u64, frame: &[u8]) {
    file.write(UNIX_EPOCH + Duration::from_secs(second), frame).unwrap();
    file.flush().unwrap();
}

/// Waits until the capture contains at least `count` frames. Returns all its frames.
fn await_capture(path: &Path, count: usize) -> Vec<Vec<u8>> {
    let started = Instant::now();
    loop {
        match capture(path) {
            Ok(frames) if frames.len() >= count => return frames,
            read if started.elapsed() > Duration::from_secs(60) => return read.unwrap(),
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn pipes_are_merged_by_time_and_frames_may_have_any_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for number in [1, 2] {
        mkfifo(&path(&format!("pcap{number}_in.pcap")));
    }
    let mut switch = Switch::spawn(directory.path(), &flags(0));
    // The test opens the files in the way of p4c's test runner: one after the other, before the switch is ready.
    let mut first = PcapWriter::create(&path("pcap1_in.pcap")).unwrap();
    first.flush().unwrap();
    let mut second = PcapWriter::create(&path("pcap2_in.pcap")).unwrap();
    second.flush().unwrap();
    switch.await_ready();
    assert!(switch.ready.ends_with("ports 1@pcap1 2@pcap2\n"), "{}", switch.ready);
    controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
    let frames = [frame(1, 0x0800, 14), frame(2, 0x0800, 9000), frame(3, 0x0800, 70_000), vec![5]];
    write(&mut first, 10, &frames[0]);
    // The switch can determine which frame is next only after it has read a frame for each port. Until then, a long
    // frame may fill its pipe, so that a further write would block.
    write(&mut second, 20, &frames[1]);
    write(&mut first, 30, &frames[2]);
    write(&mut second, 40, &frames[3]);
    drop((first, second));
    assert!(await_capture(&path("pcap2_out.pcap"), 4) == frames, "not what was sent, or not in the order of time");
    assert_eq!(capture(&path("pcap1_out.pcap")).unwrap().len(), 0);
    let (code, _, err) = switch.stop(libc::SIGTERM);
    assert_eq!(code, Some(0));
    let stats: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!((&stats["ports"]["1"]["rx_packets"], &stats["ports"]["2"]["tx_packets"]), (&2.into(), &4.into()));
}

#[test]
fn a_frame_does_not_wait_for_the_next_one_of_its_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    mkfifo(&path("pcap1_in.pcap"));
    PcapWriter::create(&path("pcap2_in.pcap")).unwrap().flush().unwrap();
    let mut switch = Switch::spawn(directory.path(), &flags(0));
    let mut first = PcapWriter::create(&path("pcap1_in.pcap")).unwrap();
    first.flush().unwrap();
    switch.await_ready();
    controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
    for count in 1..4 {
        write(&mut first, 10, &frame(1, 0x0800, 60));
        assert_eq!(await_capture(&path("pcap2_out.pcap"), count).len(), count);
    }
    drop(first);
}

#[test]
fn files_are_read_after_the_time_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for number in [1, 2] {
        let mut file = PcapWriter::create(&path(&format!("pcap{number}_in.pcap"))).unwrap();
        write(&mut file, 0, &frame(number, 0x0800, 60));
    }
    let mut switch = Switch::spawn(directory.path(), &flags(2));
    switch.await_ready();
    controller(&switch.address(), async |mut session| session.act(FORWARD, 1).await);
    assert_eq!(await_capture(&path("pcap1_out.pcap"), 2), [frame(1, 0x0800, 60), frame(2, 0x0800, 60)]);
}

#[test]
fn broken_files_end_the_switch_with_their_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let start = || Switch::spawn(directory.path(), &flags(0)).end();
    let (code, err) = start();
    assert_eq!(code, Some(1));
    assert!(err.contains("port 1: cannot read pcap1_in.pcap: No such file"), "{err}");
    for number in [1, 2] {
        let mut file = PcapWriter::create(&path(&format!("pcap{number}_in.pcap"))).unwrap();
        write(&mut file, 0, &frame(number, 0x0800, 60));
    }
    let complete = std::fs::read(path("pcap2_in.pcap")).unwrap();
    std::fs::write(path("pcap2_in.pcap"), &complete[..complete.len() - 1]).unwrap();
    let (code, err) = start();
    assert_eq!(code, Some(1));
    assert!(err.contains("pcap2_in.pcap: the file ends within a frame"), "{err}");
}

#[test]
fn frames_that_cannot_be_written_are_counted_as_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    mkfifo(&path("pcap1_in.pcap"));
    PcapWriter::create(&path("pcap2_in.pcap")).unwrap().flush().unwrap();
    mkfifo(&path("pcap2_out.pcap"));
    let mut switch = Switch::spawn(directory.path(), &format!("--stats-file stats {}", flags(0)));
    let mut first = PcapWriter::create(&path("pcap1_in.pcap")).unwrap();
    first.flush().unwrap();
    // The test reads the header of the output, and then closes the reading end of the pipe.
    drop(PcapReader::new(File::open(path("pcap2_out.pcap")).unwrap()).unwrap());
    switch.await_ready();
    controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
    let statistics = || -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path("stats")).unwrap_or_default()).unwrap_or_default()
    };
    for count in 1..3 {
        write(&mut first, 10, &frame(1, 0x0800, 60));
        let started = Instant::now();
        while statistics()["engine"]["received"] != count && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let (code, _, err) = switch.stop(libc::SIGTERM);
    assert_eq!(code, Some(0));
    let port = &statistics()["ports"]["2"];
    assert_eq!((&port["tx_packets"], &port["tx_refused"]), (&0.into(), &2.into()), "{port}");
    assert_eq!(err.matches("the output file ends here").count(), 1, "{err}");
}
