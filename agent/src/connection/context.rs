//! The context in which a connection processes an event.

use crate::frames::Frames;
use crate::pool::Pools;
use crate::wire::Link;

/// The time, the output frames, and the agent's data about servers, for the processing of one event.
pub struct Context<'e> {
    /// The time of the event, in nanoseconds of a monotonic clock.
    pub now: u64,
    /// The hardware addresses of the agent and the router.
    pub link: Link,
    /// The frames to send.
    pub out: &'e mut Frames,
    /// The properties of each group's servers (MSS, window, SACK) that the agent has learned.
    pub pools: &'e mut Pools,
    /// Set to true when `pools` has changed.
    pub has_learned: bool,
    /// Whether the agent is draining, and accepts no new connections or requests.
    pub is_draining: bool,
}
