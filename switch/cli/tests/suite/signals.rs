//! Tests signals that do not end the switch, and log files that another program, such as logrotate, renames.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::Switch;

const FLAGS: &str = "--no-p4 --log-file switch -- --grpc-server-addr 127.0.0.1:0";
const IGNORED: &str = "signal without a meaning";

/// Starts a switch that logs to `switch.txt` in this directory.
fn logging(directory: &Path) -> Switch {
    let mut switch = Switch::spawn(directory, FLAGS);
    switch.await_ready();
    switch
}

/// Waits until a file contains `count` lines with `text_part`. Returns the text of the file.
fn await_lines(path: &Path, text_part: &str, count: usize) -> String {
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.matches(text_part).count() >= count {
            return text;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no {count} lines with «{text_part}» in {text}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends the signal, for which the switch logs a line, until a file with this name exists.
fn signal_until_exists(switch: &Switch, signal: i32, path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        switch.signal(signal);
        std::thread::sleep(Duration::from_millis(100));
        assert!(started.elapsed() < Duration::from_secs(60), "after a minute there is no {}", path.display());
    }
}

#[test]
fn signals_without_a_meaning_are_logged() {
    let switch = Switch::start("--no-p4 --log-console -- --grpc-server-addr 127.0.0.1:0");
    for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGHUP] {
        switch.signal(signal);
    }
    // The kernel determines the order in which the switch receives the signals. So the test does not compare which
    // signal each line names.
    let mut switch = switch;
    for _ in 0..3 {
        assert!(switch.next_line().contains(IGNORED));
    }
    assert_eq!(switch.stop(libc::SIGTERM).0, Some(0));
}

#[test]
fn a_renamed_log_file_goes_on_in_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let [log, renamed] = ["switch.txt", "switch.txt-1"].map(|name| directory.path().join(name));
    let switch = logging(directory.path());
    switch.signal(libc::SIGUSR1);
    let before = await_lines(&log, IGNORED, 1);
    fs::rename(&log, &renamed).unwrap();
    signal_until_exists(&switch, libc::SIGUSR2, &log);
    await_lines(&log, "SIGUSR2", 1);
    fs::remove_file(&log).unwrap();
    signal_until_exists(&switch, libc::SIGUSR1, &log);
    assert!(!await_lines(&log, "SIGUSR1", 1).contains("SIGUSR2"));
    // The switch checks the name once per second. Lines that it logged before this check are in the renamed file.
    assert!(fs::read_to_string(&renamed).unwrap().starts_with(&before));
    assert_eq!(switch.stop(libc::SIGTERM).0, Some(0));
}

#[test]
fn a_hangup_opens_the_log_file_anew_without_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("switch.txt");
    let switch = logging(directory.path());
    fs::rename(&log, directory.path().join("switch.txt-1")).unwrap();
    switch.signal(libc::SIGHUP);
    let started = Instant::now();
    while !log.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "no new file");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "");
    assert_eq!(switch.stop(libc::SIGTERM).0, Some(0));
}

#[test]
fn lines_go_on_in_the_renamed_file_while_no_new_one_can_be_opened() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("logs");
    fs::create_dir(&folder).unwrap();
    let mut switch =
        Switch::spawn(directory.path(), "--no-p4 --log-file logs/switch -- --grpc-server-addr 127.0.0.1:0");
    switch.await_ready();
    let moved = directory.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    for count in 1..=2 {
        switch.signal(libc::SIGHUP);
        switch.signal(libc::SIGUSR1);
        await_lines(&moved.join("switch.txt"), IGNORED, count);
    }
    fs::create_dir(&folder).unwrap();
    signal_until_exists(&switch, libc::SIGUSR1, &folder.join("switch.txt"));
    await_lines(&folder.join("switch.txt"), IGNORED, 1);
    let (code, _, err) = switch.stop(libc::SIGTERM);
    assert_eq!(code, Some(0));
    assert_eq!(err.matches("cannot open the log file logs/switch.txt anew").count(), 1, "{err}");
}
