//! The abilities of a group's servers, as their SYN-ACKs show them. Agents announce to clients what all servers of
//! the groups can do.
//!
//! What an agent learns itself counts for five to ten minutes. What other agents have learned comes through the
//! controller, and counts until the controller repeats or replaces it, for at most ten minutes. Both end when the
//! group's servers change.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::config::Service;
use crate::wire::{Segment, SynOptions};

/// The window scale that every agent announces to every client that offers scaling, so that any agent can continue
/// any handshake. It is the scale of Linux's default buffers. A larger one would round windows more, and windows of 8
/// MB suffice. The translation shifts windows of servers with other scales.
pub const SCALE: u8 = 7;
/// Nanoseconds after which learned values begin to expire; after twice as long they are forgotten.
pub const HALF_LIFE: u64 = 300_000_000_000;
/// The MSS in bytes of a host whose SYN announces none (RFC 9293, section 3.7.1).
pub const DEFAULT_MSS: u16 = 536;

/// What an agent announces to clients, because all servers of a service can do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ability {
    /// The smallest MSS of the servers, in bytes.
    pub mss: u16,
    /// Whether all servers permit SACK.
    pub sack: bool,
    /// The smallest initial window of the servers in bytes, never 0. A window larger than that of the selected server
    /// would have to shrink.
    pub window: u16,
}

impl Ability {
    /// The abilities assumed before a server has answered, which are also the most that is announced: Ethernet's MSS.
    pub const ASSUMED: Ability = Ability { mss: 1460, sack: true, window: u16::MAX };

    fn limited(self, learned: &Learned) -> Ability {
        Ability {
            mss: self.mss.min(learned.mss.unwrap_or(u16::MAX)),
            sack: self.sack && learned.sack.unwrap_or(true),
            window: self.window.min(learned.window.unwrap_or(u16::MAX)),
        }
    }
}

/// What the SYN-ACKs of a group's servers have shown: the least of each ability. A field that none of them could show
/// is absent.
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
    /// The smallest scale of those that use it.
    pub scale: Option<u8>,
}

impl Learned {
    /// Returns what one SYN-ACK shows, which answers a SYN with these options.
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

    /// Returns the lesser of both for each ability.
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

/// What an agent has learned about a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// The group's address.
    pub group: SocketAddrV4,
    /// The servers that it applies to, by their numbers in the data plane.
    pub servers: Vec<u16>,
    /// What their SYN-ACKs have shown.
    pub learned: Learned,
}

/// The learned abilities of a group's current servers.
#[derive(Debug, Default)]
struct Pool {
    servers: Vec<u16>,
    /// Learned since the time `since`, and in the half-life before it.
    recent: Learned,
    former: Learned,
    since: u64,
    /// Learned by other agents, and the time at which that expires.
    shared: Learned,
    shared_until: u64,
}

impl Pool {
    fn new(servers: Vec<u16>) -> Pool {
        Pool { servers, ..Pool::default() }
    }

    /// Returns what this agent has learned and that still counts.
    fn own(&self, now: u64) -> Learned {
        match now.saturating_sub(self.since) / HALF_LIFE {
            0 => self.recent.least(self.former),
            1 => self.recent,
            _ => Learned::default(),
        }
    }

    /// Returns what this agent and the other agents have learned and that still counts.
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

    /// The time at which the next of the learned values expires.
    fn until(&self, now: u64) -> u64 {
        let halves = [self.since + HALF_LIFE, self.since + 2 * HALF_LIFE, self.shared_until];
        halves.into_iter().filter(|end| *end > now).min().unwrap_or(u64::MAX)
    }
}

/// The learned abilities of each group, by the group's address.
#[derive(Debug, Default)]
pub struct Pools(HashMap<SocketAddrV4, Pool>);

impl Pools {
    /// Sets the groups in use and their servers. Forgets everything about a group whose servers change.
    pub fn configure<'s>(&mut self, services: impl Iterator<Item = &'s Arc<Service>>) {
        let mut former = std::mem::take(&mut self.0);
        for group in services.flat_map(|service| &service.groups) {
            let mut servers = group.servers.clone();
            servers.sort_unstable();
            let same = former.remove(&group.address).filter(|pool| pool.servers == servers);
            self.0.insert(group.address, same.unwrap_or_else(|| Pool::new(servers)));
        }
    }

    /// Learns from a SYN-ACK of a group's server to a SYN with these options. Returns whether the combined abilities
    /// have changed.
    pub fn learn(&mut self, now: u64, group: SocketAddrV4, offered: &SynOptions, answer: &Segment<'_>) -> bool {
        let Some(pool) = self.0.get_mut(&group) else { return false };
        let before = pool.all(now);
        pool.learn(Learned::of(offered, answer), now);
        pool.all(now) != before
    }

    /// Replaces what other agents have learned. Reports about other servers than the current ones are ignored.
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

    /// Returns what this agent itself has learned about each group, for the other agents. Groups without a recent
    /// SYN-ACK are omitted.
    pub fn learned(&self, now: u64) -> Vec<GroupReport> {
        let own = |(group, pool): (&SocketAddrV4, &Pool)| GroupReport {
            group: *group,
            servers: pool.servers.clone(),
            learned: pool.own(now),
        };
        self.0.iter().map(own).filter(|own| own.learned != Learned::default()).collect()
    }

    /// Returns the least abilities of all servers of a service, as far as they are known, and the time until which
    /// they hold.
    pub fn of(&self, now: u64, service: &Service) -> (Ability, u64) {
        let pools = service.groups.iter().filter_map(|group| self.0.get(&group.address));
        pools.fold((Ability::ASSUMED, u64::MAX), |(ability, until), pool| {
            (ability.limited(&pool.all(now)), until.min(pool.until(now)))
        })
    }
}
