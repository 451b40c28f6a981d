//! Tests journals that are incomplete, damaged, of another device, or on a full disk.

use std::path::Path;
use std::process::Command;

use sluice_tofino::journal::{FILE, Journal, JournalError, JournalOwner, Restored, boot};

use super::process::Process;
use super::written::{batches, everything, holdings, host};
use super::{config, ready};
use crate::common::DEVICE;
use p4::update::Type;
use p4::write_request::Atomicity;
use sluice_p4runtime::proto::p4::v1 as p4;

fn owner() -> JournalOwner {
    JournalOwner { boot: boot().unwrap(), device_id: DEVICE, driver_device: 0 }
}

/// Returns the bytes of a journal with several batches, and the position of its last record.
async fn written() -> (Vec<u8>, usize) {
    let (_driver, folder, _gateway, mut controller) = ready().await;
    let path = folder.path().join(FILE);
    let mut batches = batches();
    batches.truncate(4);
    for (atomicity, batch) in batches {
        controller.batch(atomicity, batch).await.unwrap();
    }
    let last = std::fs::metadata(&path).unwrap().len();
    // A batch that requires no request to the driver adds only one record.
    let (_, batch) = super::written::batches().remove(3);
    let digest = batch.into_iter().next().unwrap().1;
    controller.modify(digest).await;
    (std::fs::read(&path).unwrap(), usize::try_from(last).unwrap())
}

fn opened(bytes: &[u8], owner: JournalOwner) -> Result<(Journal, Option<Restored>), JournalError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE), bytes).unwrap();
    Journal::open(folder.path(), owner)
}

fn shadow(restored: &Restored) -> String {
    format!("{:?}", restored.shadow)
}

#[tokio::test]
async fn an_incomplete_last_record_is_dropped_and_every_damaged_byte_is_detected() {
    let (bytes, last) = written().await;
    assert!(last < bytes.len());
    let (_, before) = opened(&bytes[..last], owner()).unwrap();
    let before = before.unwrap();
    let complete = opened(&bytes, owner()).unwrap().1.unwrap();
    assert_eq!((complete.end, before.end), (bytes.len(), last));
    for end in last..bytes.len() {
        let restored = opened(&bytes[..end], owner()).unwrap().1.unwrap();
        assert_eq!((restored.end, shadow(&restored)), (last, shadow(&before)), "{end} bytes");
    }
    for position in (0..bytes.len()).step_by(7).chain(bytes.len() - 40..bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        let error = opened(&damaged, owner()).expect_err("a damaged byte").to_string();
        assert!(error.contains("journal: byte ") && error.contains("starts empty"), "byte {position}: {error}");
    }
    for end in 0..40 {
        assert!(opened(&bytes[..end], owner()).unwrap().1.is_none(), "{end} bytes");
    }
}

#[tokio::test]
async fn a_journal_continues_after_an_incomplete_record() {
    let (driver, folder, mut gateway, mut controller) = ready().await;
    let (atomicity, batch) = batches().remove(0);
    controller.batch(atomicity, batch).await.unwrap();
    gateway.kill();
    let path = folder.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([9, 0, 0, 0, 1, 2]);
    std::fs::write(&path, bytes).unwrap();
    let mut gateway = gateway;
    for last in [7, 8] {
        gateway = gateway.restarted(folder.path());
        let mut controller = gateway.controller(10).await;
        assert_eq!(gateway.wait_for_program(&mut controller).await, Some(config(5)));
        controller.insert(host(last, 0)).await;
    }
    let mut controller = gateway.controller(11).await;
    let expected = (everything(&mut controller).await, holdings(&driver));
    let restarted = gateway.restarted(folder.path());
    let mut controller = restarted.controller(11).await;
    restarted.wait_for_program(&mut controller).await;
    assert_eq!((everything(&mut controller).await, holdings(&driver)), expected);
}

#[tokio::test]
async fn journals_of_another_boot_or_device_are_not_used() {
    let (bytes, _) = written().await;
    let other_boot = JournalOwner { boot: "another".to_owned(), ..owner() };
    assert!(opened(&bytes, other_boot).unwrap().1.is_none());
    let other_device = JournalOwner { device_id: 8, ..owner() };
    let error = opened(&bytes, other_device).expect_err("another device").to_string();
    assert!(error.contains("--device-id 7 and --driver-device 0; give each device a folder of its own"), "{error}");
}

/// Starts a gateway that must refuse `folder` as the folder of its journal. Returns the gateway's error message.
fn refused(folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice-tofino"))
        .args(["--grpc-server-addr", "127.0.0.1:0", "--device-id", "7", "--state"])
        .arg(folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_gateway_that_cannot_use_its_folder_ends_with_the_remedy() {
    let (_driver, folder, mut gateway, _controller) = ready().await;
    let error = refused(folder.path());
    assert!(error.contains("--state ") && error.contains("give each gateway a folder of its own"), "{error}");
    gateway.kill();
    let path = folder.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let error = refused(folder.path());
    assert!(error.contains("journal: byte 0: the record differs from the one that was written"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file is unchanged");
    let error = refused(&path);
    assert!(error.contains("give a folder that the gateway may write to"), "{error}");
}

#[tokio::test]
async fn on_a_full_disk_writes_succeed_and_a_restarted_gateway_starts_empty() {
    let (driver, folder, mut gateway, controller) = ready().await;
    drop(controller);
    gateway.kill();
    let room = std::fs::metadata(folder.path().join(FILE)).unwrap().len() / 1024 + 16;
    // The shell makes the gateway ignore SIGXFSZ. So writes beyond the limit on file sizes fail with an error instead
    // of ending the gateway.
    let line = format!(
        "trap '' XFSZ; ulimit -f {room}; exec {} --grpc-server-addr 127.0.0.1:0 --driver {} --device-id 7 --state {}",
        env!("CARGO_BIN_EXE_sluice-tofino"),
        gateway.driver(),
        folder.path().display()
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut shell = Command::new("bash");
    shell.args(["-c", &line.replace("127.0.0.1:0 ", &format!("{free} "))]);
    let limited = Process::run(shell, &free, gateway.driver(), folder.path().join("log"));
    let mut controller = limited.controller(10).await;
    assert_eq!(limited.wait_for_program(&mut controller).await, Some(config(5)));
    for last in 1..200 {
        controller.batch(Atomicity::ContinueOnError, vec![(Type::Insert, host(last, 0))]).await.unwrap();
    }
    assert_eq!(holdings(&driver)["pipe.Ingress.hosts"].0.len(), 199);
    assert!(
        limited.log().contains("a restarted gateway cannot adopt the state until there is room"),
        "{}",
        limited.log()
    );
    assert!(!folder.path().join(FILE).exists());
    let restarted = limited.restarted(folder.path());
    let mut controller = restarted.controller(10).await;
    assert_eq!(restarted.wait_for_program(&mut controller).await, None);
}

#[test]
fn opening_waits_briefly_for_the_lock_and_then_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = Journal::open(folder.path(), owner()).unwrap();
    let refused = Journal::open(folder.path(), owner()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, JournalError::Locked(_)), "{refused}");
    let release = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(first);
    });
    Journal::open(folder.path(), owner()).unwrap();
    release.join().unwrap();
}
