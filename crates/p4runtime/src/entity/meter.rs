//! Reads and writes of indirect meters.

use sluice_engine::{CounterData, MeterConfig, MeterView};

use super::counter::{cells, encode_data};
use super::{Operation, StateReader, Target, amount, cell_index, in_pieces, unknown};
use crate::binding::MeterBinding;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;

/// Decodes the configuration of a meter.
///
/// # Errors
/// `INVALID_ARGUMENT` for negative values, for a committed rate above the peak rate and for an excess burst.
pub fn decode_config(config: &p4::MeterConfig) -> Outcome<MeterConfig> {
    if config.eburst != 0 {
        return Err(Fault::invalid("eburst is for single-rate meters, v1model's have two rates; leave it 0"));
    }
    let config = MeterConfig {
        cir: amount(config.cir, "cir")?,
        cburst: amount(config.cburst, "cburst")?,
        pir: amount(config.pir, "pir")?,
        pburst: amount(config.pburst, "pburst")?,
    };
    if config.cir > config.pir {
        return Err(Fault::invalid(format!(
            "cir ({}) is above pir ({}); give a cir of at most pir",
            config.cir, config.pir
        )));
    }
    Ok(config)
}

/// Encodes the configuration of a meter. Values above the range of a message field become the field's maximum.
pub fn encode_config(config: MeterConfig) -> p4::MeterConfig {
    let clamp = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    p4::MeterConfig {
        cir: clamp(config.cir),
        cburst: clamp(config.cburst),
        pir: clamp(config.pir),
        pburst: clamp(config.pburst),
        eburst: 0,
    }
}

/// Returns whether a write clears a meter's counts by colour. A write whose message contains the counts clears them.
/// All counts in the message must be zero, because a write cannot set other values.
///
/// # Errors
/// `INVALID_ARGUMENT` for counts other than zero.
pub fn clears_counts(counts: Option<&p4::MeterCounterData>) -> Outcome<bool> {
    let Some(p4::MeterCounterData { green, yellow, red }) = counts else { return Ok(false) };
    let zero = |counts: &Option<p4::CounterData>| counts.is_none_or(|counts| counts == p4::CounterData::default());
    if [green, yellow, red].into_iter().all(zero) {
        return Ok(true);
    }
    Err(Fault::invalid("a meter's counts by colour can only be cleared; give 0"))
}

/// Encodes a meter's packet and byte counts by colour.
pub fn encode_counts(counts: [CounterData; 3]) -> p4::MeterCounterData {
    let [green, yellow, red] = counts.map(|counts| Some(encode_data(counts)));
    p4::MeterCounterData { green, yellow, red }
}

/// Configures one cell of a meter, or all cells if the entry has no index. If the message contains counts by colour,
/// clears the cells' counts by colour.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::MeterEntry) -> Outcome {
    let meter = target.binding.meters.get(entry.meter_id).ok_or_else(|| unknown("meter", entry.meter_id))?;
    let place = format!("meter {}", meter.name);
    operation.must_modify(&place)?;
    let clear = clears_counts(entry.counter_data.as_ref()).map_err(|fault| fault.within(&place))?;
    let index = cell_index(entry.index.as_ref(), meter.size, &place)?;
    let config = entry.config.as_ref().map(decode_config).transpose().map_err(|fault| fault.within(&place))?;
    for cell in cells(index, meter.size) {
        target.engine.meter_write(target.now, meter.engine, cell, config)?;
        if clear {
            target.engine.meter_clear_counts(meter.engine, cell)?;
        }
    }
    Ok(())
}

/// Reads one cell, all cells of one meter, or all cells of all meters. Includes counts by colour if the pattern
/// contains such counts.
pub fn read(reader: &impl StateReader, entry: &p4::MeterEntry) -> Outcome<Vec<p4::MeterEntry>> {
    let mut entries = Vec::new();
    let mut read = |meter: &MeterBinding| {
        let index = cell_index(entry.index.as_ref(), meter.size, &format!("meter {}", meter.name))?;
        in_pieces(reader, cells(index, meter.size), |source, range| {
            for cell in range {
                let MeterView { config, counts } = source.engine.meter_read(meter.engine, cell)?;
                entries.push(p4::MeterEntry {
                    meter_id: meter.id,
                    index: Some(p4::Index { index: cell as i64 }),
                    config: config.map(encode_config),
                    counter_data: entry.counter_data.map(|_| encode_counts(counts)),
                });
            }
            Ok(())
        })
    };
    match entry.meter_id {
        0 => reader.binding().meters.iter().try_for_each(read)?,
        id => read(reader.binding().meters.get(id).ok_or_else(|| unknown("meter", id))?)?,
    }
    Ok(entries)
}
