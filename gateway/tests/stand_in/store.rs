//! The tables of the stand-in, as `bfrt.json` describes them, with the driver's checks of keys, data and references.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use sluice_tofino::info::{Field, Info, Table};
use sluice_tofino::proto::{DataField, TableData, TableEntry, TableKey, data_field, key_field, update::Type};
use tonic::Code;

/// Number of pipes of the device.
pub const PIPES: usize = 4;

/// The code and message of a refused update.
pub type Refusal = (Code, String);

fn refuse<T>(code: Code, text: impl Into<String>) -> Result<T, Refusal> {
    Err((code, text.into()))
}

const TIME_TO_LIVE: &str = "$ENTRY_TTL";

/// The entries and default action of one table.
#[derive(Debug, Default, Clone)]
pub struct Rows {
    pub entries: BTreeMap<Vec<u8>, (TableKey, TableData)>,
    pub default: Option<TableData>,
}

/// All tables with their entries.
#[derive(Debug)]
pub struct Store {
    info: Info,
    /// The ids of the tables in which idle timeouts are enabled.
    aging: BTreeSet<u32>,
    rows: BTreeMap<u32, Rows>,
}

impl Store {
    pub fn new(info: Info) -> Self {
        let rows = info.tables.iter().map(|table| (table.id, Rows::default())).collect();
        Self { info, aging: BTreeSet::new(), rows }
    }

    pub fn table(&self, name: &str) -> &Table {
        self.info.tables.iter().find(|table| table.p4_name() == name).unwrap_or_else(|| panic!("no table {name}"))
    }

    pub fn rows(&self, name: &str) -> &Rows {
        &self.rows[&self.table(name).id]
    }

    /// Returns all tables with their entries.
    pub fn all(&self) -> impl Iterator<Item = (&Table, &Rows)> {
        self.info.tables.iter().map(|table| (table, &self.rows[&table.id]))
    }

    pub fn filter(&self, name: &str) -> u32 {
        self.info.learn_filters.iter().find(|filter| filter.name.ends_with(name)).unwrap().id
    }

    fn by_id(&self, id: u32) -> Result<&Table, Refusal> {
        let table = self.info.tables.iter().find(|table| table.id == id);
        table.ok_or_else(|| (Code::NotFound, format!("Table not found for id {id}")))
    }

    /// Enables idle timeouts in a table.
    pub fn age(&mut self, id: u32) -> Result<(), Refusal> {
        if self.by_id(id)?.data_id(TIME_TO_LIVE).is_none() {
            return refuse(Code::Unimplemented, "Failed to set Idle Notify Mode");
        }
        self.aging.insert(id);
        Ok(())
    }

    pub fn write(&mut self, kind: Type, entry: &TableEntry) -> Result<(), Refusal> {
        let table = self.by_id(entry.table_id)?.clone();
        if entry.is_default_entry {
            return self.write_default(kind, &table, entry);
        }
        let Some(key) = &entry.key else {
            if kind != Type::Delete {
                return refuse(Code::InvalidArgument, "Table key cannot be empty");
            }
            if table.name.starts_with("$pre.") {
                return refuse(Code::Unimplemented, format!("Table Entry delete all failed table:{}", table.name));
            }
            if self.rows[&table.id].entries.values().any(|(key, _)| self.is_referred_to(&table, key)) {
                return refuse(Code::AlreadyExists, "Table Entry delete all failed");
            }
            self.rows.insert(table.id, Rows { entries: BTreeMap::new(), ..self.rows[&table.id].clone() });
            return Ok(());
        };
        check_key(&table, key)?;
        let encoded = key.encode_to_vec();
        let exists = self.rows[&table.id].entries.contains_key(&encoded);
        let cells = is_array(&table);
        if table.table_type == "MirrorCfg" {
            let action = entry.data.as_ref().map_or(0, |data| data.action_id);
            let coalesces = table.action_specs.iter().any(|spec| spec.id == action && spec.name == "$coalescing");
            check_session(kind, key_number(key), exists, coalesces)?;
        }
        match kind {
            Type::Insert if exists && !cells => return refuse(Code::AlreadyExists, "Table Add failed Already exists"),
            Type::Insert if !cells && self.rows[&table.id].entries.len() as u64 >= table.size => {
                return refuse(Code::ResourceExhausted, "Table Add failed No space");
            }
            // The entry of a port in the traffic manager always exists, so it can be modified without an insertion.
            Type::Modify if !exists && !cells && table.table_type != "PrePort" => {
                return refuse(Code::NotFound, "Table Entry modify failed Object not found");
            }
            Type::Delete if !exists && table.table_type == "ParserValueSet" => return Ok(()),
            Type::Delete if !exists => return refuse(Code::NotFound, "Table Entry delete failed Object not found"),
            Type::Delete if self.is_referred_to(&table, key) => {
                return refuse(Code::AlreadyExists, "Table Entry delete failed Entry references exist");
            }
            Type::Delete => {
                self.rows.get_mut(&table.id).unwrap().entries.remove(&encoded);
                return Ok(());
            }
            Type::Insert | Type::Modify => {}
            _ => return refuse(Code::Unimplemented, "not what the gateway sends"),
        }
        // Device ports above 511 do not exist. The driver refuses such a port without the reason in its message.
        if table.name == "$PORT" && key_number(key) > 511 {
            return refuse(Code::InvalidArgument, "Table Add failed table:$PORT Invalid arguments");
        }
        let data = entry.data.clone().unwrap_or_default();
        self.check_data(&table, &data)?;
        self.check_age(&table, &data)?;
        self.check_copies(&table, &data)?;
        self.rows.get_mut(&table.id).unwrap().entries.insert(encoded, (key.clone(), data));
        Ok(())
    }

    fn write_default(&mut self, kind: Type, table: &Table, entry: &TableEntry) -> Result<(), Refusal> {
        if table.has_const_default_action {
            return refuse(Code::Unimplemented, "Table Default entry set failed Not supported");
        }
        let default = match kind {
            Type::Modify => {
                let data = entry.data.clone().unwrap_or_default();
                self.check_data(table, &data)?;
                Some(data)
            }
            Type::Delete => None,
            _ => {
                return refuse(
                    Code::Unimplemented,
                    "INSERT of default entry is not supported. Please use MODIFY instead",
                );
            }
        };
        self.rows.get_mut(&table.id).unwrap().default = default;
        Ok(())
    }

    fn check_data(&self, table: &Table, data: &TableData) -> Result<(), Refusal> {
        let action = table.action_specs.iter().find(|action| action.id == data.action_id);
        if data.action_id != 0 && action.is_none() {
            return refuse(Code::NotFound, format!("no action {} in {}", data.action_id, table.name));
        }
        let action_fields = action.map_or(&[][..], |action| &action.data);
        let fields: Vec<&Field> =
            action_fields.iter().chain(table.data.iter().flat_map(|data| data.fields())).collect();
        for value in &data.fields {
            let Some(field) = fields.iter().find(|field| field.id == value.field_id) else {
                return refuse(Code::InvalidArgument, format!("SetValue failed for field:{}", value.field_id));
            };
            match &value.value {
                Some(data_field::Value::Stream(bytes)) => check_width(field.kind.bits(), bytes, &field.name)?,
                Some(data_field::Value::IntArrVal(members)) if table.table_type == "Selector" => {
                    let profile =
                        self.info.tables.iter().find(|candidate| table.depends_on.contains(&candidate.id)).unwrap();
                    for member in &members.val {
                        if !self.has(profile.id, *member) {
                            return refuse(Code::InvalidArgument, format!("member {member} does not exist"));
                        }
                    }
                }
                _ => {}
            }
        }
        if table.table_type == "Selector" {
            let counts = data.fields.iter().filter_map(|field| match &field.value {
                Some(data_field::Value::IntArrVal(list)) => Some(list.val.len()),
                Some(data_field::Value::BoolArrVal(list)) => Some(list.val.len()),
                _ => None,
            });
            let counts: Vec<_> = counts.collect();
            if counts.len() != 2 || counts[0] != counts[1] {
                return refuse(Code::InvalidArgument, "MemberId size and member status size do not match");
            }
        }
        self.check_reference(table, data)
    }

    /// Checks that a time to live is in a table with idle timeouts, and is at least 1,000 ms. At this
    /// interval the driver checks the entries, because the gateway sets it so.
    fn check_age(&self, table: &Table, data: &TableData) -> Result<(), Refusal> {
        let id = table.data_id(TIME_TO_LIVE);
        match data.fields.iter().find(|field| Some(field.field_id) == id) {
            Some(_) if !self.aging.contains(&table.id) => {
                refuse(Code::Unimplemented, format!("SetValue failed for field:{}", id.unwrap_or_default()))
            }
            Some(field) if number(field) < 1000 => refuse(Code::InvalidArgument, "Table Add failed Invalid arguments"),
            _ => Ok(()),
        }
    }

    /// Checks that a multicast group lists existing nodes, and has as many exclusions as nodes. Like the driver, the
    /// stand-in allows a node to be deleted before its group.
    fn check_copies(&self, table: &Table, data: &TableData) -> Result<(), Refusal> {
        if table.name != "$pre.mgid" {
            return Ok(());
        }
        let list = |name: &str| {
            let id = table.data_id(name);
            data.fields.iter().find(|field| Some(field.field_id) == id)
        };
        let Some(Some(data_field::Value::IntArrVal(nodes))) = list("$MULTICAST_NODE_ID").map(|field| &field.value)
        else {
            return Ok(());
        };
        let exclusions = match list("$MULTICAST_NODE_L1_XID_VALID").map(|field| &field.value) {
            Some(Some(data_field::Value::BoolArrVal(list))) => list.val.len(),
            _ => 0,
        };
        if exclusions != nodes.val.len() {
            return refuse(Code::InvalidArgument, "Table Add failed table:$pre.mgid Invalid arguments");
        }
        let node_table = self.table("$pre.node".split_once('.').unwrap().1).id;
        match nodes.val.iter().all(|node| self.has(node_table, *node)) {
            true => Ok(()),
            false => refuse(Code::NotFound, "Table Add failed table:$pre.mgid Object not found"),
        }
    }

    fn check_reference(&self, table: &Table, data: &TableData) -> Result<(), Refusal> {
        for (name, kind) in [("$ACTION_MEMBER_ID", "Action"), ("$SELECTOR_GROUP_ID", "Selector")] {
            if !table.table_type.starts_with("MatchAction_Indirect") {
                continue;
            }
            let id = table.data_id(name);
            for field in data.fields.iter().filter(|field| Some(field.field_id) == id) {
                let referred = self
                    .info
                    .tables
                    .iter()
                    .find(|candidate| table.depends_on.contains(&candidate.id) && candidate.table_type == kind);
                if !self.has(referred.unwrap().id, number(field)) {
                    return refuse(Code::NotFound, format!("{name} {} does not exist", number(field)));
                }
            }
        }
        Ok(())
    }

    fn has(&self, table: u32, id: u32) -> bool {
        self.rows[&table].entries.values().any(|(key, _)| key_number(key) == id)
    }

    /// Returns whether an entry or a group refers to this group or member.
    fn is_referred_to(&self, table: &Table, key: &TableKey) -> bool {
        let name = match table.table_type.as_str() {
            "Selector" => "$SELECTOR_GROUP_ID",
            "Action" => "$ACTION_MEMBER_ID",
            _ => return false,
        };
        let id = key_number(key);
        self.info.tables.iter().filter(|referring| referring.depends_on.contains(&table.id)).any(|referring| {
            let field_id = referring.data_id(name);
            self.rows[&referring.id].entries.values().any(|(_, data)| {
                data.fields.iter().filter(|field| Some(field.field_id) == field_id).any(|field| match &field.value {
                    Some(data_field::Value::IntArrVal(list)) => list.val.contains(&id),
                    _ => number(field) == id,
                })
            })
        })
    }

    /// Reads entries. If `pipe` is the number of a pipe, each field of a register cell has its value in this pipe.
    /// Otherwise each field has a value for each pipe.
    pub fn read(&self, pattern: &TableEntry, pipe: usize) -> Result<Vec<TableEntry>, Refusal> {
        let table = self.by_id(pattern.table_id)?;
        let answer = |key: &TableKey, data: TableData| TableEntry {
            table_id: table.id,
            key: Some(key.clone()),
            data: Some(data),
            ..Default::default()
        };
        if let Some(key) = &pattern.key {
            check_key(table, key)?;
            let stored = self.rows[&table.id].entries.get(&key.encode_to_vec()).map(|(_, data)| data.clone());
            let data = match stored {
                None if !is_array(table) => return refuse(Code::NotFound, "Table Entry get failed Object not found"),
                data => data.unwrap_or_default(),
            };
            return Ok(vec![answer(key, filled(table, data, pipe))]);
        }
        if !is_array(table) {
            return Ok(self.rows[&table.id].entries.values().map(|(key, data)| answer(key, data.clone())).collect());
        }
        let cells = (0..table.size as u32).map(|index| {
            let key = sluice_tofino::bfrt::number_key(table.key[0].id, index);
            let data = self.rows[&table.id].entries.get(&key.encode_to_vec()).map(|(_, data)| data.clone());
            answer(&key, filled(table, data.unwrap_or_default(), pipe))
        });
        Ok(cells.collect())
    }

    /// Sets a data field in all entries of a table.
    pub fn set_field(&mut self, name: &str, field: DataField) {
        let id = self.table(name).id;
        for (_, data) in self.rows.get_mut(&id).unwrap().entries.values_mut() {
            data.fields.retain(|old| old.field_id != field.field_id);
            data.fields.push(field.clone());
        }
    }

    /// Sets a cell of a register. `fields` contains, for each field of the cell, its value in each pipe.
    pub fn set_cell(&mut self, name: &str, index: u32, fields: &[[u32; PIPES]]) {
        let table = self.table(name).clone();
        let ids = table.data.iter().flat_map(|data| data.fields()).map(|field| field.id);
        let fields = ids
            .zip(fields)
            .flat_map(|(id, pipes)| pipes.map(|value| sluice_tofino::bfrt::stream(id, value.to_be_bytes())));
        let data = TableData { action_id: 0, fields: fields.collect() };
        let key = sluice_tofino::bfrt::number_key(table.key[0].id, index);
        self.rows.get_mut(&table.id).unwrap().entries.insert(key.encode_to_vec(), (key, data));
    }
}

/// Returns the data of an entry with all fields; missing fields are zero. If `pipe` is the number of a pipe, each field
/// of a register has its value in this pipe; otherwise it has a value for each pipe.
fn filled(table: &Table, data: TableData, pipe: usize) -> TableData {
    let mut fields = Vec::new();
    for field in table.data.iter().flat_map(|data| data.fields()) {
        let mut values: Vec<_> = data.fields.iter().filter(|value| value.field_id == field.id).cloned().collect();
        let bytes = field.kind.bits().unwrap_or(0).div_ceil(8) as usize;
        let zero = sluice_tofino::bfrt::stream(field.id, vec![0; bytes]);
        let count = if table.table_type == "Register" { PIPES } else { 1 };
        let first = values.first().cloned().unwrap_or(zero);
        values.resize(count, first);
        if count == PIPES && pipe < PIPES {
            values = vec![values.swap_remove(pipe)];
        }
        fields.extend(values);
    }
    // Fields of the action are returned in the form in which they were written.
    let own = |field: &&DataField| !fields.iter().any(|filled| filled.field_id == field.field_id);
    let rest: Vec<_> = data.fields.iter().filter(own).cloned().collect();
    TableData { action_id: data.action_id, fields: fields.into_iter().chain(rest).collect() }
}

/// Checks an update of a mirror session, for which the driver has other error codes than for entries of other tables.
fn check_session(kind: Type, id: u32, exists: bool, coalesces: bool) -> Result<(), Refusal> {
    let wrong = id == 0 || (kind == Type::Insert) == exists;
    match (wrong, id) {
        (true, _) => refuse(Code::InvalidArgument, "table:$mirror.cfg Invalid arguments"),
        // Sessions with ids of 1016 and above must be coalescing sessions.
        (false, 1016..) if kind != Type::Delete && !coalesces => {
            refuse(Code::NotFound, "table:$mirror.cfg Object not found")
        }
        (false, _) => Ok(()),
    }
}

fn is_array(table: &Table) -> bool {
    matches!(table.table_type.as_str(), "Register" | "Counter" | "Meter")
}

fn check_key(table: &Table, key: &TableKey) -> Result<(), Refusal> {
    if key.fields.len() != table.key.len() {
        return refuse(Code::InvalidArgument, format!("{} has {} key fields", table.name, table.key.len()));
    }
    for declared in &table.key {
        let Some(field) = key.fields.iter().find(|field| field.field_id == declared.id) else {
            return refuse(Code::InvalidArgument, format!("key field {} is missing", declared.name));
        };
        use key_field::MatchType;
        let (kind, values) = match field.match_type.as_ref().unwrap() {
            MatchType::Exact(exact) => ("Exact", vec![&exact.value]),
            MatchType::Lpm(lpm) => ("LPM", vec![&lpm.value]),
            MatchType::Ternary(ternary) => ("Ternary", vec![&ternary.value, &ternary.mask]),
            MatchType::Range(range) => ("Range", vec![&range.low, &range.high]),
            MatchType::Optional(optional) => {
                ("Optional", optional.is_valid.then_some(&optional.value).into_iter().collect())
            }
        };
        if kind != declared.match_type {
            return refuse(Code::InvalidArgument, format!("key field {} is {}", declared.name, declared.match_type));
        }
        for value in values {
            check_width(declared.kind.bits(), value, &declared.name)?;
        }
    }
    Ok(())
}

fn check_width(bits: Option<u32>, bytes: &[u8], name: &str) -> Result<(), Refusal> {
    match bits {
        Some(bits) if bytes.len() != bits.div_ceil(8) as usize => {
            refuse(Code::InvalidArgument, format!("{name} has {bits} bits, {} bytes are given", bytes.len()))
        }
        _ => Ok(()),
    }
}

pub fn number(field: &DataField) -> u32 {
    sluice_tofino::bfrt::bytes(field).map_or(0, |bytes| sluice_tofino::bfrt::number(bytes) as u32)
}

pub fn key_number(key: &TableKey) -> u32 {
    match key.fields[0].match_type.as_ref().unwrap() {
        key_field::MatchType::Exact(exact) => sluice_tofino::bfrt::number(&exact.value) as u32,
        _ => panic!("not an index"),
    }
}
