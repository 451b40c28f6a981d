//! Resolves action profiles, counters, meters, registers, digests and value sets of P4Info against the compiled
//! program.

use sluice_engine::{CounterId, DigestId, MeterId, ProfileId, ProfileLimit, RegisterId, ValueSetId};

use super::table::{ActionBinding, ActionSet, KeyBinding, TableBinding, bind_actions, bind_key, different};
use super::{BindError, Compiled, Objects};
use crate::bits::bytes_of;
use crate::proto::p4::{config::v1 as p4info, v1 as p4};
use crate::translation::Types;
use crate::typespec::DataType;

/// An action profile or selector of P4Info, resolved against the program.
#[derive(Debug)]
pub struct ProfileBinding {
    /// The profile's id in P4Info.
    pub id: u32,
    /// The profile's name in P4Info.
    pub name: String,
    /// The profile's id in the compiled program.
    pub engine: ProfileId,
    /// The actions that members may have.
    pub actions: ActionSet,
    /// Whether the profile is an action selector, which has groups.
    pub with_selector: bool,
    /// Limit on the size of the profile, in one of the units of [`ProfileLimit`]; `None` if unlimited.
    pub limit: Option<ProfileLimit>,
    /// Limit on the `max_size` of a group and on the size of one-shot groups; 0 if unlimited.
    pub max_group_size: u32,
    /// Whether `max_group_size` limits the number of members; otherwise it limits the sum of their weights.
    pub size_counts_members: bool,
    /// Highest weight of a member; 0 if unlimited, which it always is if `size_counts_members` is false.
    pub max_member_weight: u32,
    /// Whether the weights of a group's members must be 0 in messages, because all members count equally.
    pub weights_disallowed: bool,
}

/// An indirect counter of P4Info, resolved against the program.
#[derive(Debug)]
pub struct CounterBinding {
    /// The counter's id in P4Info.
    pub id: u32,
    /// The counter's name in P4Info.
    pub name: String,
    /// The counter's id in the compiled program.
    pub engine: CounterId,
    /// Number of the counter's cells.
    pub size: u64,
}

/// An indirect meter of P4Info, resolved against the program.
#[derive(Debug)]
pub struct MeterBinding {
    /// The meter's id in P4Info.
    pub id: u32,
    /// The meter's name in P4Info.
    pub name: String,
    /// The meter's id in the compiled program.
    pub engine: MeterId,
    /// Number of the meter's cells.
    pub size: u64,
}

/// A register array of P4Info, resolved against the program.
#[derive(Debug)]
pub struct RegisterBinding {
    /// The register's id in P4Info.
    pub id: u32,
    /// The register's name in P4Info.
    pub name: String,
    /// The register's id in the compiled program.
    pub engine: RegisterId,
    /// Number of the array's cells.
    pub size: u64,
    /// The P4Info type of a cell.
    pub data: DataType,
    /// Length of a cell in the engine's form, in bytes.
    pub bytes: usize,
}

/// A digest of P4Info, resolved against the program.
#[derive(Debug)]
pub struct DigestBinding {
    /// The digest's id in P4Info.
    pub id: u32,
    /// The digest's name in P4Info.
    pub name: String,
    /// The digest's id in the compiled program.
    pub engine: DigestId,
    /// The P4Info type of a digest message.
    pub data: DataType,
}

impl DigestBinding {
    /// Returns a digest message in P4Runtime's form, built from the values of its fields.
    pub fn encode(&self, fields: &[Vec<u8>]) -> p4::P4Data {
        self.data.encode(&mut fields.iter().map(Vec::as_slice))
    }
}

/// A parser value set of P4Info, resolved against the program.
#[derive(Debug)]
pub struct ValueSetBinding {
    /// The value set's id in P4Info.
    pub id: u32,
    /// The value set's name in P4Info.
    pub name: String,
    /// The value set's id in the compiled program.
    pub engine: ValueSetId,
    /// The fields of the value set, the most significant first.
    pub key: Vec<KeyBinding>,
    /// Limit on the number of members; 0 if unlimited.
    pub size: usize,
}

type Bound<T> = Result<Objects<T>, BindError>;

fn missing(kind: &'static str, preamble: &p4info::Preamble) -> BindError {
    BindError::Missing { kind, name: preamble.name.clone() }
}

fn same_size(kind: &str, name: &str, p4info: i64, json: u64) -> Result<(), BindError> {
    if u64::try_from(p4info) == Ok(json) {
        return Ok(());
    }
    Err(different(&format!("{kind} {name}"), format!("{p4info} cells"), format!("{json} cells")))
}

/// Returns a limit of P4Info. Zero and negative values mean unlimited and become 0.
fn limit(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// Resolves the action profiles and selectors of P4Info.
pub fn profiles(
    info: &p4info::P4Info,
    program: &impl Compiled,
    actions: &Objects<ActionBinding>,
    tables: &Objects<TableBinding>,
) -> Bound<ProfileBinding> {
    use p4info::action_profile::SelectorSizeSemantics as Semantics;
    Objects::bind(
        &info.action_profiles,
        |profile| profile.preamble.as_ref(),
        |profile, preamble| {
            let (engine, compiled) =
                program.action_profile(&preamble.name).ok_or_else(|| missing("action profile", preamble))?;
            let place = format!("action profile {}", preamble.name);
            if profile.with_selector != compiled.has_selector {
                let selector = |has| if has { "a selector" } else { "no selector" }.to_owned();
                return Err(different(&place, selector(profile.with_selector), selector(compiled.has_selector)));
            }
            // P4Info lists actions only for tables. All tables of a profile have the same actions, so the first table
            // suffices.
            let table = profile.table_ids.first().and_then(|id| tables.get(*id));
            let refs = info
                .tables
                .iter()
                .find(|candidate| {
                    candidate.preamble.as_ref().map(|preamble| preamble.id) == table.map(|table| table.id)
                })
                .map_or(&[][..], |table| &table.action_refs);
            let entries: Vec<_> = refs
                .iter()
                .filter(|reference| reference.scope() != p4info::action_ref::Scope::DefaultOnly)
                .cloned()
                .collect();
            let (size_counts_members, max_member_weight) = match &profile.selector_size_semantics {
                Some(Semantics::SumOfMembers(members)) => (true, limit(members.max_member_weight)),
                Some(Semantics::SumOfWeights(_)) | None => (false, 0),
            };
            let counted = match (profile.with_selector, size_counts_members) {
                (false, _) => ProfileLimit::Members,
                (true, false) => ProfileLimit::Weights,
                (true, true) => ProfileLimit::Places,
            };
            Ok(ProfileBinding {
                id: preamble.id,
                name: preamble.name.clone(),
                engine,
                actions: bind_actions(&entries, actions, &place, |name| program.profile_action(engine, name))?,
                with_selector: profile.with_selector,
                limit: u64::try_from(profile.size).ok().filter(|size| *size > 0).map(counted),
                max_group_size: limit(profile.max_group_size),
                size_counts_members,
                max_member_weight,
                weights_disallowed: profile.weights_disallowed,
            })
        },
    )
}

/// Resolves the indirect counters of P4Info.
pub fn counters(info: &p4info::P4Info, program: &impl Compiled) -> Bound<CounterBinding> {
    Objects::bind(
        &info.counters,
        |counter| counter.preamble.as_ref(),
        |counter, preamble| {
            let (engine, compiled) = program.counter(&preamble.name).ok_or_else(|| missing("counter", preamble))?;
            let size = compiled.size;
            same_size("counter", &preamble.name, counter.size, size)?;
            Ok(CounterBinding { id: preamble.id, name: preamble.name.clone(), engine, size })
        },
    )
}

/// Resolves the indirect meters of P4Info. Fails for single-rate meters, which v1model lacks.
pub fn meters(info: &p4info::P4Info, program: &impl Compiled) -> Bound<MeterBinding> {
    Objects::bind(
        &info.meters,
        |meter| meter.preamble.as_ref(),
        |meter, preamble| {
            let (engine, compiled) = program.meter(&preamble.name).ok_or_else(|| missing("meter", preamble))?;
            same_size("meter", &preamble.name, meter.size, compiled.size)?;
            let spec = meter.spec.unwrap_or_default();
            if spec.r#type() != p4info::meter_spec::Type::TwoRateThreeColor {
                return Err(BindError::Unsupported(format!(
                    "the single-rate type of meter {} (v1model has two-rate meters)",
                    preamble.name
                )));
            }
            let bytes = spec.unit() == p4info::meter_spec::Unit::Bytes;
            if bytes != compiled.bytes {
                let unit = |bytes| if bytes { "bytes" } else { "packets" }.to_owned();
                return Err(different(&format!("meter {}", preamble.name), unit(bytes), unit(compiled.bytes)));
            }
            Ok(MeterBinding { id: preamble.id, name: preamble.name.clone(), engine, size: compiled.size })
        },
    )
}

/// Resolves the registers of P4Info.
pub fn registers(info: &p4info::P4Info, types: &Types, program: &impl Compiled) -> Bound<RegisterBinding> {
    Objects::bind(
        &info.registers,
        |register| register.preamble.as_ref(),
        |register, preamble| {
            let (engine, compiled) = program.register(&preamble.name).ok_or_else(|| missing("register", preamble))?;
            let place = format!("register {}", preamble.name);
            same_size("register", &preamble.name, i64::from(register.size), compiled.size)?;
            let mut data = DataType::resolve(register.type_spec.as_ref(), types, &place)?;
            data.fit(&mut std::iter::once(compiled.width));
            if data.width() != u64::from(compiled.width) {
                return Err(different(
                    &place,
                    format!("{} bits a cell", data.width()),
                    format!("{} bits a cell", compiled.width),
                ));
            }
            Ok(RegisterBinding {
                id: preamble.id,
                name: preamble.name.clone(),
                engine,
                size: compiled.size,
                data,
                bytes: bytes_of(compiled.width),
            })
        },
    )
}

/// Resolves the digests of P4Info.
pub fn digests(info: &p4info::P4Info, types: &Types, program: &impl Compiled) -> Bound<DigestBinding> {
    Objects::bind(
        &info.digests,
        |digest| digest.preamble.as_ref(),
        |digest, preamble| {
            let (engine, compiled) = program.digest(&preamble.name).ok_or_else(|| missing("digest", preamble))?;
            let place = format!("digest {}", preamble.name);
            let mut data = DataType::resolve(digest.type_spec.as_ref(), types, &place)?;
            let widths = |widths: &[u32]| format!("fields of {widths:?} bits");
            let program_widths: Vec<_> = compiled.fields.iter().map(|field| field.width).collect();
            data.fit(&mut program_widths.iter().copied());
            let p4info_widths = data.leaf_widths();
            if p4info_widths != program_widths {
                return Err(different(&place, widths(&p4info_widths), widths(&program_widths)));
            }
            Ok(DigestBinding { id: preamble.id, name: preamble.name.clone(), engine, data })
        },
    )
}

/// Resolves the parser value sets of P4Info.
pub fn value_sets(info: &p4info::P4Info, types: &Types, program: &impl Compiled) -> Bound<ValueSetBinding> {
    Objects::bind(
        &info.value_sets,
        |set| set.preamble.as_ref(),
        |set, preamble| {
            let (engine, compiled) = program.value_set(&preamble.name).ok_or_else(|| missing("value set", preamble))?;
            let place = format!("value set {}", preamble.name);
            let key = bind_key(&fitted(&set.r#match, types, compiled.width, &place)?, types, &place)?;
            let width: u64 = key.iter().map(|field| u64::from(field.width)).sum();
            if width != u64::from(compiled.width) {
                return Err(different(&place, format!("{width} bits"), format!("{} bits", compiled.width)));
            }
            let size = usize::try_from(set.size).unwrap_or(0);
            Ok(ValueSetBinding { id: preamble.id, name: preamble.name.clone(), engine, key, size })
        },
    )
}

/// Returns the fields of a value set with their widths in the program. The compiled program has only one key of `width`
/// bits, which contains all fields of the set. At most one field may have a translated type; its width is `width` less
/// the widths of the other fields.
fn fitted(
    fields: &[p4info::MatchField],
    types: &Types,
    width: u32,
    place: &str,
) -> Result<Vec<p4info::MatchField>, BindError> {
    let mut fields = fields.to_vec();
    let mut translated = None;
    let mut fixed_width = 0_i64;
    for (at, field) in fields.iter().enumerate() {
        if types.sdn(field.type_name.as_ref(), place)?.is_none() {
            fixed_width += i64::from(field.bitwidth);
        } else if translated.replace(at).is_some() {
            return Err(BindError::Unsupported(format!("{place} with several fields of translated types")));
        }
    }
    if let Some(at) = translated {
        fields[at].bitwidth = i32::try_from(i64::from(width) - fixed_width).unwrap_or(0);
    }
    Ok(fields)
}
