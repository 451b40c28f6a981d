//! Which ports are up, as far as groups watch them.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::machine::TableState;
use crate::profile::{Bound, OneShot};

impl Engine {
    /// Says that a port is up (every port is at first) or down. Members that watch it are back in the choice, or out of it,
    /// for the next packet on; a group all of whose members are out does nothing, as an empty one.
    pub fn set_port(&mut self, port: u32, up: bool) {
        let down = &mut self.machine.ports_down;
        let changed = if up { down.remove(&port) } else { down.insert(port) };
        if !changed {
            return;
        }
        for ps in &mut self.machine.profiles {
            ps.choose_anew(down, |group| group.members.iter().any(|m| m.watch_port == Some(port)));
        }
        for table in &mut self.machine.tables {
            for one_shot in one_shots(table) {
                if one_shot.written.members.iter().any(|m| m.watch_port == Some(port)) {
                    one_shot.spin_up(down);
                }
            }
        }
    }

    /// The ports that are down.
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
