//! Tests captures of ports (`--pcap`) that another program, such as logrotate, renames or removes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::binary::{Host, in_namespace};
use crate::common::{P4INFO, PROGRAM, Switch, capture, frame};

/// Starts a switch with captures. Returns the switch, and the test's end of the veth pair at port 1.
fn capturing(directory: &Path) -> (Switch, Host) {
    let flags = format!(
        "{PROGRAM} --p4info {P4INFO} -i 1@s1 -i 2@s2 --pcap={} --log-console -- --grpc-server-addr 127.0.0.1:0",
        directory.display()
    );
    (Switch::start(&flags), Host::open("h1"))
}

/// Sends frames of increasing lengths, the first of `length` bytes, until the capture contains a frame. Returns the
/// length of the next frame.
fn send_until_captured(host: &mut Host, path: &Path, mut length: usize) -> usize {
    let started = Instant::now();
    loop {
        host.send(&[frame(9, 0x0800, length)]);
        length += 1;
        std::thread::sleep(Duration::from_millis(50));
        if capture(path).is_ok_and(|frames| !frames.is_empty()) {
            return length;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "after a minute no frame is in {}", path.display());
    }
}

fn lengths(path: &Path) -> Vec<usize> {
    capture(path).unwrap().iter().map(Vec::len).collect()
}

#[test]
fn a_renamed_capture_goes_on_in_a_new_one_and_loses_no_frame() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let [path, renamed] = ["s1_in.pcap", "s1_in.pcap-1"].map(|name| directory.path().join(name));
        let (switch, mut host) = capturing(directory.path());
        let next = send_until_captured(&mut host, &path, 60);
        fs::rename(&path, &renamed).unwrap();
        let last = send_until_captured(&mut host, &path, next);
        assert_eq!(switch.stop(libc::SIGTERM).0, Some(0));
        assert_eq!([lengths(&renamed), lengths(&path)].concat(), (60..last).collect::<Vec<_>>());
    });
}

#[test]
fn a_removed_capture_is_begun_anew_and_the_other_ones_stay() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s1_in.pcap");
        let (switch, mut host) = capturing(directory.path());
        let next = send_until_captured(&mut host, &path, 60);
        fs::remove_file(&path).unwrap();
        let last = send_until_captured(&mut host, &path, next);
        assert_eq!(switch.stop(libc::SIGTERM).0, Some(0));
        assert_eq!(lengths(&path).last(), Some(&(last - 1)));
        assert!(lengths(&directory.path().join("s2_in.pcap")).is_empty());
    });
}

#[test]
fn frames_go_on_in_the_renamed_capture_while_no_new_one_can_be_started() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let [folder, moved] = ["captures", "moved"].map(|name| directory.path().join(name));
        fs::create_dir(&folder).unwrap();
        let (switch, mut host) = capturing(&folder);
        let next = send_until_captured(&mut host, &folder.join("s1_in.pcap"), 60);
        fs::rename(&folder, &moved).unwrap();
        let started = Instant::now();
        let mut next = next;
        while lengths(&moved.join("s1_in.pcap")).len() < 8 {
            host.send(&[frame(9, 0x0800, next)]);
            next += 1;
            std::thread::sleep(Duration::from_millis(300));
            assert!(started.elapsed() < Duration::from_secs(60), "frames are not in the renamed capture");
        }
        fs::create_dir(&folder).unwrap();
        let last = send_until_captured(&mut host, &folder.join("s1_in.pcap"), next);
        let (code, out, _) = switch.stop(libc::SIGTERM);
        assert_eq!(code, Some(0));
        let captured = [&moved, &folder].map(|folder| lengths(&folder.join("s1_in.pcap")));
        assert_eq!(captured.concat(), (60..last).collect::<Vec<_>>());
        // The switch must log one line for each capture with frames, not one line for each frame.
        let error_lines = out.lines().filter(|line| line.contains("goes on in the renamed file"));
        assert_eq!(error_lines.filter(|line| line.contains("s1_in.pcap")).count(), 1, "{out}");
    });
}
