//! Reads: the state copied while packets wait, in pieces if it is large, and turned into messages while they do not.

use prost::Message;

use crate::entity::{Look, Source, counter, digest, direct, meter, profile, register, replication, table, value_set};
use crate::fault::{Fault, Outcome};
use crate::proto::{LARGE, p4::v1 as p4};
use p4::entity::Entity;

/// Bytes that a read may have found before its further patterns are refused: a small request must not fill the memory.
const FULL: usize = 256 << 20;

/// Part of what a read found.
#[derive(Debug)]
pub enum Part {
    /// Entities of any kind.
    Entities(Vec<Entity>),
    /// Cells of a counter.
    Counters(counter::Cells),
    /// Cells of a register.
    Registers(register::Cells),
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Entities(entities) => entities.len(),
            Self::Counters(cells) => cells.data.len(),
            Self::Registers(cells) => cells.count,
        }
    }

    /// Bytes that it takes, about.
    fn size(&self) -> usize {
        match self {
            Self::Entities(entities) => entities.iter().map(|one| size_of_val(one) + one.encoded_len()).sum(),
            Self::Counters(cells) => size_of_val(cells.data.as_slice()),
            Self::Registers(cells) => cells.raw.len(),
        }
    }

    fn entity(&self, place: usize) -> p4::Entity {
        let entity = match self {
            Self::Entities(entities) => entities[place].clone(),
            Self::Counters(cells) => Entity::CounterEntry(cells.entity(place)),
            Self::Registers(cells) => Entity::RegisterEntry(cells.entity(place)),
        };
        p4::Entity { entity: Some(entity) }
    }
}

fn entities<T>(found: Vec<T>, kind: impl Fn(T) -> Entity) -> Vec<Part> {
    vec![Part::Entities(found.into_iter().map(kind).collect())]
}

/// Everything that `find` has for these patterns, and what went wrong with each of them.
pub fn all(patterns: &[p4::Entity], find: impl Fn(&p4::Entity) -> Outcome<Vec<Part>>) -> (Vec<Part>, Vec<Outcome>) {
    let (mut parts, mut held) = (Vec::new(), 0);
    let outcomes = patterns.iter().map(|pattern| {
        if held >= FULL {
            return Err(Fault::exhausted("the read has found 256 MiB already; ask for the rest in another one"));
        }
        let found = find(pattern)?;
        held += found.iter().map(Part::size).sum::<usize>();
        parts.extend(found);
        Ok(())
    });
    let outcomes = outcomes.collect();
    (parts, outcomes)
}

/// Everything that fits one pattern. Tables and arrays are read in several looks, everything else in one.
///
/// # Errors
/// When the pattern is wrong or names nothing.
pub fn snapshot(look: &impl Look, pattern: &p4::Entity) -> Outcome<Vec<Part>> {
    let pattern = pattern.entity.as_ref().ok_or_else(|| Fault::invalid("the entity to read is empty; give one"))?;
    Ok(match pattern {
        Entity::TableEntry(entry) => entities(table::read(look, entry)?, Entity::TableEntry),
        Entity::MeterEntry(entry) => entities(meter::read(look, entry)?, Entity::MeterEntry),
        Entity::DirectMeterEntry(entry) => entities(direct::read_meters(look, entry)?, Entity::DirectMeterEntry),
        Entity::CounterEntry(entry) => counter::read(look, entry)?.into_iter().map(Part::Counters).collect(),
        Entity::DirectCounterEntry(entry) => entities(direct::read_counters(look, entry)?, Entity::DirectCounterEntry),
        Entity::RegisterEntry(entry) => register::read(look, entry)?.into_iter().map(Part::Registers).collect(),
        other => look.look(|source| at_once(source, other))??,
    })
}

/// What is small enough to be read while packets wait.
fn at_once(source: &Source<'_>, pattern: &Entity) -> Outcome<Vec<Part>> {
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
        // "Read all extern instances" of a program that has none.
        Entity::ExternEntry(entry) if *entry == p4::ExternEntry::default() => Vec::new(),
        _ => return Err(Fault::unimplemented("v1model has no externs with entries of their own; leave them out")),
    })
}

/// The responses for what was found, each well below the size that clients refuse.
pub struct Responses {
    parts: std::vec::IntoIter<Part>,
    current: Option<(Part, usize)>,
}

impl Responses {
    /// Responses for these parts, in order.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts: parts.into_iter(), current: None }
    }

    fn next_entity(&mut self) -> Option<p4::Entity> {
        loop {
            if let Some((part, place)) = &mut self.current
                && *place < part.len()
            {
                *place += 1;
                return Some(part.entity(*place - 1));
            }
            self.current = Some((self.parts.next()?, 0));
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
            // A length prefix and a tag go with each entity.
            bytes += entity.encoded_len() + 6;
            response.entities.push(entity);
        }
        (!response.entities.is_empty()).then_some(response)
    }
}

/// Refuses what the whole read needs and the switch has not.
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
    fn a_read_that_has_found_much_finds_no_more() {
        let array = |_: &p4::Entity| {
            let raw = vec![0; FULL / 2 - 1];
            Ok(vec![Part::Registers(register::Cells {
                id: 7,
                start: 0,
                count: raw.len(),
                bytes: 1,
                raw,
                data: DataType::Bit(8),
            })])
        };
        let (parts, outcomes) = all(&vec![p4::Entity::default(); 5], array);
        assert_eq!(parts.len(), 3, "the last one begins below the limit");
        let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 2);
        assert!(refused.iter().all(|fault| fault.code == tonic::Code::ResourceExhausted));
    }

    #[test]
    fn large_arrays_come_in_pieces_below_the_limit_of_clients() {
        let count = 262_144;
        let raw = (0..count as u32).flat_map(|cell| u64::from(cell).to_be_bytes()).collect();
        let cells = register::Cells { id: 7, start: 0, count, bytes: 8, raw, data: DataType::Bit(64) };
        let empty = Part::Entities(Vec::new());
        let responses: Vec<_> = Responses::new(vec![empty, Part::Registers(cells)]).collect();
        assert!(responses.len() > 1);
        assert!(responses.iter().all(|response| response.encoded_len() < 2 << 20));
        let indices = responses.iter().flat_map(|response| &response.entities).map(|entity| match &entity.entity {
            Some(Entity::RegisterEntry(entry)) => entry.index.unwrap().index,
            other => panic!("{other:?}"),
        });
        assert!(indices.eq(0..count as i64));
    }
}
