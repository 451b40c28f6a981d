//! Plans writes to table entries and default actions.

use prost::Message;
use sluice_engine::{ActionCall, EntryAction, KeyField, OneShotGroup, ProfileId, TableId};
use sluice_p4runtime::actions::{self, Role};
use sluice_p4runtime::binding::TableBinding;
use sluice_p4runtime::entity::{Operation, amount, table};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::matches;
use sluice_p4runtime::ports::Ports;
use sluice_p4runtime::proto::p4::v1 as p4;

use super::Planner;
use super::direct::{counts_of, no_colours, resources, without_resources};
use crate::bfrt;
use crate::proto::{self, TableData, TableKey, key_field, update::Type};
use crate::shadow::{Entry, OwnGroup, Place, Value};

/// The highest priority of an entry in P4Runtime. The driver's priority has 24 bits, and its smallest number takes
/// precedence, so the gateway writes `MAX_PRIORITY` minus the priority.
const MAX_PRIORITY: i32 = (1 << 24) - 1;

/// The action of an entry in the form of the driver's data. If the client wrote an action set, also the group that the
/// gateway has created for the set.
struct DriverAction {
    data: TableData,
    own: Option<OwnGroup>,
}

impl Planner<'_> {
    pub(super) fn table_entry(&mut self, operation: Operation, entry: &p4::TableEntry) -> Outcome {
        let loaded = self.loaded;
        if entry.is_default_action {
            let table = table::find_table(&loaded.binding, entry.table_id)?;
            return self.default_action(table, operation, entry).map_err(|fault| fault.within(&table::place(table)));
        }
        let (table, key, priority) = table::locate(&loaded.binding, entry, operation.new_names())?;
        self.entry(table, operation, entry, &key, priority).map_err(|fault| fault.within(&table::place(table)))
    }

    fn entry(
        &mut self,
        table: &TableBinding,
        operation: Operation,
        entry: &p4::TableEntry,
        fields: &[KeyField],
        priority: i32,
    ) -> Outcome {
        let id = table.engine;
        let key = self.key(id, fields, priority)?;
        let place = Place::Entry(id, key.encode_to_vec());
        let old = self.shadow.entry(&place).cloned();
        if operation == Operation::Delete {
            let old = old.ok_or_else(|| Fault::not_found("there is no such entry; read the existing ones"))?;
            let number = self.loaded.program.tables[id.index()].id;
            let undo = bfrt::update(Type::Insert, bfrt::entry(number, key.clone(), old.data.clone()));
            self.step(bfrt::update(Type::Delete, bfrt::key_only(number, key)), Some(undo));
            self.put(place, None);
            self.drop_own_group(table, old.own);
            return Ok(());
        }
        refuse_reads(table, entry)?;
        match (operation, &old) {
            (Operation::Insert, Some(_)) => {
                return Err(Fault::exists("the entry exists already; MODIFY it, or DELETE it first"));
            }
            (Operation::Modify, None) => return Err(Fault::not_found("there is no such entry; INSERT it first")),
            _ => {}
        }
        let (data, own, action) = match (&entry.action, &old) {
            (Some(action), old) => {
                let driver_action =
                    self.driver_action(table, action, Role::Entry, old.as_ref().and_then(|old| old.own.as_ref()))?;
                (driver_action.data, driver_action.own, self.canonical(table, action, Role::Entry)?)
            }
            (None, Some(old)) => (old.data.clone(), old.own.clone(), old.wire.action.clone()),
            (None, None) => return Err(Fault::invalid("the action is missing; give one")),
        };
        let compiled = &self.loaded.program.tables[id.index()];
        let number = compiled.id;
        let mut data = without_resources(compiled, data);
        data.fields.extend(resources(compiled, entry)?);
        let mut written = data.clone();
        written.fields.extend(entry.counter_data.iter().flat_map(|counts| counts_of(compiled, counts)));
        let (kind, undo) = match &old {
            None => (Type::Insert, bfrt::update(Type::Delete, bfrt::key_only(number, key.clone()))),
            Some(old) => (Type::Modify, bfrt::update(Type::Modify, bfrt::entry(number, key.clone(), old.data.clone()))),
        };
        self.step(bfrt::update(kind, bfrt::entry(number, key.clone(), written)), Some(undo));
        if let Some(old) = old
            && old.own != own
        {
            self.drop_own_group(table, old.own);
        }
        let wire = p4::TableEntry {
            table_id: table.id,
            r#match: matches::encode_key(&table.key, fields),
            action,
            priority,
            controller_metadata: entry.controller_metadata,
            metadata: entry.metadata.clone(),
            idle_timeout_ns: entry.idle_timeout_ns,
            meter_config: entry.meter_config,
            ..Default::default()
        };
        self.put(place, Some(Value::Entry(Box::new(Entry { wire, key, data, own }))));
        Ok(())
    }

    fn default_action(&mut self, table: &TableBinding, operation: Operation, entry: &p4::TableEntry) -> Outcome {
        operation.must_modify("the default action")?;
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Fault::invalid("the default action has neither match fields nor priority; leave them out"));
        }
        if table.const_default {
            return Err(Fault::denied("the default action is const; leave it, or change it in the program"));
        }
        refuse_reads(table, entry)?;
        if entry.idle_timeout_ns != 0 {
            return Err(Fault::invalid("the default action has no idle timeout; leave it out"));
        }
        if entry.counter_data.is_some() || entry.meter_config.is_some() {
            return Err(Fault::unimplemented(
                "the gateway cannot write counters and meters of default actions; leave them out",
            ));
        }
        let number = self.loaded.program.tables[table.engine.index()].id;
        let place = Place::Default(table.engine);
        let old = self.shadow.entry(&place).cloned();
        let reset = bfrt::update(Type::Delete, bfrt::default_entry(number, None));
        let undo = match &old {
            Some(old) => bfrt::update(Type::Modify, bfrt::default_entry(number, Some(old.data.clone()))),
            None => reset.clone(),
        };
        let Some(action) = &entry.action else {
            self.step(reset, Some(undo));
            self.put(place, None);
            return Ok(());
        };
        if table.profile.is_some() {
            return Err(Fault::unimplemented(
                "BF Runtime cannot set the default action of a table with an action profile; leave it out",
            ));
        }
        let driver_action = self.driver_action(table, action, Role::Default, None)?;
        let set = bfrt::update(Type::Modify, bfrt::default_entry(number, Some(driver_action.data.clone())));
        self.step(set, Some(undo));
        let wire = p4::TableEntry {
            table_id: table.id,
            is_default_action: true,
            action: self.canonical(table, action, Role::Default)?,
            controller_metadata: entry.controller_metadata,
            metadata: entry.metadata.clone(),
            ..Default::default()
        };
        let (key, data) = (TableKey::default(), driver_action.data);
        self.put(place, Some(Value::Entry(Box::new(Entry { wire, key, data, own: None }))));
        Ok(())
    }

    /// Returns a key in the form of a BF Runtime message.
    pub(super) fn key(&self, table: TableId, fields: &[KeyField], priority: i32) -> Outcome<TableKey> {
        use key_field::{Exact, Lpm, MatchType, Optional, Range, Ternary};
        let compiled = &self.loaded.program.tables[table.index()];
        let fields = compiled.key.iter().zip(fields).map(|(id, field)| {
            let matched = match field.clone() {
                KeyField::Exact(value) => MatchType::Exact(Exact { value }),
                KeyField::Lpm { value, prefix_len } => {
                    MatchType::Lpm(Lpm { value, prefix_len: prefix_len.cast_signed() })
                }
                KeyField::Ternary { value, mask } => MatchType::Ternary(Ternary { value, mask }),
                KeyField::Range { low, high } => MatchType::Range(Range { low, high }),
                KeyField::Optional(Some(value)) => MatchType::Optional(Optional { value, is_valid: true }),
                KeyField::Optional(None) => MatchType::Optional(Optional { value: Vec::new(), is_valid: false }),
            };
            proto::KeyField { field_id: *id, match_type: Some(matched) }
        });
        let mut fields: Vec<_> = fields.collect();
        if let Some(id) = compiled.priority {
            if priority > MAX_PRIORITY {
                return Err(Fault::invalid(format!(
                    "the priority {priority} has more than the driver's 24 bits; give at most {MAX_PRIORITY}"
                )));
            }
            fields.push(bfrt::exact(id, (MAX_PRIORITY - priority).to_be_bytes()));
        }
        Ok(TableKey { fields })
    }

    /// Returns an action in canonical form, in which clients read it.
    fn canonical(
        &self,
        table: &TableBinding,
        action: &p4::TableAction,
        role: Role,
    ) -> Outcome<Option<p4::TableAction>> {
        let binding = &self.loaded.binding;
        let decoded = actions::decode_entry_action(binding, &Ports::default(), table, action, role)?;
        Ok(Some(actions::encode_entry_action(binding, table, &decoded)))
    }

    /// Plans the steps that an entry's action needs, such as a group for an action set, and returns the entry's data.
    /// `old` is the group to which the entry refers so far.
    fn driver_action(
        &mut self,
        table: &TableBinding,
        action: &p4::TableAction,
        role: Role,
        old: Option<&OwnGroup>,
    ) -> Outcome<DriverAction> {
        let decoded = actions::decode_entry_action(&self.loaded.binding, &Ports::default(), table, action, role)?;
        let compiled = &self.loaded.program.tables[table.engine.index()];
        let (member, group) = (compiled.member, compiled.group);
        let reference = |field: Option<u32>, what: &str, id: u32| {
            let field = field.ok_or_else(|| {
                Fault::unimplemented(format!("the driver's entries have no field for a {what}; give an action"))
            })?;
            Ok::<_, Fault>(TableData { action_id: 0, fields: vec![bfrt::stream(field, id.to_be_bytes())] })
        };
        Ok(match decoded {
            EntryAction::Call(call) => DriverAction { data: self.call(&call), own: None },
            EntryAction::Member(id) => {
                self.check_reference(table, "member", id, Place::Member)?;
                DriverAction { data: reference(member, "member", id)?, own: None }
            }
            EntryAction::Group(id) => {
                self.check_reference(table, "group", id, Place::Group)?;
                DriverAction { data: reference(group, "group", id)?, own: None }
            }
            EntryAction::OneShot(set) => {
                let own = self.own_group(table, &set, old)?;
                DriverAction { data: reference(group, "group", own.id)?, own: Some(own) }
            }
        })
    }

    /// Refuses a reference to a member or group that does not exist.
    fn check_reference(
        &self,
        table: &TableBinding,
        what: &str,
        id: u32,
        place: impl FnOnce(ProfileId, u32) -> Place,
    ) -> Outcome {
        let profile = self.loaded.program.profile_of(table.engine).map(|profile| place(profile, id));
        match profile.and_then(|place| self.shadow.get(&place)) {
            Some(_) => Ok(()),
            None => Err(Fault::not_found(format!("its profile has no {what} {id}; INSERT it first"))),
        }
    }

    /// Returns an action with its parameters, in the form of a BF Runtime message.
    pub(super) fn call(&self, call: &ActionCall) -> TableData {
        let compiled = &self.loaded.program.actions[call.action.index()];
        let params = compiled.params.iter().zip(&call.params);
        TableData {
            action_id: compiled.id,
            fields: params.map(|(id, value)| bfrt::stream(*id, value.clone())).collect(),
        }
    }

    /// Creates a group for an action set, or returns the old group if its list of members is the same. All action sets
    /// of the profile share their members, so that a change of weights creates no members.
    fn own_group(&mut self, table: &TableBinding, set: &OneShotGroup, old: Option<&OwnGroup>) -> Outcome<OwnGroup> {
        let profile = self.loaded.program.profile_of(table.engine);
        let profile = profile.ok_or_else(|| Fault::invalid("it has no action profile; give an action"))?;
        if set.members.is_empty() {
            return Err(Fault::invalid("the action set is empty; give at least one action"));
        }
        let (mut list, mut places) = (Vec::new(), Vec::new());
        for member in &set.members {
            let data = self.call(&member.call);
            let place = Place::Shared(profile, data.encode_to_vec());
            let id = self.share(profile, &place, data, !places.contains(&place));
            if !places.contains(&place) {
                places.push(place);
            }
            list.extend(std::iter::repeat_n(id, member.weight as usize));
        }
        let selector = self.profile(profile).selector.as_ref();
        let selector = selector.ok_or_else(|| Fault::invalid("its profile has no selector; give a member"))?;
        let (number, key, data) =
            (selector.id, selector.key, super::profiles::list(selector, &list, list.len() as u32));
        if let Some(old) = old.filter(|old| old.data == data) {
            // The list is unchanged, so the entry keeps its old group. `unshare` reverts the increments of the members'
            // counts by `share` above.
            let old = old.clone();
            self.unshare(profile, &places);
            return Ok(old);
        }
        // The steps create a complete new group, then change the entry, then delete the old group. So no packet is
        // processed with a mixture of both lists.
        let id = self.shadow.new_id();
        let key = bfrt::number_key(key, id);
        let undo = bfrt::update(Type::Delete, bfrt::key_only(number, key.clone()));
        self.step(bfrt::update(Type::Insert, bfrt::entry(number, key, data.clone())), Some(undo));
        Ok(OwnGroup { id, members: places, data })
    }

    /// Returns the driver's id of a shared member, and creates the member if it does not exist. Counts the groups that
    /// use the member. `first_of_group` is false if the group that is planned was counted already.
    fn share(&mut self, profile: ProfileId, place: &Place, data: TableData, first_of_group: bool) -> u32 {
        if let Some(Value::Shared(id, data, uses)) = self.shadow.get(place).cloned() {
            if first_of_group {
                self.put(place.clone(), Some(Value::Shared(id, data, uses + 1)));
            }
            return id;
        }
        let id = self.shadow.new_id();
        let (number, key) = (self.profile(profile).members, bfrt::number_key(self.profile(profile).member_key, id));
        let undo = bfrt::update(Type::Delete, bfrt::key_only(number, key.clone()));
        self.step(bfrt::update(Type::Insert, bfrt::entry(number, key, data.clone())), Some(undo));
        self.put(place.clone(), Some(Value::Shared(id, data, 1)));
        id
    }

    /// Releases a group's use of shared members. Deletes the members that no group uses any more.
    fn unshare(&mut self, profile: ProfileId, places: &[Place]) {
        for place in places {
            let Some(Value::Shared(id, data, uses)) = self.shadow.get(place).cloned() else { continue };
            if uses > 1 {
                self.put(place.clone(), Some(Value::Shared(id, data, uses - 1)));
                continue;
            }
            let (number, key) = (self.profile(profile).members, bfrt::number_key(self.profile(profile).member_key, id));
            self.later(bfrt::update(Type::Delete, bfrt::key_only(number, key)));
            self.put(place.clone(), None);
        }
    }

    /// Deletes a group that its entry no longer uses, and the members that no group uses any more.
    fn drop_own_group(&mut self, table: &TableBinding, own: Option<OwnGroup>) {
        let (Some(own), Some(profile)) = (own, self.loaded.program.profile_of(table.engine)) else { return };
        if let Some(selector) = &self.profile(profile).selector {
            let deleted_group = bfrt::key_only(selector.id, bfrt::number_key(selector.key, own.id));
            self.later(bfrt::update(Type::Delete, deleted_group));
        }
        self.unshare(profile, &own.members);
    }
}

/// Refuses fields that only replies may contain, and resources that the table does not have.
fn refuse_reads(table: &TableBinding, entry: &p4::TableEntry) -> Outcome {
    if entry.time_since_last_hit.is_some() {
        return Err(Fault::invalid("has_time_since_last_hit must not be set in WriteRequest"));
    }
    if entry.is_const {
        return Err(Fault::invalid("is_const is for reading; leave it out"));
    }
    amount::<u64>(entry.idle_timeout_ns, "idle_timeout_ns")?;
    if entry.idle_timeout_ns != 0 && !table.idle_timeout {
        return Err(Fault::invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout"));
    }
    if entry.counter_data.is_some() && table.counter.is_none() {
        return Err(table::lacks(table, "direct counter"));
    }
    if entry.meter_config.is_some() && table.meter.is_none() {
        return Err(table::lacks(table, "direct meter"));
    }
    if entry.meter_counter_data.is_some() {
        return Err(no_colours());
    }
    Ok(())
}
