//! What a connection works with, for one event.

use crate::frames::Frames;
use crate::pool::Pools;
use crate::wire::Link;

/// The time, what goes out, and what the agent knows of servers.
pub struct Context<'e> {
    /// Nanoseconds of a clock that only goes forward.
    pub now: u64,
    /// Between the agent and the router.
    pub link: Link,
    /// What goes out.
    pub out: &'e mut Frames,
    /// What servers can do.
    pub pools: &'e mut Pools,
    /// Something new was learned about them.
    pub has_learned: bool,
    /// The agent takes no new work.
    pub is_draining: bool,
}
