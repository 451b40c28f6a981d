//! Tests of signals after which the agent continues to run. The test runs the binary in a network namespace of its own,
//! which requires root. Without root, the test prints a note and passes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

const START: &str = r#"mount -t sysfs sysfs /sys
ip link add a0 up type veth peer name a1
exec "$0" --interface a0 --address 10.0.3.31 --gateway 10.0.3.1 --control "unix:$1""#;

#[test]
fn signals_without_a_meaning_are_logged() {
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0) {
        eprintln!("SKIPPED: network namespaces need root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let control = directory.path().join("a.sock").display().to_string();
    let mut agent = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", START, env!("CARGO_BIN_EXE_sluice-agent"), &control])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut log) =
        (agent.stdout.take().map(BufReader::new).unwrap(), agent.stderr.take().map(BufReader::new).unwrap());
    let (id, mut line) = (agent.id().to_string(), String::new());
    let signal = |name: &str| assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("sluice-agent: 10.0.3.31 on a0"), "{line}");
    for name in ["USR1", "USR2", "HUP"] {
        signal(name);
        line.clear();
        log.read_line(&mut line).unwrap();
        assert!(line.contains("signal without a meaning") && line.contains(name), "«{line}»");
    }
    signal("TERM");
    let ended = agent.wait().unwrap();
    log.read_to_string(&mut line).unwrap();
    assert_eq!((ended.code(), ended.signal()), (Some(0), None), "{line}");
}
