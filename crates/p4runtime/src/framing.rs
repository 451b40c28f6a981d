//! Extracts the program from `p4_device_config`, which contains plain JSON or BMv2's message `p4.tmp.P4DeviceConfig`.
//!
//! P4Runtime lets each target define the content of `p4_device_config`. BMv2 accepts the JSON that p4c writes, and also
//! an older message (`proto/p4/tmp/p4config.proto` in PI), which p4lang/tutorials and other clients still send.

use std::borrow::Cow;

use prost::Message;

use crate::pipeline::PipelineError;

/// The message `p4.tmp.P4DeviceConfig`.
#[derive(Clone, PartialEq, Message)]
struct DeviceConfig {
    /// Whether BMv2 discards its state. Ignored here: every commit except `RECONCILE_AND_COMMIT` discards the state.
    #[prost(bool, tag = "1")]
    reassign: bool,
    /// Start options of BMv2. Ignored here.
    #[prost(message, optional, tag = "2")]
    extras: Option<Extras>,
    /// The JSON of the program.
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// The message `p4.tmp.P4DeviceConfig.Extras`.
#[derive(Clone, PartialEq, Message)]
struct Extras {
    #[prost(map = "string, string", tag = "1")]
    kv: std::collections::HashMap<String, String>,
}

/// Returns the JSON of the program in `p4_device_config`.
///
/// # Errors
/// Fails when `config` is empty. A `config` that does not begin with `{` must be a `P4DeviceConfig` with data. This
/// function does not check the JSON itself.
pub fn json(config: &[u8]) -> Result<Cow<'_, [u8]>, PipelineError> {
    let text = config.trim_ascii_start();
    if text.is_empty() {
        return Err(PipelineError::Empty);
    }
    // A P4DeviceConfig never begins with the byte `{`. In protobuf this byte begins a group with field number 15, which
    // the message does not have.
    if text.starts_with(b"{") {
        return Ok(Cow::Borrowed(config));
    }
    match DeviceConfig::decode(config) {
        Ok(message) if message.device_data.is_empty() => Err(PipelineError::NoDeviceData),
        Ok(message) => Ok(Cow::Owned(message.device_data)),
        Err(error) => Err(PipelineError::Framing(error.to_string())),
    }
}
