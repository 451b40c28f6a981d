//! What a program comes in: nothing, or BMv2's `p4.tmp.P4DeviceConfig`.
//!
//! The P4Runtime specification leaves `p4_device_config` to the target. BMv2 takes p4c's JSON as it is, and the message that came
//! before it (PI's `proto/p4/tmp/p4config.proto`), which p4lang/tutorials and others still send.

use std::borrow::Cow;

use prost::Message;

use crate::pipeline::PipelineError;

/// `p4.tmp.P4DeviceConfig`.
#[derive(Clone, PartialEq, Message)]
struct DeviceConfig {
    /// Whether BMv2 forgets its state: every commit but RECONCILE_AND_COMMIT does here.
    #[prost(bool, tag = "1")]
    reassign: bool,
    /// What BMv2 was started with.
    #[prost(message, optional, tag = "2")]
    extras: Option<Extras>,
    /// The JSON.
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// `p4.tmp.P4DeviceConfig.Extras`.
#[derive(Clone, PartialEq, Message)]
struct Extras {
    #[prost(map = "string, string", tag = "1")]
    kv: std::collections::HashMap<String, String>,
}

/// The program's JSON out of `p4_device_config`.
///
/// # Errors
/// When it has no JSON in it, as far as that can be told without reading the JSON.
pub fn json(config: &[u8]) -> Result<Cow<'_, [u8]>, PipelineError> {
    let text = config.trim_ascii_start();
    if text.is_empty() {
        return Err(PipelineError::Empty);
    }
    // No message begins so: it would be a group, of a field that P4DeviceConfig does not have.
    if text.starts_with(b"{") {
        return Ok(Cow::Borrowed(config));
    }
    match DeviceConfig::decode(config) {
        Ok(message) if message.device_data.is_empty() => Err(PipelineError::NoDeviceData),
        Ok(message) => Ok(Cow::Owned(message.device_data)),
        Err(error) => Err(PipelineError::Framing(error.to_string())),
    }
}
