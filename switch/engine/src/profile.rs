//! Action profiles at run time: their members and groups, and the references from entries to actions, members and
//! groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::{Group, OneShotGroup, ProfileLimit, ProfileSize, Selection};
use crate::handles::{Copies, Handles};
use crate::program::ActionId;
use crate::rng::Rng;

/// An action with the values of its parameters, as 64-bit words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub action: ActionId,
    pub params: Box<[u64]>,
}

/// The action, member or group to which an entry or a default entry refers.
#[derive(Debug, Clone)]
pub enum Bound {
    Call(Call),
    /// A member, as an index in [`ProfileState::members`].
    Member(u32),
    /// A group, as an index in [`ProfileState::groups`].
    Group(u32),
    OneShot(Box<OneShot>),
}

impl Bound {
    /// Returns the weights and members that the entry adds to the total size of the action profile's groups. Only an
    /// entry with a one-shot group adds to this size.
    pub fn size(&self) -> ProfileSize {
        match self {
            Bound::OneShot(group) => ProfileSize::of_one_shot(&group.written.members),
            Bound::Call(_) | Bound::Member(_) | Bound::Group(_) => ProfileSize::default(),
        }
    }
}

/// A one-shot group, which is a group that belongs to a single entry.
#[derive(Debug, Clone)]
pub struct OneShot {
    pub written: OneShotGroup,
    pub calls: Vec<Call>,
    /// Indices in `calls`, from which a packet's action is selected. Each index is repeated according to its member's
    /// weight. Members whose watch port is down are omitted.
    pub wheel: Vec<u32>,
}

impl OneShot {
    /// Rebuilds `wheel` with the eligible members after a port has changed its state. `down` contains the ports that
    /// are down.
    pub fn rebuild_wheel(&mut self, down: &BTreeSet<u32>) {
        let members = (0..).zip(&self.written.members).filter(|(_, m)| is_up(m.watch_port, down));
        self.wheel = members.flat_map(|(i, m)| std::iter::repeat_n(i, m.weight as usize)).collect();
    }
}

#[derive(Debug, Clone)]
pub struct MemberState {
    pub id: u32,
    pub call: Call,
    /// The number of groups and entries that refer to the member.
    pub users: u32,
    pub copies: Copies,
}

#[derive(Debug, Clone)]
pub struct GroupState {
    pub written: Group,
    /// Indices of members, ordered by handle. Each index is repeated according to the member's weight. Members whose
    /// watch port is down are omitted.
    pub wheel: Vec<u32>,
    /// The number of entries that refer to the group.
    pub users: u32,
}

/// The members and groups of one action profile. Indices of deleted members and groups are reused.
#[derive(Default)]
pub struct ProfileState {
    pub members: Vec<Option<MemberState>>,
    pub free_members: Vec<u32>,
    pub member_at: BTreeMap<u32, u32>,
    pub groups: Vec<Option<GroupState>>,
    pub free_groups: Vec<u32>,
    pub group_at: BTreeMap<u32, u32>,
    pub handles: Handles,
    /// The size of all groups, including one-shot groups.
    pub size: ProfileSize,
    pub limit: Option<ProfileLimit>,
}

/// Stores a value at a free index of the list, or appends it. Returns the index.
pub fn place<T>(list: &mut Vec<Option<T>>, free: &mut Vec<u32>, value: T) -> u32 {
    match free.pop() {
        Some(at) => {
            list[at as usize] = Some(value);
            at
        }
        None => {
            list.push(Some(value));
            list.len() as u32 - 1
        }
    }
}

impl ProfileState {
    pub fn member(&self, at: u32) -> Option<&MemberState> {
        self.members.get(at as usize)?.as_ref()
    }
    pub fn group(&self, at: u32) -> Option<&GroupState> {
        self.groups.get(at as usize)?.as_ref()
    }

    /// Returns the indices of a group's eligible members, ordered by handle. Each index is repeated according to the
    /// member's weight.
    pub fn wheel(&self, group: &Group, down: &BTreeSet<u32>) -> Vec<u32> {
        let mut order = Vec::new();
        for m in group.members.iter().filter(|m| is_up(m.watch_port, down)) {
            let place = self.member_at.get(&m.member).copied();
            if let Some((place, member)) = place.and_then(|place| Some((place, self.member(place)?))) {
                order.extend(member.copies.handles.iter().take(m.weight as usize).map(|&handle| (handle, place)));
            }
        }
        order.sort_unstable();
        order.into_iter().map(|(_, place)| place).collect()
    }

    /// Rebuilds the lists of eligible members of all groups for which `which` returns true.
    pub fn rebuild_wheels(&mut self, down: &BTreeSet<u32>, which: impl Fn(&Group) -> bool) {
        for at in 0..self.groups.len() {
            let wheel = self.groups[at].as_ref().filter(|g| which(&g.written)).map(|g| self.wheel(&g.written, down));
            if let (Some(group), Some(wheel)) = (&mut self.groups[at], wheel) {
                group.wheel = wheel;
            }
        }
    }

    /// Returns the action that an entry runs, or `None` if its group is empty. `hash` or `rng` is used only if the
    /// entry refers to a group or contains a one-shot group.
    #[inline]
    pub fn resolve<'a>(&'a self, bound: &'a Bound, rng: &mut Rng, hash: impl FnOnce() -> u64) -> Option<&'a Call> {
        // BMv2 uses only 32 bits of the hash.
        let pick = |wheel: &[u32], hash: u64| match wheel.len() {
            0 => None,
            n => Some(wheel[hash as u32 as usize % n]),
        };
        match bound {
            Bound::Call(call) => Some(call),
            Bound::Member(m) => self.member(*m).map(|m| &m.call),
            Bound::Group(g) => {
                let group = self.group(*g)?;
                self.member(pick(&group.wheel, hash())?).map(|m| &m.call)
            }
            Bound::OneShot(group) => {
                let number = match group.written.selection {
                    Selection::Default | Selection::Hash => hash(),
                    Selection::Random => rng.between(0, (group.wheel.len() as u64).saturating_sub(1)),
                };
                group.calls.get(pick(&group.wheel, number)? as usize)
            }
        }
    }
}

/// Returns whether the port that a member watches is up. The result is true for a member without a watch port.
fn is_up(watch_port: Option<u32>, down: &BTreeSet<u32>) -> bool {
    watch_port.is_none_or(|port| !down.contains(&port))
}
