//! Collects digest messages into lists: batching, suppression of duplicates and acknowledgement by the rules of
//! P4Runtime, as a state machine without input or output.

use std::collections::{HashMap, HashSet, VecDeque};

use sluice_engine::{Digest, DigestConfig, DigestId};

use prost::Message as _;

use crate::proto::LARGE;
use crate::proto::p4::v1::P4Data;

/// Limit on the messages of one list if the digest's configuration sets no limit.
const DEFAULT_LIST: usize = 1024;
/// Limit on the messages of one digest that are stored until their acknowledgement. Above the limit the oldest lists
/// are removed first. The limit also applies to the size of one list, whatever `max_list_size` the client configures.
const REMEMBERED: usize = 65_536;

/// The values of the fields of one digest message.
type Message = Vec<Vec<u8>>;

/// A list of digest messages that is due to be sent.
#[derive(Debug, PartialEq)]
pub struct List {
    /// The digest's id in the engine.
    pub digest: DigestId,
    /// The id of the list, which the client's acknowledgement repeats.
    pub id: u64,
    /// The messages in P4Runtime's form, oldest first, without duplicates.
    pub data: Vec<P4Data>,
}

/// A list that was sent and is not acknowledged yet. Times are nanoseconds since the switch started.
struct Sent {
    id: u64,
    /// The time at which the list was sent.
    at: u64,
    forget_at: u64,
    messages: Vec<Message>,
}

/// The messages of one digest that wait for their list to be sent, and those that wait for an acknowledgement.
struct Buffer {
    config: DigestConfig,
    waiting: Vec<Message>,
    /// The messages of `waiting` in P4Runtime's form.
    data: Vec<P4Data>,
    /// The encoded length of `data`, in bytes.
    bytes: usize,
    /// The time at which the first message of `waiting` arrived.
    since: u64,
    sent: VecDeque<Sent>,
    remembered: usize,
    /// The waiting and the unacknowledged messages. A new message that equals one of them is a duplicate.
    known: HashSet<Message>,
}

/// The buffers of all digests. Times are nanoseconds since the switch started.
#[derive(Default)]
pub struct Digests {
    buffers: HashMap<DigestId, Buffer>,
    last_list: u64,
}

impl Digests {
    /// Adds a message, which `encode` translates to P4Runtime's form, unless it is a duplicate of a waiting or an
    /// unacknowledged message. Returns the list if the message fills it (by the number of messages or about [`LARGE`]
    /// bytes), or if the digest's timeout is 0.
    pub fn add(
        &mut self,
        now: u64,
        config: DigestConfig,
        digest: Digest,
        encode: impl FnOnce(&[Vec<u8>]) -> P4Data,
    ) -> Option<List> {
        let buffer = self.buffers.entry(digest.digest).or_insert_with(|| Buffer {
            config,
            waiting: Vec::new(),
            data: Vec::new(),
            bytes: 0,
            since: now,
            sent: VecDeque::new(),
            remembered: 0,
            known: HashSet::new(),
        });
        buffer.config = config;
        buffer.forget(now);
        if !buffer.known.insert(digest.fields.clone()) {
            return None;
        }
        if buffer.waiting.is_empty() {
            buffer.since = now;
        }
        let data = encode(&digest.fields);
        let bytes = data.encoded_len();
        // In the encoded list, a tag and a length precede each message.
        buffer.bytes += 1 + prost::length_delimiter_len(bytes) + bytes;
        buffer.data.push(data);
        buffer.waiting.push(digest.fields);
        if buffer.waiting.len() < buffer.limit() && buffer.bytes < LARGE && config.max_timeout_ns > 0 {
            return None;
        }
        self.last_list += 1;
        Some(buffer.list(now, digest.digest, self.last_list))
    }

    /// Applies changed configurations to waiting and unacknowledged messages. For a digest without a configuration, all
    /// messages are discarded.
    pub fn configure(&mut self, config: impl Fn(DigestId) -> Option<DigestConfig>) {
        self.buffers.retain(|digest, buffer| {
            let Some(config) = config(*digest) else { return false };
            for sent in &mut buffer.sent {
                sent.forget_at = sent.at.saturating_add(config.ack_timeout_ns);
            }
            buffer.config = config;
            true
        });
    }

    /// Removes and returns the lists that are due at `now`. Removes also the sent lists whose acknowledgement has timed
    /// out by then.
    pub fn due(&mut self, now: u64) -> Vec<List> {
        let mut lists = Vec::new();
        for (digest, buffer) in &mut self.buffers {
            buffer.forget(now);
            if buffer.deadline().is_some_and(|deadline| deadline <= now) {
                self.last_list += 1;
                lists.push(buffer.list(now, *digest, self.last_list));
            }
        }
        lists
    }

    /// Returns the time at which the next list must be sent; `None` if no message waits.
    pub fn deadline(&self) -> Option<u64> {
        self.buffers.values().filter_map(Buffer::deadline).min()
    }

    /// Processes an acknowledgement: messages that equal those of the list are no longer suppressed as duplicates.
    pub fn acknowledge(&mut self, digest: DigestId, list: u64) {
        if let Some(buffer) = self.buffers.get_mut(&digest)
            && let Some(place) = buffer.sent.iter().position(|sent| sent.id == list)
            && let Some(sent) = buffer.sent.remove(place)
        {
            buffer.drop_sent(sent);
        }
    }

    /// Removes the unacknowledged lists, because the controller that received them is no longer primary.
    pub fn forget_sent(&mut self) {
        for buffer in self.buffers.values_mut() {
            while let Some(sent) = buffer.sent.pop_front() {
                buffer.drop_sent(sent);
            }
        }
    }

    /// Replaces digest ids by the ids in a new program. `ids` contains pairs of old and new id. Digests without a pair
    /// are discarded.
    pub fn rename(&mut self, ids: &[(DigestId, DigestId)]) {
        let mut old = std::mem::take(&mut self.buffers);
        self.buffers = ids.iter().filter_map(|(from, to)| Some((*to, old.remove(from)?))).collect();
    }

    /// Discards all messages, because another program starts.
    pub fn clear(&mut self) {
        self.buffers.clear();
    }
}

impl Buffer {
    /// Returns the number of messages with which a list is full.
    fn limit(&self) -> usize {
        match self.config.max_list_size {
            0 => DEFAULT_LIST,
            size => (size as usize).min(REMEMBERED),
        }
    }

    /// Returns the time at which the waiting messages must be sent as one list; `None` if no message waits.
    fn deadline(&self) -> Option<u64> {
        if self.waiting.is_empty() {
            return None;
        }
        // The waiting messages can become a full list without a new message, when the client reduces `max_list_size`.
        // Such a list is due at once.
        let full = self.waiting.len() >= self.limit();
        Some(if full { self.since } else { self.since.saturating_add(self.config.max_timeout_ns) })
    }

    /// Removes and returns the waiting messages as a list. If the digest requires acknowledgements, stores a copy.
    fn list(&mut self, now: u64, digest: DigestId, id: u64) -> List {
        let messages = std::mem::take(&mut self.waiting);
        let data = std::mem::take(&mut self.data);
        self.bytes = 0;
        if self.config.ack_timeout_ns == 0 {
            for message in &messages {
                self.known.remove(message);
            }
        } else {
            self.remembered += messages.len();
            let forget_at = now.saturating_add(self.config.ack_timeout_ns);
            self.sent.push_back(Sent { id, at: now, forget_at, messages });
            self.forget(now);
        }
        List { digest, id, data }
    }

    /// Removes unacknowledged lists whose timeout expired, and the oldest lists above the limit.
    fn forget(&mut self, now: u64) {
        while let Some(oldest) = self.sent.front()
            && (oldest.forget_at <= now || self.remembered > REMEMBERED)
            && let Some(sent) = self.sent.pop_front()
        {
            self.drop_sent(sent);
        }
    }

    fn drop_sent(&mut self, sent: Sent) {
        self.remembered -= sent.messages.len();
        for message in &sent.messages {
            self.known.remove(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4::v1::p4_data::Data;

    const ID: DigestId = DigestId(0);

    fn config(max_timeout_ns: u64, max_list_size: u32, ack_timeout_ns: u64) -> DigestConfig {
        DigestConfig { max_timeout_ns, max_list_size, ack_timeout_ns }
    }

    fn digest(value: u8) -> Digest {
        Digest { digest: ID, time: 0, fields: vec![vec![value]] }
    }

    fn message(number: u32) -> Digest {
        Digest { digest: ID, time: 0, fields: vec![number.to_be_bytes().to_vec()] }
    }

    /// Returns the first field of a message, encoded in P4Runtime's form.
    fn wire(fields: &[Vec<u8>]) -> P4Data {
        P4Data { data: Some(Data::Bitstring(fields[0].clone())) }
    }

    /// Returns a message whose encoded form, with its tag and length, has this many bytes.
    fn of(bytes: usize) -> P4Data {
        let small = P4Data { data: Some(Data::Bitstring(vec![0; bytes - 4])) };
        assert_eq!(2 + small.encoded_len(), bytes, "tags and lengths of one byte each");
        small
    }

    fn values(list: &List) -> Vec<u8> {
        let first_byte = |data: &P4Data| match &data.data {
            Some(Data::Bitstring(bits)) => bits[0],
            data => panic!("{data:?}"),
        };
        list.data.iter().map(first_byte).collect()
    }

    #[test]
    fn a_list_is_sent_when_full_or_after_its_timeout() {
        let mut digests = Digests::default();
        let config = config(100, 3, 0);
        assert_eq!(digests.add(5, config, digest(1), wire), None);
        assert_eq!(digests.add(6, config, digest(1), wire), None);
        assert_eq!(digests.add(7, config, digest(2), wire), None);
        assert_eq!(values(&digests.add(8, config, digest(3), wire).unwrap()), [1, 2, 3]);
        assert_eq!(digests.deadline(), None);
        assert_eq!(digests.add(20, config, digest(1), wire), None);
        assert_eq!(digests.deadline(), Some(120));
        assert_eq!(digests.due(119), []);
        assert_eq!(values(&digests.due(120)[0]), [1]);
    }

    #[test]
    fn the_size_of_a_list_is_limited() {
        let mut digests = Digests::default();
        let patient = config(u64::MAX, u32::MAX, 0);
        let sent = (0..).find_map(|number| digests.add(5, patient, message(number), wire));
        assert_eq!(sent.unwrap().data.len(), REMEMBERED);
        let sent = (0..).find_map(|number| digests.add(5, patient, message(number), |_| of(100)));
        assert_eq!(sent.unwrap().data.len(), LARGE.div_ceil(100));
        let large = |_: &[Vec<u8>]| P4Data { data: Some(Data::Bitstring(vec![0; LARGE])) };
        let sent = (0..).find_map(|number| digests.add(5, patient, message(number), large));
        assert_eq!(sent.unwrap().data.len(), 1);
    }

    #[test]
    fn the_number_of_unacknowledged_messages_is_limited() {
        for size in [1, 1000, u32::MAX] {
            let mut digests = Digests::default();
            let forgotten = config(u64::MAX, size, u64::MAX);
            for number in 0..3 * REMEMBERED as u32 {
                digests.add(5, forgotten, message(number), wire);
                let buffer = &digests.buffers[&ID];
                assert!(buffer.known.len() - buffer.waiting.len() <= REMEMBERED);
            }
            assert_eq!(digests.add(5, forgotten, message(3 * REMEMBERED as u32 - 1), wire), None, "remembered");
            assert!(!digests.buffers[&ID].known.contains(&message(0).fields), "forgotten");
        }
    }

    #[test]
    fn any_number_of_lists_may_expire_at_once() {
        let mut digests = Digests::default();
        let at_once = config(0, 1, 1000);
        for number in 0..REMEMBERED as u32 {
            digests.add(5, at_once, message(number), wire);
        }
        assert!(digests.add(2000, at_once, message(0), wire).is_some());
        assert_eq!(digests.buffers[&ID].known.len(), 1);
    }

    #[test]
    fn waiting_and_unacknowledged_messages_survive_a_change_of_program() {
        let (mut digests, other) = (Digests::default(), DigestId(5));
        let (patient, at_once) = (config(100, 3, 0), config(0, 1, 1000));
        assert_eq!(digests.add(5, patient, digest(1), wire), None);
        let list = digests.add(5, at_once, Digest { digest: DigestId(1), ..digest(2) }, wire).unwrap();
        assert_eq!(digests.add(5, patient, Digest { digest: DigestId(2), ..digest(3) }, wire), None);
        digests.rename(&[(ID, other), (DigestId(1), ID)]);
        assert_eq!(digests.add(6, at_once, digest(2), wire), None, "not acknowledged yet");
        digests.acknowledge(ID, list.id);
        assert!(digests.add(7, at_once, digest(2), wire).is_some());
        assert_eq!(
            digests.due(200).iter().map(|list| (list.digest, values(list))).collect::<Vec<_>>(),
            [(other, vec![1])]
        );
    }

    #[test]
    fn waiting_and_unacknowledged_messages_follow_a_changed_configuration() {
        let (patient, mut digests) = (config(1000, 3, 1000), Digests::default());
        assert_eq!(digests.add(5, patient, digest(1), wire), None);
        assert_eq!(digests.add(6, patient, digest(2), wire), None);
        digests.configure(|_| Some(config(100, 3, 1000)));
        assert_eq!(digests.deadline(), Some(105), "the shorter timeout applies");
        digests.configure(|_| Some(config(1000, 2, 1000)));
        assert_eq!(values(&digests.due(7)[0]), [1, 2], "full by the smaller limit");
        let forgetful = config(1000, 2, 10);
        assert_eq!(digests.add(50, patient, digest(1), wire), None, "not acknowledged");
        assert_eq!(digests.deadline(), None);
        digests.configure(|_| Some(forgetful));
        assert_eq!(digests.add(51, forgetful, digest(1), wire), None);
        assert_eq!(digests.deadline(), Some(1051), "the shorter acknowledgement timeout applies");
        digests.configure(|_| None);
        assert_eq!(digests.deadline(), None);
    }

    #[test]
    fn no_timeout_or_a_size_of_one_sends_at_once() {
        for config in [config(0, 10, 0), config(1000, 1, 0), config(0, 0, 0)] {
            let mut digests = Digests::default();
            assert_eq!(values(&digests.add(1, config, digest(7), wire).unwrap()), [7]);
        }
    }

    #[test]
    fn messages_are_not_repeated_before_their_acknowledgement() {
        let mut digests = Digests::default();
        let config = config(0, 1, 1000);
        let list = digests.add(0, config, digest(1), wire).unwrap();
        assert_eq!(digests.add(1, config, digest(1), wire), None);
        digests.acknowledge(ID, list.id);
        let next_list = digests.add(2, config, digest(1), wire).unwrap();
        assert_ne!(next_list.id, list.id);
        assert_eq!(digests.add(1001, config, digest(1), wire), None);
        assert!(digests.add(1002, config, digest(1), wire).is_some(), "forgotten after the acknowledgement timeout");
    }
}
