//! The open streams of controllers and the message queues of these streams. Sending never waits for a client.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::Status;

use crate::arbitration::{Arbiter, Notice, StreamId};
use crate::proto::p4::v1 as p4;
use p4::stream_message_response::Update;

/// Limit on the number of streams that are open at the same time, because each stream may occupy [`EVENT_BYTES`].
const STREAMS: usize = 256;

/// A message that a stream's client receives, or the error with which the server ends the stream.
pub type Response = Result<p4::StreamMessageResponse, Status>;

/// Limit on the number of arbitration messages that a client has not yet read. The server ends the stream of a client
/// above this limit.
const NOTICES: usize = 64;
/// Limit on the packets, digests and other events queued for one client. Further events are dropped.
const EVENTS: usize = 1024;
/// Limit on the encoded size of one client's queued events together, in bytes. The limit bounds the memory that is
/// occupied for a client that does not read.
const EVENT_BYTES: usize = 4 << 20;

/// A queued event, with the part of [`EVENT_BYTES`] that it occupies.
pub struct Event {
    message: p4::StreamMessageResponse,
    _bytes: OwnedSemaphorePermit,
}

impl Event {
    /// Returns the message. Dropping the event releases its part of `EVENT_BYTES`.
    pub fn take(self) -> p4::StreamMessageResponse {
        self.message
    }
}

/// The receiving ends of a stream's queues. The task that serves the client sends the messages from both queues, and
/// stops when the stream was ended.
pub struct Outbox {
    /// Arbitration messages, and the error that ends the stream.
    pub notices: mpsc::Receiver<Response>,
    /// Packets, digests and all other messages.
    pub events: mpsc::Receiver<Event>,
    /// Becomes ready when the server has ended the stream.
    pub end: oneshot::Receiver<()>,
}

/// The sending ends of a stream's queues, to which the server appends messages for the client.
struct Inbox {
    /// The queue of arbitration messages. It has room for [`NOTICES`] messages, and for the error that ends the stream.
    notices: mpsc::Sender<Response>,
    events: mpsc::Sender<Event>,
    /// The part of [`EVENT_BYTES`] that no queued event occupies.
    room: Arc<Semaphore>,
    /// Ends the stream when this sender is dropped.
    _end: oneshot::Sender<()>,
}

impl Inbox {
    /// Queues an arbitration message. Returns false if [`NOTICES`] such messages are already unread.
    fn notify(&self, message: p4::MasterArbitrationUpdate) -> bool {
        let message = p4::StreamMessageResponse { update: Some(Update::Arbitration(message)) };
        self.notices.capacity() > 1 && self.notices.try_send(Ok(message)).is_ok()
    }

    /// Queues an event whose encoded length is `bytes`. Returns false if the queue contains [`EVENTS`] events already,
    /// or if less than `bytes` of [`EVENT_BYTES`] is free.
    fn queue(&self, bytes: usize, update: impl FnOnce() -> Update) -> bool {
        let room =
            u32::try_from(bytes).ok().and_then(|bytes| Arc::clone(&self.room).try_acquire_many_owned(bytes).ok());
        let (Some(room), Ok(place)) = (room, self.events.try_reserve()) else { return false };
        place.send(Event { message: p4::StreamMessageResponse { update: Some(update()) }, _bytes: room });
        true
    }
}

/// The result of sending an event to the primaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// At least one primary has the event in its queue.
    Queued,
    /// The queue of every primary is full.
    QueueFull,
    /// There is no primary.
    NoPrimary,
}

impl Delivery {
    /// Returns the reason why the event was queued for no primary; `None` if it was queued for at least one.
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
    /// Returns the registry of the device's streams, which is empty at first.
    pub fn new(device_id: u64) -> Self {
        let state = State { arbiter: Arbiter::new(device_id), inboxes: HashMap::new() };
        Self { state: Mutex::new(state), next: AtomicU64::new(1) }
    }

    /// Adds a stream. The stream does not participate in arbitration until its first bid.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when [`STREAMS`] streams are open.
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

    /// Removes a stream. If it was the primary of its role, notifies the other streams of the role.
    pub fn close(&self, stream: StreamId) {
        let mut state = self.state.lock();
        state.inboxes.remove(&stream);
        let notices = state.arbiter.close(stream);
        state.deliver(notices);
    }

    /// Ends a stream with an error. If it was the primary of its role, notifies the other streams of the role.
    pub fn abort(&self, stream: StreamId, status: Status) {
        let mut state = self.state.lock();
        let notices = state.end(stream, status);
        state.deliver(notices);
    }

    /// Processes a stream's bid. Notifies the stream, and if it is or was the primary, all other streams of its role.
    ///
    /// # Errors
    /// The status with which the server must end the stream.
    #[allow(clippy::result_large_err)]
    pub fn arbitrate(&self, stream: StreamId, bid: &p4::MasterArbitrationUpdate) -> Result<(), Status> {
        let mut state = self.state.lock();
        let notices = state.arbiter.update(stream, bid)?;
        state.deliver(notices);
        Ok(())
    }

    /// Returns the highest election id of each role, including ids that only closed streams bid.
    pub fn highest(&self) -> BTreeMap<String, u128> {
        self.state.lock().arbiter.highest()
    }

    /// Restores the roles' highest election ids, which were saved before a restart of the server.
    pub fn remember(&self, highest: &BTreeMap<String, u128>) {
        self.state.lock().arbiter.remember(highest);
    }

    /// Discards the election ids of closed streams. Notifies the open streams of the roles whose highest id changes.
    pub fn forget_elections(&self) {
        let mut state = self.state.lock();
        let notices = state.arbiter.forget_past();
        state.deliver(notices);
    }

    /// Returns `Ok` if the sender of a request is the primary of `role`.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown role, `PERMISSION_DENIED` if the sender is not the role's primary.
    #[allow(clippy::result_large_err)]
    pub fn check_primary(&self, role: &str, election_id: Option<&p4::Uint128>) -> Result<(), Status> {
        self.state.lock().arbiter.check_primary(role, election_id)
    }

    /// Returns the number of open streams.
    pub fn count(&self) -> usize {
        self.state.lock().inboxes.len()
    }

    /// Returns whether the stream is the primary of its role.
    pub fn is_primary(&self, stream: StreamId) -> bool {
        self.state.lock().arbiter.is_primary(stream)
    }

    /// Queues an event for one stream; drops it if the queue is full.
    pub fn send(&self, stream: StreamId, update: Update) {
        if let Some(inbox) = self.state.lock().inboxes.get(&stream) {
            inbox.queue(update.encoded_len(), || update);
        }
    }

    /// Queues an event for the primaries of all roles, except those whose queues are full. Never waits.
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
    /// Queues notices. Ends the stream of a client with too many unread notices. If this stream was the primary of its
    /// role, notifies the other streams of the role.
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

    /// Removes a stream and ends it with this error. If it was the primary of its role, returns the notices for the
    /// other streams of the role.
    fn end(&mut self, stream: StreamId, status: Status) -> Vec<Notice> {
        if let Some(inbox) = self.inboxes.remove(&stream) {
            // The queue reserves a place for this error. Sending fails only if the task that serves the client has
            // ended.
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
    fn a_primary_that_leaves_its_notices_unread_loses_its_stream() {
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
        let notices: Vec<_> = std::iter::from_fn(|| unread.notices.try_recv().ok()).collect();
        assert!(notices[..NOTICES].iter().all(Result::is_ok));
        assert_eq!(notices[NOTICES].as_ref().unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert_eq!((notices.len(), streams.count()), (NOTICES + 1, 1));
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
        // When the client's task removes an event from the queue, another event fits.
        assert_eq!(outbox.events.try_recv().unwrap().take().update.as_ref(), Some(&packet));
        assert_eq!(streams.send_to_primaries(&packet), Delivery::Queued);
        assert_eq!(streams.send_to_primaries(&packet), Delivery::QueueFull);
    }
}
