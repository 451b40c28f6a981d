//! Tests many writes while packets run: a table entry must forward every packet. `examples/write_rate/main.rs` measures
//! the rate of writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use crate::common::*;
use p4::entity::Entity::{self, TableEntry};
use p4::update::Type::{Delete, Insert, Modify};
use sluice_engine::Sink;
use sluice_p4runtime::proto::p4::v1 as p4;

/// Counts the packets that leave by port 1, by port 2 and by all other ports.
#[derive(Default)]
pub struct Tally(pub [u64; 3]);

impl Sink for Tally {
    fn emit(&mut self, port: u32, _head: &[u8], _payload: &[u8]) {
        self.0[match port {
            1 => 0,
            2 => 1,
            _ => 2,
        }] += 1;
    }
}

/// Starts a thread that runs frames through the switch until `stop` is set. Each of these frames should leave by port 1
/// or port 2. The thread returns the numbers of frames that left by each port, and the number of frames that it sent.
pub fn run_packets(switch: &Switch, stop: &Arc<AtomicBool>) -> JoinHandle<(Tally, u64)> {
    let (device, stop) = (Arc::clone(&switch.device), Arc::clone(stop));
    std::thread::spawn(move || {
        let frames = vec![frame(9, 7, 0x800); 64];
        let (mut tally, mut sent) = (Tally::default(), 0);
        while !stop.load(Relaxed) {
            device.receive(1, frames.iter().map(Vec::as_slice), &mut tally, None);
            sent += frames.len() as u64;
        }
        (tally, sent)
    })
}

pub fn forwarding(source: u32, priority: i32, port: u8) -> Entity {
    let fields = vec![ternary(1, &source.to_be_bytes(), &[0xff; 6])];
    TableEntry(p4::TableEntry { priority, ..entry(TERNARY, fields, direct(forward(port))) })
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_run_while_everything_is_read() {
    let (switch, mut controller) = Switch::ready().await;
    controller.insert(forwarding(7, 9, 1)).await;
    let entries: Vec<_> = (0..3_000).map(|number| forwarding(0x0100_0000 + number, 3, 4)).collect();
    controller.write_batch(0, entries.iter().map(|entry| update(Insert, entry.clone())).collect()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let packets = run_packets(&switch, &stop);
    for _ in 0..5 {
        let pattern = TableEntry(p4::TableEntry { priority: 3, ..entry(TERNARY, vec![], None) });
        assert_eq!(controller.read(pattern).await, entries, "oldest first");
        let everything = controller.read(TableEntry(p4::TableEntry::default())).await;
        assert!(everything.len() > entries.len(), "{}", everything.len());
    }
    stop.store(true, Relaxed);
    let (Tally([first, _, _]), sent) = packets.join().unwrap();
    assert_eq!(first, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_is_lost_while_tables_change() {
    let (switch, mut controller) = Switch::ready().await;
    let of = forwarding;
    controller.insert(of(7, 1, 1)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let packets = run_packets(&switch, &stop);
    for round in 0..40u32 {
        // The entry that matches the packets alternates between two ports. Each round also inserts and deletes further
        // entries, of which one matches the packets with a higher priority.
        let sources = (0..200).map(|number| 0x0100_0000 + number);
        let mut updates = vec![update(Modify, of(7, 1, 1 + (round % 2) as u8))];
        updates.push(update(Insert, of(7, 5, 1 + (round % 2) as u8)));
        updates.extend(sources.clone().map(|source| update(Insert, of(source, 3, 4))));
        updates.push(update(Delete, of(7, 5, 1)));
        updates.extend(sources.map(|source| update(Delete, of(source, 3, 4))));
        controller.write_batch(round as i32 % 3, updates).await.unwrap();
    }
    stop.store(true, Relaxed);
    let (Tally([first, second, elsewhere]), sent) = packets.join().unwrap();
    assert_eq!((first + second, elsewhere), (sent, 0));
    assert!(first > 0 && second > 0, "{first} by port 1, {second} by port 2");
    assert_eq!(switch.device.counters().updates.get(), 1 + 40 * 403);
}

#[test]
fn requests_are_answered_during_a_long_write() {
    // The runtime `server` has one thread, which serves all connections. So a write that blocked this thread would
    // delay all other requests. The clients run in the runtime `clients`.
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (server, clients) = (runtime(), runtime());
    let (switch, controller) = server.block_on(Switch::ready());
    let (mut writer, mut reader) = clients.block_on(async { (switch.client().await, switch.client().await) });
    let all_cells = p4::RegisterEntry { register_id: LAST_SOURCE, index: None, data: bits(&[1]) };
    let request = p4::WriteRequest {
        device_id: DEVICE,
        election_id: Some(p4::Uint128 { high: 0, low: controller.election }),
        updates: vec![update(Modify, Entity::RegisterEntry(all_cells)); 1000],
        ..Default::default()
    };
    let answered = clients.block_on(async {
        let write = tokio::spawn(async move { writer.write(request).await });
        // The switch may answer up to 20 requests before the write begins, so the test requires more than 20 answers.
        let mut answered = 0;
        while !write.is_finished() {
            reader.capabilities(p4::CapabilitiesRequest { device_id: DEVICE }).await.unwrap();
            answered += u32::from(switch.device.counters().updates.get() == 0);
        }
        write.await.unwrap().unwrap();
        answered
    });
    assert!(answered > 20, "{answered} requests before the write");
    assert_eq!(switch.device.counters().updates.get(), 1000);
}
