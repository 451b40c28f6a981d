//! Reads of entities. The shadow (the gateway's copy of what clients wrote) supplies the entities, the driver supplies
//! counts and cells.

use std::collections::{BTreeSet, HashMap};

use prost::Message;
use sluice_engine::TableId;
use sluice_p4runtime::binding::{CounterBinding, MeterBinding, RegisterBinding, TableBinding};
use sluice_p4runtime::entity::{cell_index, counter, replication, table, unknown};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::matches;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::translation::NewName;
use tonic::Code;

use crate::bfrt;
use crate::client::Driver;
use crate::idle;
use crate::load::Loaded;
use crate::plan::direct::no_colours;
use crate::prefetch::{Prefetched, index_of};
use crate::program::Match;
use crate::proto::{self, TableData, TableFlags, entity as driver_entity};
use crate::shadow::{Entry, Place, Shadow, Value};
use p4::entity::Entity;

/// Reads the entities for the patterns of a read request.
pub struct Reader<'a> {
    /// The program that controllers use.
    pub loaded: &'a Loaded,
    /// The connection to the driver.
    pub driver: &'a Driver,
    /// The pipes over which the values of a register cell are summed.
    pub pipes: &'a [u32],
    /// The cells that were read in advance for all patterns of the request.
    pub prefetched: &'a Prefetched,
}

/// A function that locks the shadow (the gateway's copy of what clients wrote) and passes it to another function.
pub trait WithShadow: Fn(&mut dyn FnMut(&Shadow)) {}
impl<T: Fn(&mut dyn FnMut(&Shadow))> WithShadow for T {}

/// Reads the entities for one pattern.
impl Reader<'_> {
    /// Returns the entities that match a pattern.
    ///
    /// # Errors
    /// Fails when the pattern is malformed, or when the driver does not reply.
    pub async fn read(&self, with_shadow: impl WithShadow + Send + Sync, pattern: &p4::Entity) -> Outcome<Vec<Entity>> {
        let pattern = pattern.entity.as_ref();
        match pattern.ok_or_else(|| Fault::invalid("the entity to read is empty; give one"))? {
            Entity::TableEntry(entry) => self.table_entries(with_shadow, entry).await,
            Entity::DirectCounterEntry(entry) => self.direct_counters(with_shadow, entry).await,
            Entity::RegisterEntry(entry) => self.registers(entry).await,
            Entity::CounterEntry(entry) => self.counters(entry).await,
            Entity::MeterEntry(entry) => self.meters(with_shadow, entry),
            Entity::ActionProfileMember(member) => Ok(members(&with_shadow, member)),
            Entity::ActionProfileGroup(group) => Ok(groups(&with_shadow, group)),
            Entity::DigestEntry(entry) => self.digests(with_shadow, entry),
            Entity::DirectMeterEntry(entry) => self.direct_meters(with_shadow, entry),
            Entity::ValueSetEntry(entry) => self.value_sets(with_shadow, entry),
            Entity::PacketReplicationEngineEntry(entry) => copies(&with_shadow, entry),
            Entity::ExternEntry(entry) if *entry == p4::ExternEntry::default() => Ok(Vec::new()),
            Entity::ExternEntry(_) => Err(Fault::unimplemented(
                "the gateway reads no externs of a program's own: P4Runtime has no messages for them; leave them out",
            )),
        }
    }

    async fn table_entries(&self, with_shadow: impl WithShadow, pattern: &p4::TableEntry) -> Outcome<Vec<Entity>> {
        if pattern.meter_counter_data.is_some() {
            return Err(no_colours());
        }
        let mut answer = Vec::new();
        for table in self.tables(pattern)? {
            if pattern.is_default_action {
                answer.push(Entity::TableEntry(self.default_entry(&with_shadow, table)));
                continue;
            }
            let entries =
                self.select(&with_shadow, table, pattern).map_err(|fault| fault.within(&table::place(table)))?;
            if pattern.time_since_last_hit.is_some() && pattern.table_id != 0 && !table.idle_timeout {
                return Err(table::no_idle_timeouts(table));
            }
            let counts = pattern.counter_data.is_some() && table.counter.is_some();
            let ages = pattern.time_since_last_hit.is_some() && table.idle_timeout;
            let current = match counts || ages {
                true => self.current(table.engine, &entries).await?,
                false => HashMap::new(),
            };
            let compiled = &self.loaded.program.tables[table.engine.index()];
            answer.extend(entries.into_iter().map(|entry| {
                let data = current.get(&entry.key.encode_to_vec());
                let age = || idle::since_last_hit(entry.wire.idle_timeout_ns, compiled.time_to_live, data);
                Entity::TableEntry(p4::TableEntry {
                    counter_data: data.filter(|_| counts).map(|data| count_of(compiled, data)),
                    time_since_last_hit: if ages { age() } else { None },
                    meter_config: pattern.meter_config.and(entry.wire.meter_config),
                    ..entry.wire
                })
            }));
        }
        Ok(answer)
    }

    async fn direct_counters(
        &self,
        with_shadow: impl WithShadow,
        pattern: &p4::DirectCounterEntry,
    ) -> Outcome<Vec<Entity>> {
        let mut answer = Vec::new();
        for (table, entries) in
            self.owners(&with_shadow, pattern.table_entry.as_ref(), |table| table.counter.is_some(), "direct counter")?
        {
            let compiled = &self.loaded.program.tables[table.engine.index()];
            let current = self.current(table.engine, &entries).await?;
            answer.extend(entries.into_iter().map(|entry| {
                let data = current.get(&entry.key.encode_to_vec());
                let data = Some(data.map(|data| count_of(compiled, data)).unwrap_or_default());
                let table_entry = Some(identity(entry.wire));
                Entity::DirectCounterEntry(p4::DirectCounterEntry { table_entry, data })
            }));
        }
        Ok(answer)
    }

    fn direct_meters(&self, with_shadow: impl WithShadow, pattern: &p4::DirectMeterEntry) -> Outcome<Vec<Entity>> {
        if pattern.counter_data.is_some() {
            return Err(no_colours());
        }
        let owners =
            self.owners(&with_shadow, pattern.table_entry.as_ref(), |table| table.meter.is_some(), "direct meter")?;
        let entity = |entry: Entry| {
            let config = entry.wire.meter_config;
            let table_entry = Some(identity(entry.wire));
            Entity::DirectMeterEntry(p4::DirectMeterEntry { table_entry, config, counter_data: None })
        };
        Ok(owners.into_iter().flat_map(|(_, entries)| entries).map(entity).collect())
    }

    /// Returns the entries that match a pattern, for each table for which `has_resource` returns true: the tables with
    /// direct counters, or those with direct meters. `what` is the name of the counters or meters in error messages.
    fn owners(
        &self,
        with_shadow: &impl WithShadow,
        pattern: Option<&p4::TableEntry>,
        has_resource: impl Fn(&TableBinding) -> bool,
        what: &str,
    ) -> Outcome<Vec<(&TableBinding, Vec<Entry>)>> {
        let pattern = pattern.cloned().unwrap_or_default();
        if pattern.is_default_action {
            return Err(Fault::unimplemented(format!(
                "the gateway cannot read a {what} of a default action; name an entry"
            )));
        }
        let mut owners = Vec::new();
        for table in self.tables(&pattern)? {
            if !has_resource(table) {
                if pattern.table_id != 0 {
                    return Err(table::lacks(table, what));
                }
                continue;
            }
            let entries =
                self.select(with_shadow, table, &pattern).map_err(|fault| fault.within(&table::place(table)))?;
            if entries.is_empty() && !pattern.r#match.is_empty() {
                let text = "there is no entry with this key; INSERT it, or read the table for its keys";
                return Err(Fault::not_found(text).within(&table::place(table)));
            }
            owners.push((table, entries));
        }
        Ok(owners)
    }

    fn value_sets(&self, with_shadow: impl WithShadow, pattern: &p4::ValueSetEntry) -> Outcome<Vec<Entity>> {
        let sets = &self.loaded.binding.value_sets;
        let sets: Vec<_> = match pattern.value_set_id {
            0 => sets.iter().collect(),
            id => vec![sets.get(id).ok_or_else(|| unknown("value set", id))?],
        };
        let mut answer = Vec::new();
        for set in sets {
            with_shadow(&mut |shadow| {
                let entry = match shadow.get(&Place::ValueSet(set.engine)) {
                    Some(Value::ValueSet(entry, _)) => entry.clone(),
                    _ => p4::ValueSetEntry { value_set_id: set.id, members: Vec::new() },
                };
                answer.push(Entity::ValueSetEntry(entry));
            });
        }
        Ok(answer)
    }

    fn tables(&self, pattern: &p4::TableEntry) -> Outcome<Vec<&TableBinding>> {
        if pattern.table_id != 0 {
            return Ok(vec![table::find_table(&self.loaded.binding, pattern.table_id)?]);
        }
        if !pattern.r#match.is_empty() {
            return Err(Fault::invalid("match fields mean nothing without a table id; give it"));
        }
        Ok(self.loaded.binding.tables.iter().collect())
    }

    fn select(
        &self,
        with_shadow: &impl WithShadow,
        table: &TableBinding,
        pattern: &p4::TableEntry,
    ) -> Outcome<Vec<Entry>> {
        let action = match pattern.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            None => None,
            Some(p4::table_action::Type::Action(action)) => Some(action.action_id),
            Some(_) => {
                return Err(Fault::unimplemented("entries can be selected by action id only; give an action, or none"));
            }
        };
        let key = match &pattern.r#match[..] {
            [] => None,
            fields => Some(matches::encode_key(&table.key, &matches::decode_key(&table.key, fields, NewName::Refuse)?)),
        };
        let has_action = |entry: &Entry, id: u32| {
            let action = entry.wire.action.as_ref().and_then(|action| action.r#type.as_ref());
            matches!(action, Some(p4::table_action::Type::Action(action)) if action.action_id == id)
        };
        let fits = |entry: &&Entry| {
            let wire = &entry.wire;
            (pattern.priority == 0 || wire.priority == pattern.priority)
                && (pattern.controller_metadata == 0 || wire.controller_metadata == pattern.controller_metadata)
                && (pattern.metadata.is_empty() || wire.metadata == pattern.metadata)
                && action.is_none_or(|id| has_action(entry, id))
                && key.as_ref().is_none_or(|key| wire.r#match == *key)
        };
        let mut entries = Vec::new();
        with_shadow(&mut |shadow| entries.extend(shadow.entries(table.engine).filter(fits).cloned()));
        Ok(entries)
    }

    /// Returns the default action that a client has set; if there is none, the default action of the program.
    fn default_entry(&self, with_shadow: &impl WithShadow, table: &TableBinding) -> p4::TableEntry {
        let mut set = None;
        with_shadow(&mut |shadow| set = shadow.entry(&Place::Default(table.engine)).map(|entry| entry.wire.clone()));
        set.unwrap_or_else(|| {
            let own = self.loaded.table_info(table.id).and_then(|info| info.initial_default_action.as_ref());
            let action = own.map(|call| p4::Action {
                action_id: call.action_id,
                params: call
                    .arguments
                    .iter()
                    .map(|argument| p4::action::Param {
                        param_id: argument.param_id,
                        value: canonical(&argument.value),
                    })
                    .collect(),
            });
            p4::TableEntry {
                table_id: table.id,
                is_default_action: true,
                is_const: table.const_default,
                action: action.map(|action| p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
                ..Default::default()
            }
        })
    }

    /// Reads the current data of entries from the device, such as counts and times to live. The keys of the result are
    /// the encoded keys of the entries.
    async fn current(&self, table: TableId, entries: &[Entry]) -> Outcome<HashMap<Vec<u8>, TableData>> {
        let compiled = &self.loaded.program.tables[table.index()];
        if entries.is_empty() {
            return Ok(HashMap::new());
        }
        let patterns = entries.iter().map(|entry| {
            let flags = TableFlags { from_hw: true, ..Default::default() };
            bfrt::entry_entity(proto::TableEntry {
                table_flags: Some(flags),
                ..bfrt::key_only(compiled.id, entry.key.clone())
            })
        });
        let answers = self.ask(self.driver, patterns.collect()).await?;
        let data = answers.into_iter().filter_map(|entry| Some((entry.key?.encode_to_vec(), entry.data?)));
        Ok(data.collect())
    }

    async fn ask(&self, driver: &Driver, entities: Vec<proto::Entity>) -> Outcome<Vec<proto::TableEntry>> {
        let answers = driver.read(entities).await;
        let answers = answers.map_err(|status| Fault { code: status.code(), message: status.message().to_owned() })?;
        let entry = |entity: proto::Entity| match entity.entity {
            Some(driver_entity::Entity::TableEntry(entry)) => Some(entry),
            _ => None,
        };
        Ok(answers.into_iter().filter_map(entry).collect())
    }

    /// Reads the cell of the table `id` at `index` from the device, unless the cell was prefetched. Without an index,
    /// reads all cells, after the driver has copied them from the device. `key` is the id of the table's key field.
    async fn cells(&self, driver: &Driver, id: u32, key: u32, index: Option<u64>) -> Outcome<Vec<(u64, TableData)>> {
        if let Some(data) = index.and_then(|index| self.prefetched.cell(driver, id, index)) {
            return Ok(index.map(|index| (index, data.clone())).into_iter().collect());
        }
        let _array_guard = driver.array_locks.lock(&BTreeSet::from([id])).await;
        let pattern = match index {
            Some(index) => bfrt::cell(id, key, index as u32, true),
            None => {
                let synced = driver.write(vec![bfrt::sync(id, "Sync")]).await;
                let synced =
                    synced.map_err(|status| Fault { code: status.code(), message: status.message().to_owned() })?;
                synced.into_iter().collect::<Outcome<()>>()?;
                bfrt::entry_entity(bfrt::whole_table(id))
            }
        };
        let answers = self.ask(driver, vec![pattern]).await?;
        let mut cells: Vec<_> = answers
            .into_iter()
            .filter_map(|entry| {
                let index = index_of(&entry)?;
                Some((index, entry.data.unwrap_or_default()))
            })
            .collect();
        cells.sort_unstable_by_key(|(index, _)| *index);
        Ok(cells)
    }

    async fn registers(&self, pattern: &p4::RegisterEntry) -> Outcome<Vec<Entity>> {
        let registers = &self.loaded.binding.registers;
        let selected: Vec<&RegisterBinding> = match pattern.register_id {
            0 => registers.iter().collect(),
            id => vec![registers.get(id).ok_or_else(|| unknown("register", id))?],
        };
        let mut answer = Vec::new();
        for register in selected {
            let place = format!("register {}", register.name);
            let index = cell_index(pattern.index.as_ref(), register.size, &place)?;
            let compiled = &self.loaded.program.registers[register.engine.index()];
            let fields: Vec<u32> = compiled.fields.iter().flatten().copied().collect();
            let widths = register.data.leaf_widths();
            // The indices of the cells, and for each cell the sums of its fields over the pipes.
            let (mut indexes, mut sums): (Vec<u64>, Vec<u64>) = Default::default();
            // One request per pipe, because a request for all pipes would also read and send the cells of pipes that
            // the flag `--pipes` excludes.
            for (position, pipe) in self.pipes.iter().enumerate() {
                let driver = self.driver.in_pipe(*pipe);
                let cells = self.cells(&driver, compiled.id, compiled.index, index).await;
                let cells = cells.map_err(|fault| fault.within(&place))?;
                if position == 0 {
                    indexes = cells.iter().map(|(index, _)| *index).collect();
                    sums = vec![0; indexes.len() * fields.len()];
                } else if !cells.iter().map(|(index, _)| index).eq(&indexes) {
                    let text = format!(
                        "the driver's answers for pipe {pipe} and another one have different cells; read again"
                    );
                    return Err(Fault { code: Code::Unavailable, message: text }.within(&place));
                }
                for (sums, (_, data)) in sums.chunks_exact_mut(fields.len().max(1)).zip(&cells) {
                    for (sum, field) in sums.iter_mut().zip(&fields) {
                        *sum = sum.wrapping_add(number_of(data, *field));
                    }
                }
            }
            answer.extend(indexes.into_iter().zip(sums.chunks_exact(fields.len().max(1))).map(|(index, sums)| {
                let values: Vec<_> = sums.iter().zip(&widths).map(|(sum, width)| in_bytes(*sum, *width)).collect();
                Entity::RegisterEntry(p4::RegisterEntry {
                    register_id: register.id,
                    index: Some(p4::Index { index: index.cast_signed() }),
                    data: Some(register.data.encode(&mut values.iter().map(Vec::as_slice))),
                })
            }));
        }
        Ok(answer)
    }

    async fn counters(&self, pattern: &p4::CounterEntry) -> Outcome<Vec<Entity>> {
        let counters = &self.loaded.binding.counters;
        let selected: Vec<&CounterBinding> = match pattern.counter_id {
            0 => counters.iter().collect(),
            id => vec![counters.get(id).ok_or_else(|| unknown("counter", id))?],
        };
        let mut answer = Vec::new();
        for counter in selected {
            let place = format!("counter {}", counter.name);
            let index = cell_index(pattern.index.as_ref(), counter.size, &place)?;
            let compiled = &self.loaded.program.counters[counter.engine.index()];
            let cells = self
                .cells(self.driver, compiled.id, compiled.index, index)
                .await
                .map_err(|fault| fault.within(&place))?;
            answer.extend(cells.into_iter().map(|(index, data)| {
                Entity::CounterEntry(p4::CounterEntry {
                    counter_id: counter.id,
                    index: Some(p4::Index { index: index.cast_signed() }),
                    data: Some(counter::encode_data(counted(&data, &compiled.fields))),
                })
            }));
        }
        Ok(answer)
    }

    fn meters(&self, with_shadow: impl WithShadow, pattern: &p4::MeterEntry) -> Outcome<Vec<Entity>> {
        let meters = &self.loaded.binding.meters;
        let selected: Vec<&MeterBinding> = match pattern.meter_id {
            0 => meters.iter().collect(),
            id => vec![meters.get(id).ok_or_else(|| unknown("meter", id))?],
        };
        let mut answer = Vec::new();
        for meter in selected {
            let index = cell_index(pattern.index.as_ref(), meter.size, &format!("meter {}", meter.name))?;
            with_shadow(&mut |shadow| {
                answer.extend(counter::cells(index, meter.size).map(|cell| {
                    let config = match shadow.get(&Place::Meter(meter.engine, cell)) {
                        Some(Value::Meter(config)) => Some(*config),
                        _ => None,
                    };
                    let index = Some(p4::Index { index: cell.cast_signed() });
                    Entity::MeterEntry(p4::MeterEntry { meter_id: meter.id, index, config, counter_data: None })
                }));
            });
        }
        Ok(answer)
    }

    fn digests(&self, with_shadow: impl WithShadow, pattern: &p4::DigestEntry) -> Outcome<Vec<Entity>> {
        let digests = &self.loaded.binding.digests;
        if pattern.digest_id != 0 && digests.get(pattern.digest_id).is_none() {
            return Err(unknown("digest", pattern.digest_id));
        }
        let selected = digests.iter().filter(|digest| pattern.digest_id == 0 || digest.id == pattern.digest_id);
        let mut answer = Vec::new();
        for digest in selected {
            with_shadow(&mut |shadow| {
                if let Some(Value::Digest(config)) = shadow.get(&Place::Digest(digest.engine)) {
                    let config = p4::digest_entry::Config {
                        max_timeout_ns: config.max_timeout_ns.cast_signed(),
                        max_list_size: config.max_list_size.cast_signed(),
                        ack_timeout_ns: config.ack_timeout_ns.cast_signed(),
                    };
                    answer.push(Entity::DigestEntry(p4::DigestEntry { digest_id: digest.id, config: Some(config) }));
                }
            });
        }
        Ok(answer)
    }
}

fn members(with_shadow: &impl WithShadow, pattern: &p4::ActionProfileMember) -> Vec<Entity> {
    let mut answer = Vec::new();
    with_shadow(&mut |shadow| {
        answer.extend(shadow.iter().filter_map(|(_, value)| match value {
            Value::Member(member, _)
                if (pattern.action_profile_id == 0 || member.action_profile_id == pattern.action_profile_id)
                    && (pattern.member_id == 0 || member.member_id == pattern.member_id) =>
            {
                Some(Entity::ActionProfileMember(member.clone()))
            }
            _ => None,
        }));
    });
    answer
}

fn groups(with_shadow: &impl WithShadow, pattern: &p4::ActionProfileGroup) -> Vec<Entity> {
    let mut answer = Vec::new();
    with_shadow(&mut |shadow| {
        answer.extend(shadow.iter().filter_map(|(_, value)| match value {
            Value::Group(group, _)
                if (pattern.action_profile_id == 0 || group.action_profile_id == pattern.action_profile_id)
                    && (pattern.group_id == 0 || group.group_id == pattern.group_id) =>
            {
                Some(Entity::ActionProfileGroup(group.clone()))
            }
            _ => None,
        }));
    });
    answer
}

fn copies(with_shadow: &impl WithShadow, pattern: &p4::PacketReplicationEngineEntry) -> Outcome<Vec<Entity>> {
    let mut answer = Ok(Vec::new());
    with_shadow(&mut |shadow| {
        let groups = shadow.iter().filter_map(|(_, value)| match value {
            Value::Multicast(group, _) => Some(group),
            _ => None,
        });
        let sessions = shadow.iter().filter_map(|(_, value)| match value {
            Value::Clone(session, ..) => Some(session),
            _ => None,
        });
        answer = replication::select(pattern, groups, sessions);
    });
    Ok(answer?.into_iter().map(Entity::PacketReplicationEngineEntry).collect())
}

/// Returns the key and attributes of an entry, without its action and meter.
fn identity(entry: p4::TableEntry) -> p4::TableEntry {
    p4::TableEntry { action: None, meter_config: None, ..entry }
}

/// Returns the counts of an entry from the driver's data.
fn count_of(compiled: &Match, data: &TableData) -> p4::CounterData {
    counter::encode_data(counted(data, &[compiled.packets, compiled.bytes]))
}

/// Returns a value without leading zeros. p4c writes leading zeros into P4Info, whereas P4Runtime requires the shortest
/// string (version 1.5, section 8.4).
fn canonical(value: &[u8]) -> Vec<u8> {
    let zeros = value.iter().take(value.len().saturating_sub(1)).take_while(|byte| **byte == 0).count();
    value[zeros..].to_vec()
}

/// Returns the counts of packets and bytes, whose fields have these ids.
fn counted(data: &TableData, fields: &[Option<u32>]) -> sluice_engine::CounterData {
    let count = |place: usize| fields.get(place).copied().flatten().map_or(0, |id| number_of(data, id));
    sluice_engine::CounterData { packets: count(0), bytes: count(1) }
}

/// Returns the value of a field as a number; 0 if the field is missing.
fn number_of(data: &TableData, id: u32) -> u64 {
    let field = data.fields.iter().find(|field| field.field_id == id);
    field.and_then(bfrt::bytes).map_or(0, bfrt::number)
}

/// Returns the low `width` bits of a value, in `ceil(width / 8)` bytes.
fn in_bytes(value: u64, width: u32) -> Vec<u8> {
    let value = value & (u64::MAX >> (64 - width.clamp(1, 64)));
    value.to_be_bytes()[8 - width.div_ceil(8).min(8) as usize..].to_vec()
}
