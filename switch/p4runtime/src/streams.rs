//! The open streams: what goes to whom, without ever waiting for a client.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::Status;

use crate::arbitration::{Arbiter, Notice, StreamId};
use crate::proto::p4::v1 as p4;
use p4::stream_message_response::Update;

/// Streams that may be open at a time.
const STREAMS: usize = 256;

/// What a stream's client receives; an error ends the stream.
pub type Response = Result<p4::StreamMessageResponse, Status>;

/// Arbitration messages that a client may leave unread before its stream is ended.
const NOTICES: usize = 64;
/// Packets, digests and other events that wait for a client before further ones are dropped.
const EVENTS: usize = 1024;
/// Bytes that they may have together, as they are on the wire.
const EVENT_BYTES: usize = 4 << 20;

/// An event that waits, and its share of [`EVENT_BYTES`].
pub struct Event {
    message: p4::StreamMessageResponse,
    _bytes: OwnedSemaphorePermit,
}

impl Event {
    /// The message, which waits no longer.
    pub fn take(self) -> p4::StreamMessageResponse {
        self.message
    }
}

/// A stream, for the tasks that hear and feed the client: its two queues, and its end.
pub struct Outbox {
    /// Arbitration and what ends the stream.
    pub notices: mpsc::Receiver<Response>,
    /// Everything else.
    pub events: mpsc::Receiver<Event>,
    /// Ready when the stream has been ended.
    pub end: oneshot::Receiver<()>,
}

struct Inbox {
    /// With one place more than [`NOTICES`], for what ends the stream.
    notices: mpsc::Sender<Response>,
    events: mpsc::Sender<Event>,
    /// What is left of [`EVENT_BYTES`].
    room: Arc<Semaphore>,
    /// Ends the stream when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Inbox {
    /// Queues an arbitration message, if the client has not left too many unread.
    fn notify(&self, message: p4::MasterArbitrationUpdate) -> bool {
        let message = p4::StreamMessageResponse { update: Some(Update::Arbitration(message)) };
        self.notices.capacity() > 1 && self.notices.try_send(Ok(message)).is_ok()
    }

    /// Queues an event of so many bytes, if there is room.
    fn queue(&self, bytes: usize, update: impl FnOnce() -> Update) -> bool {
        let room =
            u32::try_from(bytes).ok().and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
        let (Some(room), Ok(place)) = (room, self.events.try_reserve()) else { return false };
        place.send(Event { message: p4::StreamMessageResponse { update: Some(update()) }, _bytes: room });
        true
    }
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// At least one primary has it in its queue.
    Queued,
    /// Every primary's queue is full.
    QueueFull,
    /// There is no primary.
    NoPrimary,
}

impl Delivery {
    /// Why nobody has it.
    pub fn loss(self) -> Option<&'static str> {
        match self {
            Self::Queued => None,
            Self::QueueFull => Some("the primary controller's queue is full"),
            Self::NoPrimary => Some("there is no primary controller"),
        }
    }
}

struct State {
    arbiter: Arbiter,
    inboxes: HashMap<StreamId, Inbox>,
}

/// All open streams of the device.
pub struct Streams {
    state: Mutex<State>,
    next: AtomicU64,
}

impl Streams {
    /// No streams yet.
    pub fn new(device_id: u64) -> Self {
        let state = State { arbiter: Arbiter::new(device_id), inboxes: HashMap::new() };
        Self { state: Mutex::new(state), next: AtomicU64::new(1) }
    }

    /// Adds a stream, which takes no part in arbitration until it bids.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there are too many.
    #[allow(clippy::result_large_err)]
    pub fn open(&self) -> Result<(StreamId, Outbox), Status> {
        let id = StreamId(self.next.fetch_add(1, Relaxed));
        let (notices, notices_out) = mpsc::channel(NOTICES + 1);
        let (events, events_out) = mpsc::channel(EVENTS);
        let (end, end_out) = oneshot::channel();
        let mut state = self.state.lock();
        if state.inboxes.len() >= STREAMS {
            return Err(Status::resource_exhausted(format!(
                "{STREAMS} streams are open, which is the limit; close one first"
            )));
        }
        let room = Arc::new(Semaphore::new(EVENT_BYTES));
        state.inboxes.insert(id, Inbox { notices, events, room, _end: end });
        drop(state);
        Ok((id, Outbox { notices: notices_out, events: events_out, end: end_out }))
    }

    /// Forgets a stream and tells the others.
    pub fn close(&self, stream: StreamId) {
        let mut state = self.state.lock();
        state.inboxes.remove(&stream);
        let notices = state.arbiter.close(stream);
        state.deliver(notices);
    }

    /// Ends a stream with an error and tells the others.
    pub fn abort(&self, stream: StreamId, status: Status) {
        let mut state = self.state.lock();
        let notices = state.end(stream, status);
        state.deliver(notices);
    }

    /// Handles a bid.
    ///
    /// # Errors
    /// The status that has to end the stream.
    #[allow(clippy::result_large_err)]
    pub fn arbitrate(&self, stream: StreamId, bid: &p4::MasterArbitrationUpdate) -> Result<(), Status> {
        let mut state = self.state.lock();
        let notices = state.arbiter.update(stream, bid)?;
        state.deliver(notices);
        Ok(())
    }

    /// The highest election id that each role has ever seen.
    pub fn highest(&self) -> BTreeMap<String, u128> {
        self.state.lock().arbiter.highest()
    }

    /// Goes on with the election ids that roles had before the server was restarted.
    pub fn remember(&self, highest: &BTreeMap<String, u128>) {
        self.state.lock().arbiter.remember(highest);
    }

    /// Forgets the election ids of streams that have gone, and informs the others.
    pub fn forget_elections(&self) {
        let mut state = self.state.lock();
        let notices = state.arbiter.forget_past();
        state.deliver(notices);
    }

    /// Lets a request pass that only the primary of a role may make.
    ///
    /// # Errors
    /// As the specification has it.
    #[allow(clippy::result_large_err)]
    pub fn check_primary(&self, role: &str, election_id: Option<&p4::Uint128>) -> Result<(), Status> {
        self.state.lock().arbiter.check_primary(role, election_id)
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.state.lock().inboxes.len()
    }

    /// Whether the stream is the primary of its role.
    pub fn is_primary(&self, stream: StreamId) -> bool {
        self.state.lock().arbiter.is_primary(stream)
    }

    /// Sends an event to one stream, if its queue has room.
    pub fn send(&self, stream: StreamId, update: Update) {
        if let Some(inbox) = self.state.lock().inboxes.get(&stream) {
            inbox.queue(update.encoded_len(), || update);
        }
    }

    /// Sends an event to the primaries of all roles, as far as their queues have room. Never waits.
    pub fn send_to_primaries(&self, update: &Update) -> Delivery {
        let bytes = update.encoded_len();
        let state = self.state.lock();
        let mut delivery = Delivery::NoPrimary;
        for stream in state.arbiter.primaries() {
            let Some(inbox) = state.inboxes.get(&stream) else { continue };
            if inbox.queue(bytes, || update.clone()) {
                delivery = Delivery::Queued;
            } else if delivery == Delivery::NoPrimary {
                delivery = Delivery::QueueFull;
            }
        }
        delivery
    }
}

impl State {
    /// Queues notices. A client that does not read them loses its stream, about which others are told in turn.
    fn deliver(&mut self, notices: Vec<Notice>) {
        let mut due = VecDeque::from(notices);
        while let Some(Notice { to, message }) = due.pop_front() {
            let Some(inbox) = self.inboxes.get(&to) else { continue };
            if !inbox.notify(message) {
                tracing::warn!(stream = to.0, "a controller does not read its stream; ending it");
                let text = format!("{NOTICES} arbitration messages are unread; read the stream");
                due.extend(self.end(to, Status::resource_exhausted(text)));
            }
        }
    }

    /// Forgets a stream, which ends with this error; the result is who is to be told what.
    fn end(&mut self, stream: StreamId, status: Status) -> Vec<Notice> {
        if let Some(inbox) = self.inboxes.remove(&stream) {
            // There is a place for it, or else nobody to hear it.
            let _ = inbox.notices.try_send(Err(status));
        }
        self.arbiter.close(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_open_streams_is_limited() {
        let streams = Streams::new(1);
        let open: Vec<_> = (0..STREAMS).map(|_| streams.open().unwrap()).collect();
        assert_eq!(streams.open().err().unwrap().code(), tonic::Code::ResourceExhausted);
        streams.close(open[7].0);
        assert!(streams.open().is_ok());
    }

    #[test]
    fn a_primary_that_does_not_read_its_notices_is_none_any_more() {
        let streams = Streams::new(1);
        let bid = |low| p4::MasterArbitrationUpdate {
            device_id: 1,
            election_id: Some(p4::Uint128 { high: 0, low }),
            ..Default::default()
        };
        let ((silent, mut unread), (next, mut read)) = (streams.open().unwrap(), streams.open().unwrap());
        streams.arbitrate(next, &bid(9)).unwrap();
        for count in 0..=NOTICES {
            assert_eq!(streams.is_primary(silent), count > 0);
            streams.arbitrate(silent, &bid(10)).unwrap();
            while read.notices.try_recv().is_ok() {}
        }
        assert!(!streams.is_primary(silent));
        assert_eq!(unread.end.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        let told: Vec<_> = std::iter::from_fn(|| unread.notices.try_recv().ok()).collect();
        assert!(told[..NOTICES].iter().all(Result::is_ok));
        assert_eq!(told[NOTICES].as_ref().unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert_eq!((told.len(), streams.count()), (NOTICES + 1, 1));
        streams.arbitrate(next, &bid(10)).unwrap();
        assert!(streams.is_primary(next));
    }

    #[test]
    fn the_bytes_that_wait_for_a_client_are_limited() {
        let streams = Streams::new(1);
        let (id, mut outbox) = streams.open().unwrap();
        let election_id = Some(p4::Uint128 { high: 0, low: 1 });
        streams
            .arbitrate(id, &p4::MasterArbitrationUpdate { device_id: 1, election_id, ..Default::default() })
            .unwrap();
        let packet = Update::Packet(p4::PacketIn { payload: vec![0; EVENT_BYTES / 10], metadata: vec![] });
        let mut sent = (0..20).map(|_| streams.send_to_primaries(&packet));
        assert_eq!(sent.by_ref().take_while(|delivery| *delivery == Delivery::Queued).count(), 9);
        assert!(sent.all(|delivery| delivery == Delivery::QueueFull));
        // What has gone to the client makes room again.
        assert_eq!(outbox.events.try_recv().unwrap().take().update.as_ref(), Some(&packet));
        assert_eq!(streams.send_to_primaries(&packet), Delivery::Queued);
        assert_eq!(streams.send_to_primaries(&packet), Delivery::QueueFull);
    }
}
