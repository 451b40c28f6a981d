//! The controllers of a switch. Sends packets, digest lists and notifications to the primaries, and counts what was
//! sent or lost.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prost::Message;
use tokio::sync::Notify;

use crate::binding::Binding;
use crate::digests::{Digests, List};
use crate::proto::{LARGE, p4::v1 as p4};
use crate::statistics::Counters;
use crate::streams::{Delivery, Streams};
use p4::stream_message_response::Update;

/// The open streams, and the digest lists on their way to them.
pub struct Controllers {
    /// The streams and their arbitration.
    pub streams: Streams,
    /// Digest messages that wait for their list to fill or for an acknowledgement.
    pub digests: Mutex<Digests>,
    /// Notified when the due time of the next digest list changed.
    pub timer: Notify,
    /// What was sent, received and lost.
    pub counters: Counters,
}

impl Controllers {
    /// The state before any controller connects.
    pub fn new(device_id: u64) -> Self {
        Self {
            streams: Streams::new(device_id),
            digests: Mutex::default(),
            timer: Notify::new(),
            counters: Counters::default(),
        }
    }

    /// Sends a packet to the primaries, its packet-in header parsed by P4Info. Returns the reason if the packet is
    /// lost.
    pub fn packet_in(&self, binding: Option<&Binding>, frame: &[u8]) -> Option<&'static str> {
        let parsed = binding.and_then(|binding| match &binding.packet_in {
            Some(header) => header.parse(frame),
            None => Some((Vec::new(), frame)),
        });
        let Some((metadata, payload)) = parsed else {
            self.counters.packet_in_malformed.add(1);
            return Some("it has no complete packet_in header, or there is no P4Info to parse it");
        };
        let packet = p4::PacketIn { payload: payload.to_vec(), metadata };
        let delivery = self.streams.send_to_primaries(&Update::Packet(packet));
        match delivery {
            Delivery::Queued => self.counters.packet_in.add(1),
            Delivery::QueueFull => self.counters.packet_in_queue_full.add(1),
            Delivery::NoPrimary => self.counters.packet_in_no_primary.add(1),
        }
        delivery.loss()
    }

    /// Sends a list of digest messages to the primaries. Returns the reason if the list is lost.
    pub fn digest_list(&self, binding: Option<&Binding>, list: List) -> Option<&'static str> {
        let digest = binding.and_then(|binding| binding.digest_of(list.digest))?;
        let message = p4::DigestList {
            digest_id: digest.id,
            list_id: list.id,
            data: list.data,
            timestamp: nanoseconds_since_1970(),
        };
        let delivery = self.streams.send_to_primaries(&Update::Digest(message));
        match delivery {
            Delivery::Queued => self.counters.digest_lists.add(1),
            Delivery::QueueFull | Delivery::NoPrimary => {
                self.counters.digest_lists_dropped.add(1);
                // No controller received the list, so none will acknowledge it: the same values may be reported again
                // at once.
                self.digests.lock().acknowledge(list.digest, list.id);
            }
        }
        delivery.loss()
    }

    /// Notifies the primaries of idle entries, in messages of about [`LARGE`] bytes.
    pub fn idle(&self, entries: impl IntoIterator<Item = p4::TableEntry>) {
        let mut entries = entries.into_iter();
        loop {
            let (mut table_entry, mut bytes) = (Vec::new(), 0);
            while bytes < LARGE
                && let Some(entry) = entries.next()
            {
                // Each entry adds a tag and a length prefix.
                bytes += entry.encoded_len() + 6;
                table_entry.push(entry);
            }
            if table_entry.is_empty() {
                return;
            }
            let notification = p4::IdleTimeoutNotification { table_entry, timestamp: nanoseconds_since_1970() };
            match self.streams.send_to_primaries(&Update::IdleTimeoutNotification(notification)) {
                Delivery::Queued => self.counters.idle_notifications.add(1),
                Delivery::QueueFull | Delivery::NoPrimary => self.counters.idle_notifications_dropped.add(1),
            }
        }
    }
}

/// Returns the wall clock as nanoseconds since 1970, the unit of P4Runtime's timestamps.
pub fn nanoseconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
