//! Loads programs into the driver. A controller pushes a program as the device config of P4Runtime, in the form of
//! Barefoot's message `BfPipelineConfig`. The fields of this message are those of `ForwardingPipelineConfig` in BF
//! Runtime.

use std::collections::BTreeSet;
use std::time::Duration;

use prost::Message;
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::{Code, Status};

use crate::client::{self, Address, Driver, Events};
use crate::info::Info;
use crate::load::{DriverProgram, Loaded};
use crate::proto::set_forwarding_pipeline_config_request::Action;
use crate::proto::stream_message_response::Update;
use crate::proto::{
    ForwardingPipelineConfig, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponseType as Progress,
};

/// Time limit for a load. A load needs 2 s with Tofino's software model, and a minute on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Time limit for the driver's notification that a load has finished, which the driver sends just before its reply.
const FINISHED: Duration = Duration::from_secs(10);
/// Limit on the number of attempts to load. The driver abandons a load when its device replies slowly, and tries again
/// when it receives the request over a new connection.
const TRIES: u32 = 4;
/// Time before the second attempt. The time before each further attempt is twice as long.
const BACKOFF: Duration = Duration::from_millis(500);

/// A program that a controller pushes for the driver to run.
#[derive(Debug, Clone)]
pub struct PushedProgram {
    /// The name and files of the program.
    pub config: ForwardingPipelineConfig,
    /// The tables of the program, from its `bfrt.json`.
    pub info: Info,
}

impl PushedProgram {
    /// Decodes a device config. Returns `None` for an empty one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the device config has another form.
    #[allow(clippy::result_large_err)]
    pub fn new(device_config: &[u8]) -> Result<Option<Self>, Status> {
        if device_config.is_empty() {
            return Ok(None);
        }
        let text =
            "p4_device_config is not a BfPipelineConfig; give one, or none to use the program that the driver runs";
        let config = ForwardingPipelineConfig::decode(device_config)
            .map_err(|error| Status::invalid_argument(format!("{text} ({error})")))?;
        let info = serde_json::from_slice(&config.bfruntime_info).map_err(|error| {
            Status::invalid_argument(format!("p4_device_config, bfrt.json: {error}; give what p4c wrote"))
        })?;
        Ok(Some(Self { config, info }))
    }

    /// Returns whether the driver runs this program. Compares the name and files with those that the driver returns; if
    /// the pushed config contains no compiled files, compares only the names and ids of the tables.
    pub fn is(&self, running: &DriverProgram) -> bool {
        if self.config.profiles.is_empty() {
            // The driver adds its own tables to those of the program, so the pushed tables are a subset.
            return names(&self.info).is_subset(&names(&running.info));
        }
        (&self.config.p4_name, &self.config.bfruntime_info) == (&running.config.p4_name, &running.config.bfruntime_info)
            && files(&self.config) == files(&running.config)
    }

    /// Checks the P4Info of a config against the tables of this program, before the driver loads the program.
    ///
    /// # Errors
    /// The errors of [`Loaded::new`].
    #[allow(clippy::result_large_err)]
    pub fn verify(&self, config: p4::ForwardingPipelineConfig) -> Result<(), Status> {
        // This check does not need the tables of the device itself, because they do not depend on the program.
        Loaded::new(config, &self.info, &Info::default()).map(|_| ())
    }

    /// Refuses a program that the driver cannot load. `requested` is the program's name from the flag `--program`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the missing name or file, `FAILED_PRECONDITION` when `--program` names another program.
    #[allow(clippy::result_large_err)]
    pub fn check(&self, requested: Option<&str>) -> Result<(), Status> {
        let name = &self.config.p4_name;
        let missing = |what: String| Err(Status::invalid_argument(format!("p4_device_config of {name:?}: {what}")));
        if name.is_empty() || name.contains(['/', '$']) {
            return missing("it names no program; give p4_name".to_owned());
        }
        if let Some(requested) = requested.filter(|requested| requested != name) {
            return Err(Status::failed_precondition(format!(
                "p4_device_config is of the program {name:?} and --program is {requested}; start the gateway with the other name, or without"
            )));
        }
        if self.config.profiles.is_empty() {
            return missing(
                "the driver runs another program, and there is none to load; give profiles with context and binary, or start \
                 bf_switchd with the program that is to run"
                    .to_owned(),
            );
        }
        for profile in &self.config.profiles {
            if profile.profile_name.is_empty() || profile.profile_name.contains('/') {
                return missing("a profile has no name; give profile_name".to_owned());
            }
            if profile.context.is_empty() || profile.binary.is_empty() {
                return missing(format!("profile {}: give context and binary", profile.profile_name));
            }
            if profile.pipe_scope.is_empty() {
                return missing(format!("profile {}: give the pipes that run it (pipe_scope)", profile.profile_name));
            }
        }
        Ok(())
    }
}

fn files(config: &ForwardingPipelineConfig) -> BTreeSet<(&str, &[u8])> {
    config.profiles.iter().map(|profile| (profile.profile_name.as_str(), profile.binary.as_slice())).collect()
}

fn names(info: &Info) -> BTreeSet<(u32, String)> {
    info.tables.iter().map(|table| (table.id, table.name.clone())).collect()
}

/// Causes the driver to load these programs in place of those that it runs. The driver writes the files of the programs
/// to `folder` on its own machine. The load resets all state of the device. No other connection may be bound to a
/// program of the driver.
///
/// # Errors
/// Fails with the error of the driver, after [`TRIES`] attempts.
pub async fn load(
    address: &Address,
    folder: &str,
    configs: &[ForwardingPipelineConfig],
) -> Result<(Driver, Events), Status> {
    let mut wait = BACKOFF;
    for tried in 1.. {
        match load_once(address, folder, configs).await {
            Ok(loaded) => return Ok(loaded),
            Err(status) if tried == TRIES => {
                let text = format!(
                    "loading {:?} with the driver at {} into {folder}: {}; check bf_switchd's log",
                    configs.iter().map(|config| &config.p4_name).collect::<Vec<_>>(),
                    address.uri,
                    status.message()
                );
                return Err(Status::new(status.code(), text));
            }
            Err(status) => tracing::warn!(tried, "the driver has not loaded the program: {}", status.message()),
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    unreachable!("the last try returns")
}

async fn load_once(
    address: &Address,
    folder: &str,
    configs: &[ForwardingPipelineConfig],
) -> Result<(Driver, Events), Status> {
    let (mut grpc, mut events) = client::open(address).await?;
    let request = SetForwardingPipelineConfigRequest {
        device_id: address.device,
        client_id: address.client,
        action: Action::VerifyAndWarmInitBeginAndEnd as i32,
        base_path: folder.to_owned(),
        config: configs.to_vec(),
    };
    client::within(PATIENCE, grpc.set_forwarding_pipeline_config(request))
        .await
        .map_err(|status| Status::new(failure_code(status.code()), status.message()))?;
    // The reply does not prove that the program was loaded: after a failed load, the driver replies OK to the next
    // request without loading.
    let finished = async {
        loop {
            match events.next().await {
                Some(Update::SetForwardingPipelineConfigResponse(progress))
                    if progress.set_forwarding_pipeline_config_response_type() == Progress::WarmInitFinished =>
                {
                    return Ok(());
                }
                Some(_) => {}
                None => return Err(Status::unavailable("the driver has ended its stream")),
            }
        }
    };
    client::within(FINISHED, finished)
        .await
        .map_err(|_| Status::unavailable("the driver does not report that it has finished"))?;
    Ok((Driver::bound(grpc, address.clone()).await?, events))
}

/// Returns the code of a failed load for the client: `INTERNAL` in place of `UNKNOWN`, which the driver uses for most
/// of its failures; any other code unchanged.
fn failure_code(code: Code) -> Code {
    if code == Code::Unknown { Code::Internal } else { code }
}
