//! Plans writes to parser value sets. In the driver, a member has a value and a mask for each field, regardless of the
//! match kind in P4Info.

use sluice_p4runtime::entity::{Operation, value_set};
use sluice_p4runtime::fault::Outcome;
use sluice_p4runtime::proto::p4::v1 as p4;

use super::Planner;
use crate::bfrt;
use crate::proto::{TableKey, update::Type};
use crate::shadow::{Place, Value};

impl Planner<'_> {
    pub(super) fn value_set(&mut self, operation: Operation, entry: &p4::ValueSetEntry) -> Outcome {
        let loaded = self.loaded;
        let (set, members) = value_set::decode(&loaded.binding, operation, entry)?;
        let compiled = &loaded.program.value_sets[set.engine.index()];
        let key = |fields: Vec<(Vec<u8>, Vec<u8>)>| TableKey {
            fields: compiled
                .key
                .iter()
                .zip(fields)
                .map(|(id, (value, mask))| bfrt::ternary(*id, value, mask))
                .collect(),
        };
        let (members, keys): (Vec<_>, Vec<_>) =
            members.into_iter().map(|(member, fields)| (member, key(fields))).unzip();
        let place = Place::ValueSet(set.engine);
        let old = match self.shadow.get(&place).cloned() {
            Some(Value::ValueSet(_, keys)) => keys,
            _ => Vec::new(),
        };
        // Deletions precede insertions, because the set may be full.
        let insert =
            |key: &TableKey| bfrt::update(Type::Insert, bfrt::entry(compiled.id, key.clone(), Default::default()));
        let delete = |key: &TableKey| bfrt::update(Type::Delete, bfrt::key_only(compiled.id, key.clone()));
        for key in old.iter().filter(|key| !keys.contains(key)) {
            self.step(delete(key), Some(insert(key)));
        }
        for key in keys.iter().filter(|key| !old.contains(key)) {
            self.step(insert(key), Some(delete(key)));
        }
        let wire = p4::ValueSetEntry { members, ..entry.clone() };
        self.put(place, (!keys.is_empty()).then_some(Value::ValueSet(wire, keys)));
        Ok(())
    }
}
