//! Sends packets, digest lists and notifications to a switch's primary controllers, and counts the messages that it
//! sent and those that were lost.

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

/// The open streams of the controllers, and the digest lists that are not yet sent or acknowledged.
pub struct Controllers {
    /// The streams and the arbitration between them.
    pub streams: Streams,
    /// Digest messages whose list is not yet sent or not yet acknowledged.
    pub digests: Mutex<Digests>,
    /// Notified when the time at which the next digest list is due has changed.
    pub timer: Notify,
    /// Numbers of messages that were sent, received and lost.
    pub counters: Counters,
}

impl Controllers {
    /// Returns the state before any controller connects.
    pub fn new(device_id: u64) -> Self {
        Self {
            streams: Streams::new(device_id),
            digests: Mutex::default(),
            timer: Notify::new(),
            counters: Counters::default(),
        }
    }

    /// Sends a packet to the primaries, with the fields of its packet-in header as metadata. Returns the reason if the
    /// packet is lost.
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

    /// Sends a list of digest messages to the primaries. Returns the reason if the list is lost, but `None` also for a
    /// list of a digest that P4Info lacks, which is not sent.
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
                // No controller received the list, so no controller will acknowledge it. This call permits the program
                // to report the same values again at once.
                self.digests.lock().acknowledge(list.digest, list.id);
            }
        }
        delivery.loss()
    }

    /// Sends the primaries notifications of idle entries, in messages of about [`LARGE`] bytes.
    pub fn idle(&self, entries: impl IntoIterator<Item = p4::TableEntry>) {
        let mut entries = entries.into_iter();
        loop {
            let (mut table_entry, mut bytes) = (Vec::new(), 0);
            while bytes < LARGE
                && let Some(entry) = entries.next()
            {
                // In the encoded message, a tag and a length of together at most 6 bytes precede each entry.
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

/// Returns the time of the wall clock in nanoseconds since 1970, the unit of P4Runtime's timestamps.
pub fn nanoseconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
