//! Action profiles at run time: members, groups, and what an entry refers to.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::{Group, OneShotGroup, ProfileLimit, ProfileSize, Selection};
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
        let shares = self.written.members.iter().enumerate().map(|(i, m)| (i as u32, m.weight, m.watch_port));
        self.wheel = wheel(shares, down);
    }
}

#[derive(Debug, Clone)]
pub struct MemberState {
    pub id: u32,
    pub call: Call,
    /// Groups and entries that refer to it.
    pub users: u32,
}

#[derive(Debug, Clone)]
pub struct GroupState {
    pub written: Group,
    /// Index of a member, as often as it weighs; those whose watch port is down are left out.
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

    /// The action an entry stands for. `hash` or `rng` is asked only when there is a choice to make; an empty group gives none.
    #[inline]
    pub fn resolve<'a>(&'a self, bound: &'a Bound, rng: &mut Rng, hash: impl FnOnce() -> u64) -> Option<&'a Call> {
        let spin = |wheel: &[u32], hash: u64| match wheel.len() as u64 {
            0 => None,
            n => Some(wheel[(hash % n) as usize]),
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

/// Each index as often as it weighs, without those whose watch port is down.
pub fn wheel(shares: impl Iterator<Item = (u32, u32, Option<u32>)>, down: &BTreeSet<u32>) -> Vec<u32> {
    shares
        .filter(|(_, _, watch_port)| watch_port.is_none_or(|port| !down.contains(&port)))
        .flat_map(|(index, weight, _)| std::iter::repeat_n(index, weight as usize))
        .collect()
}
