//! The program inside `p4_device_config`: plain JSON, or wrapped in BMv2's `p4.tmp.P4DeviceConfig`.
//!
//! P4Runtime leaves `p4_device_config` to the target. BMv2 accepts p4c's JSON itself, and also its older message (PI's
//! `proto/p4/tmp/p4config.proto`), which p4lang/tutorials and other clients still send.

use std::borrow::Cow;

use prost::Message;

use crate::pipeline::PipelineError;

/// The message `p4.tmp.P4DeviceConfig`.
#[derive(Clone, PartialEq, Message)]
struct DeviceConfig {
    /// Whether BMv2 discards its state; ignored here, where every commit but RECONCILE_AND_COMMIT does.
    #[prost(bool, tag = "1")]
    reassign: bool,
    /// BMv2's start options; ignored here.
    #[prost(message, optional, tag = "2")]
    extras: Option<Extras>,
    /// The program's JSON.
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// The message `p4.tmp.P4DeviceConfig.Extras`.
#[derive(Clone, PartialEq, Message)]
struct Extras {
    #[prost(map = "string, string", tag = "1")]
    kv: std::collections::HashMap<String, String>,
}

/// Returns the program's JSON from `p4_device_config`.
///
/// # Errors
/// Fails when `config` is empty, or neither begins with `{` nor is a `P4DeviceConfig` with data. The JSON itself is not
/// checked here.
pub fn json(config: &[u8]) -> Result<Cow<'_, [u8]>, PipelineError> {
    let text = config.trim_ascii_start();
    if text.is_empty() {
        return Err(PipelineError::Empty);
    }
    // A P4DeviceConfig never begins with this byte: it would be a group, of a field that the message does not have.
    if text.starts_with(b"{") {
        return Ok(Cow::Borrowed(config));
    }
    match DeviceConfig::decode(config) {
        Ok(message) if message.device_data.is_empty() => Err(PipelineError::NoDeviceData),
        Ok(message) => Ok(Cow::Owned(message.device_data)),
        Err(error) => Err(PipelineError::Framing(error.to_string())),
    }
}
