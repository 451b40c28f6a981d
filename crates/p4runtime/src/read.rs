//! Reads of entities. Packets wait only while state is copied. Large tables and arrays are copied in pieces, between
//! which packets run. Packets also run while the messages are built from the copies.

use prost::Message;

use crate::entity::{
    Source, StateReader, counter, digest, direct, meter, profile, register, replication, table, value_set,
};
use crate::fault::{Fault, Outcome};
use crate::proto::{LARGE, p4::v1 as p4};
use p4::entity::Entity;

/// Bytes of results after which a read refuses further patterns, so that a small request cannot exhaust the memory.
const FULL: usize = 256 << 20;

/// A piece of the result of a read, in a compact form before messages are built from it.
#[derive(Debug)]
pub enum Fragment {
    /// Entities of any kind.
    Entities(Vec<Entity>),
    /// Consecutive cells of a counter.
    Counters(counter::Cells),
    /// Consecutive cells of a register array.
    Registers(register::Cells),
}

impl Fragment {
    fn len(&self) -> usize {
        match self {
            Self::Entities(entities) => entities.len(),
            Self::Counters(cells) => cells.data.len(),
            Self::Registers(cells) => cells.count,
        }
    }

    /// Returns the approximate memory that the fragment occupies, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Entities(entities) => entities.iter().map(|entity| size_of_val(entity) + entity.encoded_len()).sum(),
            Self::Counters(cells) => size_of_val(cells.data.as_slice()),
            Self::Registers(cells) => cells.raw.len(),
        }
    }

    fn entity(&self, position: usize) -> p4::Entity {
        let entity = match self {
            Self::Entities(entities) => entities[position].clone(),
            Self::Counters(cells) => Entity::CounterEntry(cells.entity(position)),
            Self::Registers(cells) => Entity::RegisterEntry(cells.entity(position)),
        };
        p4::Entity { entity: Some(entity) }
    }
}

fn entities<T>(messages: Vec<T>, kind: impl Fn(T) -> Entity) -> Vec<Fragment> {
    vec![Fragment::Entities(messages.into_iter().map(kind).collect())]
}

/// Calls `find` with each pattern. Returns the results of all patterns together, and one outcome for each pattern.
pub fn read_all(
    patterns: &[p4::Entity],
    find: impl Fn(&p4::Entity) -> Outcome<Vec<Fragment>>,
) -> (Vec<Fragment>, Vec<Outcome>) {
    let (mut fragments, mut total) = (Vec::new(), 0);
    let outcomes = patterns.iter().map(|pattern| {
        if total >= FULL {
            return Err(Fault::exhausted(
                "the results of this read exceed 256 MiB; read the other patterns in another request",
            ));
        }
        let matching = find(pattern)?;
        total += matching.iter().map(Fragment::size).sum::<usize>();
        fragments.extend(matching);
        Ok(())
    });
    let outcomes = outcomes.collect();
    (fragments, outcomes)
}

/// Returns the entities that match one pattern. Tables and arrays are read in several steps, between which packets run;
/// all other kinds of entity are read in one step.
///
/// # Errors
/// Fails when the pattern is malformed or names an entity that does not exist.
pub fn snapshot(reader: &impl StateReader, pattern: &p4::Entity) -> Outcome<Vec<Fragment>> {
    let pattern = pattern.entity.as_ref().ok_or_else(|| Fault::invalid("the entity to read is empty; give one"))?;
    Ok(match pattern {
        Entity::TableEntry(entry) => entities(table::read(reader, entry)?, Entity::TableEntry),
        Entity::MeterEntry(entry) => entities(meter::read(reader, entry)?, Entity::MeterEntry),
        Entity::DirectMeterEntry(entry) => entities(direct::read_meters(reader, entry)?, Entity::DirectMeterEntry),
        Entity::CounterEntry(entry) => counter::read(reader, entry)?.into_iter().map(Fragment::Counters).collect(),
        Entity::DirectCounterEntry(entry) => {
            entities(direct::read_counters(reader, entry)?, Entity::DirectCounterEntry)
        }
        Entity::RegisterEntry(entry) => register::read(reader, entry)?.into_iter().map(Fragment::Registers).collect(),
        other => reader.inspect(|source| read_in_one_step(source, other))??,
    })
}

/// Reads the kinds of entity that have few instances, which one step can copy.
fn read_in_one_step(source: &Source<'_>, pattern: &Entity) -> Outcome<Vec<Fragment>> {
    Ok(match pattern {
        Entity::ActionProfileMember(member) => {
            entities(profile::read_members(source, member)?, Entity::ActionProfileMember)
        }
        Entity::ActionProfileGroup(group) => entities(profile::read_groups(source, group)?, Entity::ActionProfileGroup),
        Entity::PacketReplicationEngineEntry(entry) => {
            entities(replication::read(source, entry)?, Entity::PacketReplicationEngineEntry)
        }
        Entity::ValueSetEntry(entry) => entities(value_set::read(source, entry)?, Entity::ValueSetEntry),
        Entity::DigestEntry(entry) => entities(digest::read(source, entry)?, Entity::DigestEntry),
        // A wildcard read of all externs. No program of this switch has externs with entries.
        Entity::ExternEntry(entry) if *entry == p4::ExternEntry::default() => Vec::new(),
        _ => return Err(Fault::unimplemented("v1model has no externs with entries of their own; leave them out")),
    })
}

/// An iterator of the `ReadResponse` messages for the result of a read, each well below the size that clients refuse.
pub struct Responses {
    fragments: std::vec::IntoIter<Fragment>,
    current: Option<(Fragment, usize)>,
}

impl Responses {
    /// Returns an iterator of responses, which contain the entities of these fragments in order.
    pub fn new(fragments: Vec<Fragment>) -> Self {
        Self { fragments: fragments.into_iter(), current: None }
    }

    fn next_entity(&mut self) -> Option<p4::Entity> {
        loop {
            if let Some((fragment, position)) = &mut self.current
                && *position < fragment.len()
            {
                *position += 1;
                return Some(fragment.entity(*position - 1));
            }
            self.current = Some((self.fragments.next()?, 0));
        }
    }
}

impl Iterator for Responses {
    type Item = p4::ReadResponse;

    fn next(&mut self) -> Option<p4::ReadResponse> {
        let mut response = p4::ReadResponse::default();
        let mut bytes = 0;
        while bytes < LARGE {
            let Some(entity) = self.next_entity() else { break };
            // In the encoded message, a tag and a length of together at most 6 bytes precede each entity.
            bytes += entity.encoded_len() + 6;
            response.entities.push(entity);
        }
        (!response.entities.is_empty()).then_some(response)
    }
}

/// Returns the error for requests that need a program with P4Info while none runs.
pub fn no_pipeline() -> Fault {
    Fault::precondition(
        "there is no pipeline yet; push one with SetForwardingPipelineConfig, or start the switch with --p4info",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typespec::DataType;

    #[test]
    fn a_read_above_the_limit_refuses_further_patterns() {
        let array = |_: &p4::Entity| {
            let raw = vec![0; FULL / 2 - 1];
            Ok(vec![Fragment::Registers(register::Cells {
                id: 7,
                start: 0,
                count: raw.len(),
                bytes: 1,
                raw,
                data: DataType::Bit(8),
            })])
        };
        let (fragments, outcomes) = read_all(&vec![p4::Entity::default(); 5], array);
        assert_eq!(fragments.len(), 3, "the third pattern begins below the limit");
        let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 2);
        assert!(refused.iter().all(|fault| fault.code == tonic::Code::ResourceExhausted));
    }

    #[test]
    fn large_arrays_are_split_into_messages_below_the_limit_of_clients() {
        let count = 262_144;
        let raw = (0..count as u32).flat_map(|cell| u64::from(cell).to_be_bytes()).collect();
        let cells = register::Cells { id: 7, start: 0, count, bytes: 8, raw, data: DataType::Bit(64) };
        let empty = Fragment::Entities(Vec::new());
        let responses: Vec<_> = Responses::new(vec![empty, Fragment::Registers(cells)]).collect();
        assert!(responses.len() > 1);
        assert!(responses.iter().all(|response| response.encoded_len() < 2 << 20));
        let indices = responses.iter().flat_map(|response| &response.entities).map(|entity| match &entity.entity {
            Some(Entity::RegisterEntry(entry)) => entry.index.unwrap().index,
            other => panic!("{other:?}"),
        });
        assert!(indices.eq(0..count as i64));
    }
}
