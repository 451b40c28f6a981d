//! What the present servers of a group can do, as their SYN-ACKs show. Agents offer clients the least of it.
//!
//! What an agent learns itself ages: it counts for five to ten minutes. What other agents have learned comes through the controller
//! and counts until that repeats or replaces it, for ten minutes at most. Both end when the group's servers change.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::config::Service;
use crate::wire::{RawOffer, Segment};

/// The window scale that every agent announces to every client that offers scaling, so that any agent can go on with any handshake. It is
/// that of Linux's default buffers; a larger one rounds windows more, and 8 MB are enough. The translation shifts windows of
/// servers with other scales.
pub const SCALE: u8 = 7;
/// Nanoseconds after which what was learned begins to age; after twice as long it is forgotten.
pub const HALF_LIFE: u64 = 300_000_000_000;
/// The MSS of an end whose SYN has none (RFC 9293, section 3.7.1).
pub const DEFAULT_MSS: u16 = 536;

/// What an agent offers clients, since all servers of a service can do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ability {
    /// Bytes of the largest segment that all take.
    pub mss: u16,
    /// Whether all permit SACK.
    pub sack: bool,
    /// Bytes of the smallest window that one begins with, never 0. A larger one than the server's would have to shrink when the
    /// server is chosen.
    pub window: u16,
}

impl Ability {
    /// What is assumed before a server has answered, and the most that is offered: Ethernet's MSS.
    pub const ASSUMED: Ability = Ability { mss: 1460, sack: true, window: u16::MAX };

    fn limited(self, learned: &Learned) -> Ability {
        Ability {
            mss: self.mss.min(learned.mss.unwrap_or(u16::MAX)),
            sack: self.sack && learned.sack.unwrap_or(true),
            window: self.window.min(learned.window.unwrap_or(u16::MAX)),
        }
    }
}

/// What SYN-ACKs of a group's servers have shown: the least of them all. A field that none of them could show is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Learned {
    /// Bytes of the largest segment.
    pub mss: Option<u16>,
    /// Bytes of the initial window, never 0: a SYN-ACK with a closed window says nothing of the window that follows (SYNPROXY of
    /// Linux sends such ones).
    pub window: Option<u16>,
    /// Whether all that were offered SACK permit it.
    pub sack: Option<bool>,
    /// Whether all that were offered window scaling scale.
    pub scales: Option<bool>,
    /// The smallest scale of those that do.
    pub scale: Option<u8>,
}

impl Learned {
    /// What one SYN-ACK shows that answers a SYN with this offer.
    fn of(offered: &RawOffer, answer: &Segment<'_>) -> Learned {
        let (window, answer) = (answer.window(), answer.offer());
        Learned {
            mss: Some(answer.mss.unwrap_or(DEFAULT_MSS)),
            window: (window > 0).then_some(window),
            sack: offered.sack.then_some(answer.sack),
            scales: offered.scale.map(|_| answer.scale.is_some()),
            scale: answer.scale.filter(|_| offered.scale.is_some()),
        }
    }

    /// The least of both.
    #[must_use]
    pub fn least(self, other: Learned) -> Learned {
        fn min<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
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

/// What another agent has learned of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The group's address.
    pub group: SocketAddrV4,
    /// The servers that it is about, by the data plane's numbers.
    pub servers: Vec<u16>,
    /// What they have shown.
    pub learned: Learned,
}

/// A group's present servers, and what is known of them.
#[derive(Debug, Default)]
struct Pool {
    servers: Vec<u16>,
    /// What was learned since `since`, and in the half-life before.
    recent: Learned,
    former: Learned,
    since: u64,
    /// What other agents have learned, and when that ends.
    shared: Learned,
    shared_until: u64,
}

impl Pool {
    fn new(servers: Vec<u16>) -> Pool {
        Pool { servers, ..Pool::default() }
    }

    /// What this agent has learned that still counts.
    fn own(&self, now: u64) -> Learned {
        match now.saturating_sub(self.since) / HALF_LIFE {
            0 => self.recent.least(self.former),
            1 => self.recent,
            _ => Learned::default(),
        }
    }

    /// The same with what others have learned.
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

    /// When what counts changes by itself next.
    fn until(&self, now: u64) -> u64 {
        let halves = [self.since + HALF_LIFE, self.since + 2 * HALF_LIFE, self.shared_until];
        halves.into_iter().filter(|end| *end > now).min().unwrap_or(u64::MAX)
    }
}

/// What was learned of each group, by its address.
#[derive(Debug, Default)]
pub struct Pools(HashMap<SocketAddrV4, Pool>);

impl Pools {
    /// Takes the groups in use and their servers. Of a group whose servers change all is forgotten.
    pub fn configure<'s>(&mut self, services: impl Iterator<Item = &'s Arc<Service>>) {
        let mut former = std::mem::take(&mut self.0);
        for group in services.flat_map(|service| &service.groups) {
            let mut servers = group.servers.clone();
            servers.sort_unstable();
            let same = former.remove(&group.address).filter(|pool| pool.servers == servers);
            self.0.insert(group.address, same.unwrap_or_else(|| Pool::new(servers)));
        }
    }

    /// Learns from a SYN-ACK of a group's server that answers a SYN with this offer. True when what counts has changed.
    pub fn learn(&mut self, now: u64, group: SocketAddrV4, offered: &RawOffer, answer: &Segment<'_>) -> bool {
        let Some(pool) = self.0.get_mut(&group) else { return false };
        let before = pool.all(now);
        pool.learn(Learned::of(offered, answer), now);
        pool.all(now) != before
    }

    /// Takes what other agents have learned, in place of what they had before. What is about other servers is left out.
    pub fn share(&mut self, now: u64, shared: Vec<Shared>) {
        for pool in self.0.values_mut() {
            (pool.shared, pool.shared_until) = (Learned::default(), 0);
        }
        for Shared { group, mut servers, learned } in shared {
            servers.sort_unstable();
            if let Some(pool) = self.0.get_mut(&group).filter(|pool| pool.servers == servers) {
                let learned = Learned { window: learned.window.filter(|window| *window > 0), ..learned };
                (pool.shared, pool.shared_until) = (learned, now + 2 * HALF_LIFE);
            }
        }
    }

    /// What this agent itself has learned of each group, for the other agents. Groups without a recent SYN-ACK are left out.
    pub fn learned(&self, now: u64) -> Vec<Shared> {
        let own = |(group, pool): (&SocketAddrV4, &Pool)| Shared {
            group: *group,
            servers: pool.servers.clone(),
            learned: pool.own(now),
        };
        self.0.iter().map(own).filter(|own| own.learned != Learned::default()).collect()
    }

    /// What all servers of a service's groups can do, as far as it is known, and until when that holds.
    pub fn of(&self, now: u64, service: &Service) -> (Ability, u64) {
        let pools = service.groups.iter().filter_map(|group| self.0.get(&group.address));
        pools.fold((Ability::ASSUMED, u64::MAX), |(ability, until), pool| {
            (ability.limited(&pool.all(now)), until.min(pool.until(now)))
        })
    }
}
