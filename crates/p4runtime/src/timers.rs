//! Periodic tasks of the switch: sends the digest lists whose timeout expired, and reports idle entries to controllers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::device::Device;
use crate::entity::table::encode_key_and_attributes;

/// Interval between searches for idle entries, in programs that have tables with idle timeouts. An entry is reported at
/// most this time after its timeout has expired.
const IDLE_SCAN: Duration = Duration::from_millis(250);

/// Runs the periodic tasks until the future is dropped. Sleeps while no task is due.
pub async fn run(device: Arc<Device>) {
    let mut next_scan = Instant::now() + IDLE_SCAN;
    loop {
        let lists = device
            .controllers
            .digests
            .lock()
            .deadline()
            .map(|deadline| Instant::now() + Duration::from_nanos(deadline.saturating_sub(device.now())));
        let scan = has_idle_timeouts(&device).then_some(next_scan);
        let due = [lists, scan].into_iter().flatten().min();
        tokio::select! {
            () = device.controllers.timer.notified() => continue,
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {}
        }
        send_due_lists(&device);
        if Instant::now() >= next_scan {
            next_scan = Instant::now() + IDLE_SCAN;
            report_idle_entries(&device);
        }
    }
}

fn has_idle_timeouts(device: &Device) -> bool {
    let programs = device.programs.lock();
    let binding = programs.running.as_ref().and_then(|running| running.pipeline.binding.as_ref());
    binding.is_some_and(|binding| binding.tables.iter().any(|table| table.idle_timeout))
}

fn send_due_lists(device: &Device) {
    // Lists and program are read under one lock, so that the lists belong to this program.
    let programs = device.programs.lock();
    let lists = device.controllers.digests.lock().due(device.now());
    let Some(pipeline) = programs.running.as_ref().map(|running| Arc::clone(&running.pipeline)) else { return };
    drop(programs);
    for list in lists {
        device.controllers.digest_list(pipeline.binding.as_ref(), list);
    }
}

fn report_idle_entries(device: &Device) {
    let mut programs = device.programs.lock();
    let Some(running) = &mut programs.running else { return };
    let idle = running.engine.take_idle(device.now());
    if idle.is_empty() {
        return;
    }
    let pipeline = Arc::clone(&running.pipeline);
    drop(programs);
    let Some(binding) = &pipeline.binding else { return };
    let entries = idle
        .iter()
        .filter_map(|(table, view)| binding.table_of(*table).map(|table| encode_key_and_attributes(table, view)));
    device.controllers.idle(entries);
}
