//! The abilities (MSS, window, SACK) of a group's servers, which the agent learns from their SYN-ACKs. Agents announce
//! to clients the abilities that all servers of the service's groups have.
//!
//! Values that an agent has learned itself are valid for five to fifteen minutes. Values of other agents arrive through
//! the controller; each report of the controller replaces those of the previous report, and they expire after ten
//! minutes without a report. All values become invalid when the group's servers change.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::config::Service;
use crate::wire::{Segment, SynOptions};

/// The window scale that every agent announces to every client that offers scaling, so that any agent can continue any
/// handshake. Linux uses the same scale with its default buffers. A larger scale would round windows more, and windows
/// of 8 MB suffice. The translation shifts windows of servers with other scales.
pub const SCALE: u8 = 7;
/// The least time, in nanoseconds, for which a learned value is valid. It expires after at most three times this
/// time, because values are discarded by whole periods.
pub const HALF_LIFE: u64 = 300_000_000_000;
/// The MSS in bytes of a host whose SYN announces none (RFC 9293, section 3.7.1).
pub const DEFAULT_MSS: u16 = 536;

/// The abilities that an agent announces to clients, because all servers of the service have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ability {
    /// The smallest MSS of the servers, in bytes.
    pub mss: u16,
    /// Whether all servers permit SACK.
    pub sack: bool,
    /// The smallest initial window of the servers in bytes, never 0. If the agent announced more than the selected
    /// server's window, it would have to shrink the window later.
    pub window: u16,
}

impl Ability {
    /// The abilities that are assumed before a server has answered: the MSS of Ethernet, SACK, and the largest window.
    /// The agent never announces more.
    pub const ASSUMED: Ability = Ability { mss: 1460, sack: true, window: u16::MAX };

    fn limited(self, learned: &Learned) -> Ability {
        Ability {
            mss: self.mss.min(learned.mss.unwrap_or(u16::MAX)),
            sack: self.sack && learned.sack.unwrap_or(true),
            window: self.window.min(learned.window.unwrap_or(u16::MAX)),
        }
    }
}

/// The abilities that the SYN-ACKs of a group's servers have shown: the minimum of each ability. A field is absent if
/// no SYN-ACK could show the ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Learned {
    /// The smallest MSS in bytes.
    pub mss: Option<u16>,
    /// The smallest initial window in bytes, never 0: a SYN-ACK with a closed window does not announce the later
    /// window (SYNPROXY of Linux sends such SYN-ACKs).
    pub window: Option<u16>,
    /// Whether all servers that were offered SACK permit it.
    pub sack: Option<bool>,
    /// Whether all servers that were offered window scaling use it.
    pub scales: Option<bool>,
    /// The smallest scale of the servers that use window scaling.
    pub scale: Option<u8>,
}

impl Learned {
    /// Returns the abilities that `answer` shows, a SYN-ACK that answers a SYN with the options `offered`.
    fn of(offered: &SynOptions, answer: &Segment<'_>) -> Learned {
        let (window, answer) = (answer.window(), answer.syn_options());
        Learned {
            mss: Some(answer.mss.unwrap_or(DEFAULT_MSS)),
            window: (window > 0).then_some(window),
            sack: offered.sack.then_some(answer.sack),
            scales: offered.scale.map(|_| answer.scale.is_some()),
            scale: answer.scale.filter(|_| offered.scale.is_some()),
        }
    }

    /// Returns, for each ability, the minimum of the values in `self` and `other`.
    #[must_use]
    pub fn least(self, other: Learned) -> Learned {
        fn min<T: Ord>(first: Option<T>, other: Option<T>) -> Option<T> {
            match (first, other) {
                (Some(first), Some(other)) => Some(first.min(other)),
                (first, other) => first.or(other),
            }
        }
        Learned {
            mss: min(self.mss, other.mss),
            window: min(self.window, other.window),
            sack: min(self.sack, other.sack),
            scales: min(self.scales, other.scales),
            scale: min(self.scale, other.scale),
        }
    }
}

/// The abilities of a group's servers that an agent has learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// The group's address.
    pub group: SocketAddrV4,
    /// The numbers, in the data plane, of the servers that the report is about.
    pub servers: Vec<u16>,
    /// The abilities that the servers' SYN-ACKs have shown.
    pub learned: Learned,
}

/// The learned abilities of a group's current servers.
#[derive(Debug, Default)]
struct Pool {
    servers: Vec<u16>,
    /// Values that the agent has learned since the time `since` (`recent`), and in the period before it (`former`). A
    /// period lasts from `HALF_LIFE` to twice that time.
    recent: Learned,
    former: Learned,
    since: u64,
    /// Values learned by other agents, and the time at which these values expire.
    shared: Learned,
    shared_until: u64,
}

impl Pool {
    fn new(servers: Vec<u16>) -> Pool {
        Pool { servers, ..Pool::default() }
    }

    /// Returns the values that this agent has learned itself and that are still valid.
    fn own(&self, now: u64) -> Learned {
        match now.saturating_sub(self.since) / HALF_LIFE {
            0 => self.recent.least(self.former),
            1 => self.recent,
            _ => Learned::default(),
        }
    }

    /// Returns the values that this agent and the other agents have learned and that are still valid.
    fn all(&self, now: u64) -> Learned {
        if now < self.shared_until { self.own(now).least(self.shared) } else { self.own(now) }
    }

    fn learn(&mut self, shown: Learned, now: u64) {
        let halves = now.saturating_sub(self.since) / HALF_LIFE;
        if halves > 0 {
            self.former = if halves == 1 { self.recent } else { Learned::default() };
            (self.recent, self.since) = (Learned::default(), now);
        }
        self.recent = self.recent.least(shown);
    }

    /// Returns the time at which the next of the learned values expires; `u64::MAX` if none expires later than `now`.
    fn until(&self, now: u64) -> u64 {
        let halves = [self.since + HALF_LIFE, self.since + 2 * HALF_LIFE, self.shared_until];
        halves.into_iter().filter(|end| *end > now).min().unwrap_or(u64::MAX)
    }
}

/// The learned abilities of each group, by the group's address.
#[derive(Debug, Default)]
pub struct Pools(HashMap<SocketAddrV4, Pool>);

impl Pools {
    /// Sets the groups in use and their servers. Discards the learned values of a group whose servers change.
    pub fn configure<'s>(&mut self, services: impl Iterator<Item = &'s Arc<Service>>) {
        let mut former = std::mem::take(&mut self.0);
        for group in services.flat_map(|service| &service.groups) {
            let mut servers = group.servers.clone();
            servers.sort_unstable();
            let same = former.remove(&group.address).filter(|pool| pool.servers == servers);
            self.0.insert(group.address, same.unwrap_or_else(|| Pool::new(servers)));
        }
    }

    /// Records the abilities that a server of a group shows by `answer`, its SYN-ACK for a SYN with the options
    /// `offered`. Returns whether the combined abilities have changed.
    pub fn learn(&mut self, now: u64, group: SocketAddrV4, offered: &SynOptions, answer: &Segment<'_>) -> bool {
        let Some(pool) = self.0.get_mut(&group) else { return false };
        let before = pool.all(now);
        pool.learn(Learned::of(offered, answer), now);
        pool.all(now) != before
    }

    /// Replaces the values that other agents have learned. Ignores reports whose servers are not the group's current
    /// servers.
    pub fn share(&mut self, now: u64, shared: Vec<GroupReport>) {
        for pool in self.0.values_mut() {
            (pool.shared, pool.shared_until) = (Learned::default(), 0);
        }
        for GroupReport { group, mut servers, learned } in shared {
            servers.sort_unstable();
            if let Some(pool) = self.0.get_mut(&group).filter(|pool| pool.servers == servers) {
                let learned = Learned { window: learned.window.filter(|window| *window > 0), ..learned };
                (pool.shared, pool.shared_until) = (learned, now + 2 * HALF_LIFE);
            }
        }
    }

    /// Returns the values that this agent itself has learned about each group, for the other agents. Omits groups whose
    /// servers have sent no SYN-ACK recently.
    pub fn learned(&self, now: u64) -> Vec<GroupReport> {
        let own = |(group, pool): (&SocketAddrV4, &Pool)| GroupReport {
            group: *group,
            servers: pool.servers.clone(),
            learned: pool.own(now),
        };
        self.0.iter().map(own).filter(|own| own.learned != Learned::default()).collect()
    }

    /// Returns the minimum of each ability over all servers of a service, as far as they are known, and the time until
    /// which these minima are valid.
    pub fn of(&self, now: u64, service: &Service) -> (Ability, u64) {
        let pools = service.groups.iter().filter_map(|group| self.0.get(&group.address));
        pools.fold((Ability::ASSUMED, u64::MAX), |(ability, until), pool| {
            (ability.limited(&pool.all(now)), until.min(pool.until(now)))
        })
    }
}
