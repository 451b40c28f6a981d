//! Programs for the driver to load: Barefoot's pipeline config, which a controller pushes as P4Runtime's device config. Its fields
//! are those of BF Runtime's `ForwardingPipelineConfig`.

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

/// A load on the model takes 2 s, and a minute on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// The driver says that it has finished just before its answer.
const FINISHED: Duration = Duration::from_secs(10);
/// How often a load is tried. A driver whose device is slow to answer gives up; with another connection it starts anew.
const TRIES: u32 = 4;
/// The wait after the first failed try; each further one is twice as long.
const BACKOFF: Duration = Duration::from_millis(500);

/// What a controller gives the driver to run.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its name and files.
    pub config: ForwardingPipelineConfig,
    /// Its tables.
    pub info: Info,
}

impl Given {
    /// What a device config has; `None` of an empty one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is of another form.
    #[allow(clippy::result_large_err)]
    pub fn new(device_config: &[u8]) -> Result<Option<Self>, Status> {
        if device_config.is_empty() {
            return Ok(None);
        }
        let text = "p4_device_config is no BfPipelineConfig; give one, or none to use the program that the driver runs";
        let config = ForwardingPipelineConfig::decode(device_config)
            .map_err(|error| Status::invalid_argument(format!("{text} ({error})")))?;
        let info = serde_json::from_slice(&config.bfruntime_info).map_err(|error| {
            Status::invalid_argument(format!("p4_device_config, bfrt.json: {error}; give what p4c wrote"))
        })?;
        Ok(Some(Self { config, info }))
    }

    /// Whether the driver runs it, by what the driver gives back. Without the compiled files the tables have to do.
    pub fn is(&self, running: &DriverProgram) -> bool {
        if self.config.profiles.is_empty() {
            // The driver adds tables of its own.
            return names(&self.info).is_subset(&names(&running.info));
        }
        (&self.config.p4_name, &self.config.bfruntime_info) == (&running.config.p4_name, &running.config.bfruntime_info)
            && files(&self.config) == files(&running.config)
    }

    /// Holds a config against its tables, before the driver has them.
    ///
    /// # Errors
    /// As those of [`Loaded::new`].
    #[allow(clippy::result_large_err)]
    pub fn hold(&self, config: p4::ForwardingPipelineConfig) -> Result<(), Status> {
        // The device's own tables are the same whatever it runs.
        Loaded::new(config, &self.info, &Info::default()).map(|_| ())
    }

    /// Refuses what the driver cannot load.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming what is missing, and `FAILED_PRECONDITION` when the gateway is to use another program.
    #[allow(clippy::result_large_err)]
    pub fn check(&self, wanted: Option<&str>) -> Result<(), Status> {
        let name = &self.config.p4_name;
        let missing = |what: String| Err(Status::invalid_argument(format!("p4_device_config of {name:?}: {what}")));
        if name.is_empty() || name.contains(['/', '$']) {
            return missing("it names no program; give p4_name".to_owned());
        }
        if let Some(wanted) = wanted.filter(|wanted| wanted != name) {
            return Err(Status::failed_precondition(format!(
                "p4_device_config is of the program {name:?} and --program is {wanted}; start the gateway with the other name, or without"
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

/// Has the driver load these programs in place of what it runs, with their files in a folder on its machine. All that the device
/// holds is reset. No other connection may be bound to what it runs.
///
/// # Errors
/// What the driver says, after some tries.
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
                    "loading {:?} with the driver at {} into {folder}: {}; look at bf_switchd's log",
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
        .map_err(|status| Status::new(worse(status.code()), status.message()))?;
    // The answer alone proves nothing: after a failed load the driver says OK and does nothing.
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
        .map_err(|_| Status::unavailable("the driver does not say that it has finished"))?;
    Ok((Driver::bound(grpc, address.clone()).await?, events))
}

/// The driver calls most of its failures unknown.
fn worse(code: Code) -> Code {
    if code == Code::Unknown { Code::Internal } else { code }
}
