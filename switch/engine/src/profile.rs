//! Action profiles at run time: members, groups, and what an entry refers to.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::{Group, OneShotGroup, ProfileLimit, ProfileSize, Selection};
use crate::handles::{Copies, Handles};
use crate::program::ActionId;
use crate::rng::Rng;

/// An action with its parameters' words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub action: ActionId,
    pub params: Box<[u64]>,
}

/// What an entry is bound to.
#[derive(Debug, Clone)]
pub enum Bound {
    Call(Call),
    /// Index in [`ProfileState::members`].
    Member(u32),
    /// Index in [`ProfileState::groups`].
    Group(u32),
    OneShot(Box<OneShot>),
}

impl Bound {
    /// What it adds to its profile's groups.
    pub fn size(&self) -> ProfileSize {
        match self {
            Bound::OneShot(group) => ProfileSize::of_one_shot(&group.written.members),
            Bound::Call(_) | Bound::Member(_) | Bound::Group(_) => ProfileSize::default(),
        }
    }
}

/// A one-shot group: the entry's own.
#[derive(Debug, Clone)]
pub struct OneShot {
    pub written: OneShotGroup,
    pub calls: Vec<Call>,
    /// Index of a call, as often as it weighs; those whose watch port is down are left out.
    pub wheel: Vec<u32>,
}

impl OneShot {
    /// Chooses anew who can be chosen.
    pub fn spin_up(&mut self, down: &BTreeSet<u32>) {
        let members = (0..).zip(&self.written.members).filter(|(_, m)| is_up(m.watch_port, down));
        self.wheel = members.flat_map(|(i, m)| std::iter::repeat_n(i, m.weight as usize)).collect();
    }
}

#[derive(Debug, Clone)]
pub struct MemberState {
    pub id: u32,
    pub call: Call,
    /// Groups and entries that refer to it.
    pub users: u32,
    pub copies: Copies,
}

#[derive(Debug, Clone)]
pub struct GroupState {
    pub written: Group,
    /// Index of a member, as often as it weighs, by handle; those whose watch port is down are left out.
    pub wheel: Vec<u32>,
    /// Entries that refer to it.
    pub users: u32,
}

/// Members and groups of one profile. Freed places are reused.
#[derive(Default)]
pub struct ProfileState {
    pub members: Vec<Option<MemberState>>,
    pub free_members: Vec<u32>,
    pub member_at: BTreeMap<u32, u32>,
    pub groups: Vec<Option<GroupState>>,
    pub free_groups: Vec<u32>,
    pub group_at: BTreeMap<u32, u32>,
    pub handles: Handles,
    /// What groups, one-shot ones included, hold together.
    pub size: ProfileSize,
    pub limit: Option<ProfileLimit>,
}

/// Puts a value into a free place.
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

    /// A group's members that can be chosen, each as often as it weighs, in the order of their handles.
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

    /// Has the groups of which this is true choose anew who can be chosen.
    pub fn choose_anew(&mut self, down: &BTreeSet<u32>, which: impl Fn(&Group) -> bool) {
        for at in 0..self.groups.len() {
            let wheel = self.groups[at].as_ref().filter(|g| which(&g.written)).map(|g| self.wheel(&g.written, down));
            if let (Some(group), Some(wheel)) = (&mut self.groups[at], wheel) {
                group.wheel = wheel;
            }
        }
    }

    /// The action an entry stands for. `hash` or `rng` is asked only when there is a choice to make; an empty group gives none.
    #[inline]
    pub fn resolve<'a>(&'a self, bound: &'a Bound, rng: &mut Rng, hash: impl FnOnce() -> u64) -> Option<&'a Call> {
        // BMv2 keeps 32 bits of the hash.
        let spin = |wheel: &[u32], hash: u64| match wheel.len() {
            0 => None,
            n => Some(wheel[hash as u32 as usize % n]),
        };
        match bound {
            Bound::Call(call) => Some(call),
            Bound::Member(m) => self.member(*m).map(|m| &m.call),
            Bound::Group(g) => {
                let group = self.group(*g)?;
                self.member(spin(&group.wheel, hash())?).map(|m| &m.call)
            }
            Bound::OneShot(group) => {
                let number = match group.written.selection {
                    Selection::Default | Selection::Hash => hash(),
                    Selection::Random => rng.between(0, (group.wheel.len() as u64).saturating_sub(1)),
                };
                group.calls.get(spin(&group.wheel, number)? as usize)
            }
        }
    }
}

/// Whether the port that a member watches, if any, is up.
fn is_up(watch_port: Option<u32>, down: &BTreeSet<u32>) -> bool {
    watch_port.is_none_or(|port| !down.contains(&port))
}
