//! Reads and writes of digest configurations, which state whether a digest is reported and in which batches.

use sluice_engine::DigestConfig;

use super::{Operation, Source, Target, amount, unknown};
use crate::binding::DigestBinding;
use crate::fault::Outcome;
use crate::proto::p4::v1 as p4;

/// Starts, reconfigures or stops the reports of a digest.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::DigestEntry) -> Outcome {
    let digest = target.binding.digests.get(entry.digest_id).ok_or_else(|| unknown("digest", entry.digest_id))?;
    let place = format!("digest {}", digest.name);
    let enabled = target.engine.digest_config(digest.engine).is_some();
    operation.check_presence(enabled).map_err(|fault| fault.within(&format!("configuration of {place}")))?;
    let config = match operation {
        Operation::Delete => None,
        Operation::Insert | Operation::Modify => {
            Some(decode_config(entry.config.unwrap_or_default()).map_err(|fault| fault.within(&place))?)
        }
    };
    target.engine.digest_configure(digest.engine, config);
    Ok(())
}

fn decode_config(config: p4::digest_entry::Config) -> Outcome<DigestConfig> {
    Ok(DigestConfig {
        max_timeout_ns: amount(config.max_timeout_ns, "max_timeout_ns")?,
        max_list_size: amount(config.max_list_size, "max_list_size")?,
        ack_timeout_ns: amount(config.ack_timeout_ns, "ack_timeout_ns")?,
    })
}

/// Reads the configuration of one digest, or of all enabled digests.
pub fn read(source: &Source<'_>, entry: &p4::DigestEntry) -> Outcome<Vec<p4::DigestEntry>> {
    let read = |digest: &DigestBinding| {
        let config = source.engine.digest_config(digest.engine)?;
        Some(p4::DigestEntry {
            digest_id: digest.id,
            config: Some(p4::digest_entry::Config {
                max_timeout_ns: config.max_timeout_ns as i64,
                max_list_size: config.max_list_size as i32,
                ack_timeout_ns: config.ack_timeout_ns as i64,
            }),
        })
    };
    match entry.digest_id {
        0 => Ok(source.binding.digests.iter().filter_map(read).collect()),
        id => {
            let digest = source.binding.digests.get(id).ok_or_else(|| unknown("digest", id))?;
            Ok(read(digest).into_iter().collect())
        }
    }
}
