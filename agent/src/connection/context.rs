//! The context of one event of a connection.

use crate::frames::Frames;
use crate::pool::Pools;
use crate::wire::Link;

/// The time, the output, and the agent's knowledge about servers, for one event.
pub struct Context<'e> {
    /// Nanoseconds of a monotonic clock.
    pub now: u64,
    /// The hardware addresses of the agent and the router.
    pub link: Link,
    /// The frames to send.
    pub out: &'e mut Frames,
    /// What the agent has learned about the servers of each group.
    pub pools: &'e mut Pools,
    /// Set when `pools` has changed.
    pub has_learned: bool,
    /// Whether the agent is draining, and takes no new work.
    pub is_draining: bool,
}
