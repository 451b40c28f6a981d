//! The objects of P4Info of one kind, indexed by their P4Info ids.

use std::collections::HashMap;

use super::error::BindError;
use crate::proto::p4::config::v1 as p4info;

/// Objects of one kind that are resolved against the program, in the order of P4Info and indexed by P4Info id.
#[derive(Debug)]
pub struct Objects<T> {
    list: Vec<T>,
    by_id: HashMap<u32, usize>,
}

impl<T> Objects<T> {
    /// Returns the object with this P4Info id.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.by_id.get(&id).map(|place| &self.list[*place])
    }

    /// Returns all objects in the order of P4Info.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.by_id.get(&id).map(|place| &mut self.list[*place])
    }

    /// Resolves every P4Info object of one kind with `bind`. Fails for a missing preamble or a duplicate id, and
    /// when `bind` fails.
    pub(super) fn bind<I>(
        infos: &[I],
        preamble: impl Fn(&I) -> Option<&p4info::Preamble>,
        mut bind: impl FnMut(&I, &p4info::Preamble) -> Result<T, BindError>,
    ) -> Result<Self, BindError> {
        let mut objects = Self { list: Vec::with_capacity(infos.len()), by_id: HashMap::new() };
        for info in infos {
            let preamble =
                preamble(info).ok_or_else(|| BindError::Malformed("an object has no preamble".to_owned()))?;
            if objects.by_id.insert(preamble.id, objects.list.len()).is_some() {
                return Err(BindError::Malformed(format!("two objects have the id {:#x}", preamble.id)));
            }
            objects.list.push(bind(info, preamble)?);
        }
        Ok(objects)
    }
}
