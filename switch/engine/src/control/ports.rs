//! Stores which ports are down, because a group does not select members whose watch port is down.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::machine::TableState;
use crate::profile::{Bound, OneShot};

impl Engine {
    /// Records that a port is up or down; initially every port is up. From the next packet on, a member that watches
    /// the port is selected only while the port is up. A group in which no member can be selected runs no action, like
    /// an empty group.
    pub fn set_port(&mut self, port: u32, up: bool) {
        let down = &mut self.machine.ports_down;
        let changed = if up { down.remove(&port) } else { down.insert(port) };
        if !changed {
            return;
        }
        for ps in &mut self.machine.profiles {
            ps.rebuild_wheels(down, |group| group.members.iter().any(|m| m.watch_port == Some(port)));
        }
        for table in &mut self.machine.tables {
            for one_shot in one_shots(table) {
                if one_shot.written.members.iter().any(|m| m.watch_port == Some(port)) {
                    one_shot.rebuild_wheel(down);
                }
            }
        }
    }

    /// Returns the ports that are down.
    pub fn ports_down(&self) -> &BTreeSet<u32> {
        &self.machine.ports_down
    }
}

fn one_shots(table: &mut TableState) -> impl Iterator<Item = &mut OneShot> {
    table.bounds_mut().filter_map(|bound| match bound {
        Bound::OneShot(one_shot) => Some(&mut **one_shot),
        Bound::Call(_) | Bound::Member(_) | Bound::Group(_) => None,
    })
}
