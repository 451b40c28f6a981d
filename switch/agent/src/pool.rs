//! What servers can do, as their SYN-ACKs tell.

use std::collections::HashMap;
use std::net::SocketAddrV4;

use crate::config::Service;
use crate::wire::{RawOffer, Segment};

/// The most that can be expected of servers: what clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ability {
    /// Largest segment that all take.
    pub mss: u16,
    /// Smallest window scale among them.
    pub scale: u8,
    /// Whether all permit SACK.
    pub sack: bool,
    /// Smallest window that one begins with. A larger one than the server's would have to shrink when the server is chosen.
    pub window: u16,
}

impl Ability {
    /// What is assumed before a server has spoken, and the most that clients are told: Ethernet's MSS, and the window scale of
    /// Linux's default buffers. A larger scale tells windows less exactly, and 8 MB are enough.
    const ASSUMED: Ability = Ability { mss: 1460, scale: 7, sack: true, window: u16::MAX };

    fn least(self, other: Ability) -> Ability {
        Ability {
            mss: self.mss.min(other.mss),
            scale: self.scale.min(other.scale),
            sack: self.sack && other.sack,
            window: self.window.min(other.window),
        }
    }
}

/// What has been learned of each group, by its address.
#[derive(Debug, Default)]
pub struct Pools(HashMap<SocketAddrV4, Ability>);

impl Pools {
    /// Learns from a SYN-ACK of a group's server. Only what was offered counts as missing. True when something is new.
    pub fn learn(&mut self, group: SocketAddrV4, offered: &RawOffer, answer: &Segment<'_>) -> bool {
        let (window, answer) = (answer.window(), answer.offer());
        let known = self.0.entry(group).or_insert(Ability::ASSUMED);
        let shown = Ability {
            mss: answer.mss.unwrap_or(536),
            scale: if offered.scale.is_some() { answer.scale.unwrap_or(0) } else { known.scale },
            sack: answer.sack || !offered.sack,
            window,
        };
        let before = *known;
        *known = known.least(shown);
        *known != before
    }

    /// What all servers of a service's groups can do, as far as it is known.
    pub fn of(&self, service: &Service) -> Ability {
        let known = service.groups.iter().filter_map(|group| self.0.get(&group.address).copied());
        known.fold(Ability::ASSUMED, Ability::least)
    }
}
