//! Tests the command lines with which programs of other projects start `simple_switch_grpc`.

use std::path::Path;

use crate::binary::in_namespace;
use crate::common::{PROGRAM, Switch, controller};

#[test]
fn the_command_lines_of_p4langs_tutorials_start_the_switch() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let captures = directory.path().join("d");
        std::fs::create_dir(&captures).unwrap();
        let log = directory.path().join("ss-log.txt");
        let common = "--nanolog ipc:///x --device-id 7 --debugger --thrift-port 9090";
        let target = "-- --grpc-server-addr 127.0.0.1:0 --cpu-port 255 --priority-queues 2";
        for (flags, warnings) in [
            (format!("-i 1@s1 -i 2@s2 --pcap d {common} {PROGRAM} --log-file ss-log {target}"), 4),
            (format!("-i 1@s1 -i 2@s2 {common} --no-p4 --log-file=ss-log --pcap d {target}"), 4),
            (format!("{PROGRAM} -i1@s1 -i2@s2 --dev 7 --log-file ss-log --pcap d {target}"), 1),
        ] {
            let mut switch = Switch::spawn(directory.path(), &flags);
            switch.await_ready();
            assert!(switch.ready.ends_with(", device 7, ports 1@s1 2@s2\n"), "{flags}: {}", switch.ready);
            controller(&switch.address(), async |_| {});
            switch.stop(libc::SIGTERM);
            let text = std::fs::read_to_string(&log).unwrap();
            assert_eq!(text.matches("has no effect").count(), warnings, "{flags}: {text}");
            for name in ["s1_in", "s1_out", "s2_in", "s2_out"] {
                std::fs::remove_file(captures.join(format!("{name}.pcap"))).expect(&flags);
            }
            std::fs::remove_file(&log).unwrap();
        }
    });
}

#[test]
fn words_with_blanks_and_flags_on_the_console() {
    let words = [
        "--no-p4",
        "--log-console",
        "-L",
        "trace",
        "--restore-state",
        "a file",
        "--",
        "--grpc-server-addr=127.0.0.1:0",
    ];
    let mut switch = Switch::with_words(Path::new("."), &words);
    switch.await_ready();
    assert_eq!(switch.before.matches("--restore-state has no effect").count(), 1, "{}", switch.before);
    assert_eq!(switch.stop(libc::SIGTERM).0, Some(0));
}
