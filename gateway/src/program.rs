//! The mapping between the two descriptions of a program, P4Info and `bfrt.json`: the names of P4Info and the driver's
//! ids. The gateway builds the mapping once, when a controller pushes P4Info.

use std::collections::HashMap;

use sluice_engine::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestId, DigestInfo, FieldInfo, HeaderInfo, KeyInfo, MatchKind,
    MeterId, MeterInfo, ParamInfo, ProfileId, ProfileInfo, RegisterId, RegisterInfo, TableId, TableInfo, ValueSetId,
    ValueSetInfo,
};
use sluice_p4runtime::binding::Compiled;
use sluice_p4runtime::proto::p4::config::v1 as p4info;
use thiserror::Error;

use crate::info::{Info, LearnFilter, Table, p4_name};

/// Name of the key field with the priority. In the driver, the smallest number takes precedence.
const PRIORITY: &str = "$MATCH_PRIORITY";

/// The error when P4Info and the driver's program do not match.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{place}: {what}; give the P4Info that came with the bfrt.json of the driver's program")]
pub struct Mismatch {
    place: String,
    what: String,
}

fn mismatch(place: impl Into<String>, what: impl Into<String>) -> Mismatch {
    Mismatch { place: place.into(), what: what.into() }
}

/// A match table.
#[derive(Debug)]
pub struct Match {
    /// The id of the table in the driver.
    pub id: u32,
    /// The ids of the key's fields in the driver, in the order of P4Info.
    pub key: Vec<u32>,
    /// The id of the priority field in the driver, if the table has one.
    pub priority: Option<u32>,
    /// The id of the data field that names a member, if the table has a profile.
    pub member: Option<u32>,
    /// The id of the data field that names a group, if the table has a selector.
    pub group: Option<u32>,
    /// The id of the data field with an entry's count of packets, if a direct counter counts packets.
    pub packets: Option<u32>,
    /// The id of the data field with an entry's count of bytes, if a direct counter counts bytes.
    pub bytes: Option<u32>,
    /// The id of the data field with an entry's time to live in milliseconds, if the table has idle timeouts.
    pub time_to_live: Option<u32>,
    /// The data fields of an entry's meter, if the table has a direct meter.
    pub meter: Option<Rates>,
    info: TableInfo,
}

/// The data fields that configure a meter.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// The ids of the fields for committed rate, committed burst, peak rate and peak burst.
    pub fields: [u32; 4],
    /// Whether the meter measures bytes, with the driver's unit of kilobits; otherwise it measures packets.
    pub of_bytes: bool,
}

impl Rates {
    /// Returns the fields that configure a table's meter, if the table has one.
    fn of(table: &Table) -> Option<Self> {
        let packets = ["$METER_SPEC_CIR_PPS", "$METER_SPEC_CBS_PKTS", "$METER_SPEC_PIR_PPS", "$METER_SPEC_PBS_PKTS"];
        let bytes = ["$METER_SPEC_CIR_KBPS", "$METER_SPEC_CBS_KBITS", "$METER_SPEC_PIR_KBPS", "$METER_SPEC_PBS_KBITS"];
        let find = |names: [&str; 4], of_bytes| {
            let ids: Vec<u32> = names.iter().filter_map(|name| table.data_id(name)).collect();
            Some(Self { fields: ids.try_into().ok()?, of_bytes })
        };
        find(packets, false).or_else(|| find(bytes, true))
    }
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSet {
    /// The id of the value set in the driver.
    pub id: u32,
    /// The ids of the fields in the driver. A member has a value and a mask for each field.
    pub key: Vec<u32>,
    info: ValueSetInfo,
}

/// An action of a table or profile.
#[derive(Debug)]
pub struct Call {
    /// The id of the action in the driver.
    pub id: u32,
    /// The ids of the parameters in the driver, in the order of P4Info.
    pub params: Vec<u32>,
    info: ActionInfo,
}

/// An action profile, with its selector if it has one.
#[derive(Debug)]
pub struct Profile {
    /// The id of the driver's table of members.
    pub members: u32,
    /// The id of the key field in the table of members.
    pub member_key: u32,
    /// The selector, if the profile has one.
    pub selector: Option<Selector>,
    actions: Vec<ActionId>,
    info: ProfileInfo,
}

/// The driver's table of the groups of a profile.
#[derive(Debug)]
pub struct Selector {
    /// The id of the driver's table of groups.
    pub id: u32,
    /// The id of the key field in the table of groups.
    pub key: u32,
    /// The id of the data field that lists the members.
    pub members: u32,
    /// The id of the data field that lists which members are active.
    pub active: u32,
    /// The id of the data field with the number of members for which the driver reserves memory.
    pub max_size: u32,
}

/// An array of registers, counters or meters.
#[derive(Debug)]
pub struct Cells<I> {
    /// The id of the array in the driver.
    pub id: u32,
    /// The id of the key's only field, the index.
    pub index: u32,
    /// The ids of a cell's fields in the driver: for a register in the order of P4Info, for a counter packets and
    /// bytes (`None` if the counter does not count them), for a meter in the order of [`Rates::fields`].
    pub fields: Vec<Option<u32>>,
    info: I,
}

/// A digest of the program.
#[derive(Debug)]
pub struct Learn {
    /// The id of the digest in the driver.
    pub id: u32,
    /// The ids of the fields in the driver, in the order of P4Info.
    pub fields: Vec<u32>,
    info: DigestInfo,
}

/// The objects of the driver that the names of P4Info denote.
#[derive(Debug, Default)]
pub struct Program {
    /// The match tables, by [`TableId`].
    pub tables: Vec<Match>,
    /// The actions, by [`ActionId`].
    pub actions: Vec<Call>,
    /// The action profiles, by [`ProfileId`].
    pub profiles: Vec<Profile>,
    /// The registers, by [`RegisterId`].
    pub registers: Vec<Cells<RegisterInfo>>,
    /// The indirect counters, by [`CounterId`].
    pub counters: Vec<Cells<CounterInfo>>,
    /// The indirect meters, by [`MeterId`].
    pub meters: Vec<Cells<MeterInfo>>,
    /// The digests, by [`DigestId`].
    pub digests: Vec<Learn>,
    /// The value sets, by [`ValueSetId`].
    pub value_sets: Vec<ValueSet>,
    /// The actions of each table without a profile.
    of_table: HashMap<TableId, Vec<ActionId>>,
}

impl Program {
    /// Maps the program of the driver. P4Info determines the digests, and the order of the fields of registers and
    /// digests.
    ///
    /// # Errors
    /// Fails when a table in `bfrt.json` lacks a field that every table of its kind has, or when P4Info has a field
    /// that the driver lacks.
    pub fn new(info: &Info, types: &p4info::P4Info) -> Result<Self, Mismatch> {
        let mut program = Self::default();
        for table in info.tables.iter().filter(|table| table.table_type == "Action") {
            program.add_profile(info, table)?;
        }
        for table in info.tables.iter().filter(|table| table.table_type.starts_with("MatchAction_")) {
            program.add_table(table)?;
        }
        for table in &info.tables {
            match table.table_type.as_str() {
                "Register" => program.registers.push(register(table, types)?),
                "Counter" => program.counters.push(counter(table)?),
                "Meter" => program.meters.push(meter(table)?),
                "ParserValueSet" => program.value_sets.push(value_set(table)),
                _ => {}
            }
        }
        for digest in &types.digests {
            let name = digest.preamble.as_ref().map_or("", |preamble| &preamble.name);
            let of = struct_name(digest.type_spec.as_ref());
            // In `bfrt.json` a digest is called a learn filter. It may have the name of the digest's message type.
            let filter = info.learn_filters.iter().find(|filter| {
                let filter = p4_name(&filter.name);
                filter == name || Some(filter) == of
            });
            if let Some(filter) = filter {
                program.digests.push(learn(name, filter, digest.type_spec.as_ref(), types)?);
            }
        }
        Ok(program)
    }

    fn add_actions(&mut self, table: &Table) -> Vec<ActionId> {
        let first = self.actions.len() as u32;
        for action in &table.action_specs {
            // Fields whose names begin with `$` belong to the entry, not to the action.
            let params: Vec<_> = action.data.iter().filter(|field| !field.name.starts_with('$')).collect();
            let infos = params
                .iter()
                .map(|field| ParamInfo { name: field.name.clone(), width: field.kind.bits().unwrap_or(0) });
            let info = ActionInfo { name: action.name.clone(), params: infos.collect() };
            self.actions.push(Call { id: action.id, params: params.iter().map(|field| field.id).collect(), info });
        }
        (first..self.actions.len() as u32).map(ActionId).collect()
    }

    fn add_profile(&mut self, info: &Info, table: &Table) -> Result<(), Mismatch> {
        let selector = info
            .tables
            .iter()
            .find(|candidate| candidate.table_type == "Selector" && candidate.depends_on.contains(&table.id));
        let selector = selector.map(|selector| {
            let field = |name| selector.data_id(name).ok_or_else(|| lacks(selector, name));
            Ok(Selector {
                id: selector.id,
                key: only_key(selector)?,
                members: field("$ACTION_MEMBER_ID")?,
                active: field("$ACTION_MEMBER_STATUS")?,
                max_size: field("$MAX_GROUP_SIZE")?,
            })
        });
        let actions = self.add_actions(table);
        let selector = selector.transpose()?;
        let info = ProfileInfo {
            name: table.p4_name().to_owned(),
            size: table.size,
            has_selector: selector.is_some(),
            tables: Vec::new(),
        };
        self.profiles.push(Profile { members: table.id, member_key: only_key(table)?, selector, actions, info });
        Ok(())
    }

    fn add_table(&mut self, table: &Table) -> Result<(), Mismatch> {
        let id = TableId(self.tables.len() as u32);
        let profile = self.profiles.iter().position(|profile| table.depends_on.contains(&profile.members));
        let keys: Vec<_> = table.key.iter().filter(|key| !key.name.starts_with('$')).collect();
        let infos = keys.iter().map(|key| {
            let place = || format!("bfrt.json, table {}, key field {}", table.name, key.name);
            Ok(KeyInfo {
                name: key.name.clone(),
                kind: match key.match_type.as_str() {
                    "Exact" => MatchKind::Exact,
                    "LPM" => MatchKind::Lpm,
                    "Ternary" => MatchKind::Ternary,
                    "Range" => MatchKind::Range,
                    "Optional" => MatchKind::Optional,
                    other => return Err(mismatch(place(), format!("the match kind {other} is unknown"))),
                },
                width: key.kind.bits().ok_or_else(|| mismatch(place(), "it has no width"))?,
            })
        });
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        let actions = self.add_actions(table);
        let priority = table.key.iter().find(|key| key.name == PRIORITY).map(|key| key.id);
        let time_to_live = table.data_id("$ENTRY_TTL");
        let info = TableInfo {
            name: table.p4_name().to_owned(),
            keys: infos,
            actions: actions.clone(),
            size: table.size,
            const_entries: false,
            const_default: table.has_const_default_action,
            direct_counter: table.data_id("$COUNTER_SPEC_PKTS").or(table.data_id("$COUNTER_SPEC_BYTES")).is_some(),
            direct_meter: None, // P4Info names the meter; `Match::meter` has the driver's fields
            profile: profile.map(|profile| ProfileId(profile as u32)),
            support_timeout: time_to_live.is_some(),
            needs_priority: priority.is_some(),
        };
        self.of_table.insert(id, actions);
        self.tables.push(Match {
            id: table.id,
            key: keys.iter().map(|key| key.id).collect(),
            priority,
            member: table.data_id("$ACTION_MEMBER_ID"),
            group: table.data_id("$SELECTOR_GROUP_ID"),
            packets: table.data_id("$COUNTER_SPEC_PKTS"),
            bytes: table.data_id("$COUNTER_SPEC_BYTES"),
            time_to_live,
            meter: Rates::of(table),
            info,
        });
        Ok(())
    }

    /// Returns the objects to which the ids in the shadow (the gateway's copy of what clients wrote) refer: the tables,
    /// profiles, meters, digests and value sets, each kind in the order of these ids. Each object is a pair of its kind
    /// and name, as one text, and its id in the driver.
    pub fn objects(&self) -> Vec<(String, u32)> {
        let tables = self.tables.iter().map(|table| ("table", &table.info.name, table.id));
        let profiles = self.profiles.iter().map(|profile| ("profile", &profile.info.name, profile.members));
        let meters = self.meters.iter().map(|meter| ("meter", &meter.info.name, meter.id));
        let digests = self.digests.iter().map(|digest| ("digest", &digest.info.name, digest.id));
        let sets = self.value_sets.iter().map(|set| ("value set", &set.info.name, set.id));
        let all = tables.chain(profiles).chain(meters).chain(digests).chain(sets);
        all.map(|(kind, name, id)| (format!("{kind} {name}"), id)).collect()
    }

    /// Returns the action profile of a table, if it has one.
    pub fn profile_of(&self, table: TableId) -> Option<ProfileId> {
        self.tables.get(table.index())?.info.profile
    }

    /// Returns whether a meter measures bytes; otherwise it measures packets.
    pub fn counts_bytes(&self, meter: MeterId) -> bool {
        self.meters[meter.index()].info.bytes
    }

    fn named(&self, actions: &[ActionId], name: &str) -> Option<ActionId> {
        actions.iter().copied().find(|action| self.actions[action.index()].info.name == name)
    }
}

fn lacks(table: &Table, field: &str) -> Mismatch {
    mismatch(format!("bfrt.json, table {}", table.name), format!("it has no field {field}"))
}

fn only_key(table: &Table) -> Result<u32, Mismatch> {
    table.key.first().map(|key| key.id).ok_or_else(|| mismatch(format!("bfrt.json, table {}", table.name), "no key"))
}

fn struct_name(spec: Option<&p4info::P4DataTypeSpec>) -> Option<&str> {
    use p4info::p4_data_type_spec::TypeSpec;
    match spec.and_then(|spec| spec.type_spec.as_ref()) {
        Some(TypeSpec::Struct(named)) => Some(&named.name),
        Some(TypeSpec::Header(named)) => Some(&named.name),
        _ => None,
    }
}

/// Returns the names of the fields of a struct or header, in the order of P4Info.
fn members<'t>(spec: Option<&p4info::P4DataTypeSpec>, types: &'t p4info::P4Info) -> Option<Vec<&'t str>> {
    let (name, info) = (struct_name(spec)?, types.type_info.as_ref()?);
    let structs =
        info.structs.get(name).map(|definition| definition.members.iter().map(|member| member.name.as_str()).collect());
    structs.or_else(|| Some(info.headers.get(name)?.members.iter().map(|member| member.name.as_str()).collect()))
}

fn register(table: &Table, types: &p4info::P4Info) -> Result<Cells<RegisterInfo>, Mismatch> {
    let name = table.p4_name();
    let fields: Vec<_> = table.data.iter().flat_map(crate::info::Data::fields).collect();
    let spec = types
        .registers
        .iter()
        .find(|register| register.preamble.as_ref().is_some_and(|preamble| preamble.name == name));
    let order = spec.and_then(|register| members(register.type_spec.as_ref(), types));
    let fields = match order {
        None => fields,
        Some(order) => {
            let find = |member: &&str| {
                let field = fields.iter().find(|field| field.name.rsplit('.').next() == Some(*member)).copied();
                field.ok_or_else(|| mismatch(format!("register {name}"), format!("the driver has no field {member}")))
            };
            order.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    let width = fields.iter().map(|field| field.kind.bits().unwrap_or(0)).sum();
    let info = RegisterInfo { name: name.to_owned(), size: table.size, width };
    Ok(Cells {
        id: table.id,
        index: only_key(table)?,
        fields: fields.iter().map(|field| Some(field.id)).collect(),
        info,
    })
}

fn counter(table: &Table) -> Result<Cells<CounterInfo>, Mismatch> {
    let info = CounterInfo { name: table.p4_name().to_owned(), size: table.size };
    let fields = ["$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"].map(|name| table.data_id(name));
    Ok(Cells { id: table.id, index: only_key(table)?, fields: fields.into(), info })
}

fn meter(table: &Table) -> Result<Cells<MeterInfo>, Mismatch> {
    let rates = Rates::of(table).ok_or_else(|| lacks(table, "$METER_SPEC_CIR_PPS or $METER_SPEC_CIR_KBPS"))?;
    let info = MeterInfo { name: table.p4_name().to_owned(), size: table.size, bytes: rates.of_bytes, table: None };
    Ok(Cells { id: table.id, index: only_key(table)?, fields: rates.fields.map(Some).into(), info })
}

fn value_set(table: &Table) -> ValueSet {
    let width = table.key.iter().filter_map(|key| key.kind.bits()).sum();
    let info = ValueSetInfo { name: table.p4_name().to_owned(), size: table.size, width };
    ValueSet { id: table.id, key: table.key.iter().map(|key| key.id).collect(), info }
}

fn learn(
    name: &str,
    filter: &LearnFilter,
    spec: Option<&p4info::P4DataTypeSpec>,
    types: &p4info::P4Info,
) -> Result<Learn, Mismatch> {
    let order = members(spec, types).unwrap_or_else(|| filter.fields.iter().map(|field| &field.name[..]).collect());
    let find = |member: &&str| {
        let field = filter.fields.iter().find(|field| field.name == *member);
        field.ok_or_else(|| mismatch(format!("digest {name}"), format!("the driver has no field {member}")))
    };
    let fields = order.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let infos =
        fields.iter().map(|field| FieldInfo { name: field.name.clone(), width: field.kind.bits().unwrap_or(0) });
    let info = DigestInfo { name: name.to_owned(), fields: infos.collect() };
    Ok(Learn { id: filter.id, fields: fields.iter().map(|field| field.id).collect(), info })
}

macro_rules! by_name {
    ($($find:ident, $list:ident => $id:ident, $of:ty;)*) => {$(
        fn $find(&self, name: &str) -> Option<($id, &$of)> {
            let place = self.$list.iter().position(|object| object.info.name == name)?;
            Some(($id(place as u32), &self.$list[place].info))
        }
    )*};
}

impl Compiled for Program {
    by_name! {
        table, tables => TableId, TableInfo;
        action_profile, profiles => ProfileId, ProfileInfo;
        counter, counters => CounterId, CounterInfo;
        meter, meters => MeterId, MeterInfo;
        register, registers => RegisterId, RegisterInfo;
        digest, digests => DigestId, DigestInfo;
        value_set, value_sets => ValueSetId, ValueSetInfo;
    }

    fn tables(&self) -> impl Iterator<Item = &TableInfo> {
        self.tables.iter().map(|table| &table.info)
    }

    fn action(&self, table: TableId, name: &str) -> Option<ActionId> {
        match self.profile_of(table) {
            Some(profile) => self.profile_action(profile, name),
            None => self.named(&self.of_table[&table], name),
        }
    }

    fn profile_action(&self, profile: ProfileId, name: &str) -> Option<ActionId> {
        self.named(&self.profiles[profile.index()].actions, name)
    }

    fn action_info(&self, id: ActionId) -> &ActionInfo {
        &self.actions[id.index()].info
    }

    fn header_types(&self) -> impl Iterator<Item = &HeaderInfo> {
        std::iter::empty()
    }
}
