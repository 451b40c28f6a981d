//! The interface between the P4Runtime service and a switch: an engine in this process, or a driver over a network.
//!
//! A backend receives whole requests rather than single entities. So it decides how many messages a batch of updates
//! costs, what is taken back when an update fails, and what to wait for. The service holds no lock while it calls a
//! backend.

use std::future::Future;
use std::sync::Arc;

use tonic::Status;

use crate::controllers::Controllers;
use crate::fault::Outcome;
use crate::proto::p4::v1 as p4;
use crate::read::Fragment;
use crate::streams::Streams;
use p4::set_forwarding_pipeline_config_request::Action;

/// A request's claim that its sender is the primary controller. A backend checks the claim when it begins the request:
/// while the request waited, another controller may have become primary.
#[derive(Debug, Clone)]
pub struct Permit {
    role: String,
    election_id: Option<p4::Uint128>,
}

impl Permit {
    /// A claim with the role and the election id that a request carries.
    pub fn new(role: String, election_id: Option<p4::Uint128>) -> Self {
        Self { role, election_id }
    }

    /// Lets the request pass if its sender is the primary controller of the role now.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown role, `PERMISSION_DENIED` for every controller but the role's primary.
    #[allow(clippy::result_large_err)]
    pub fn check(&self, streams: &Streams) -> Result<(), Status> {
        streams.check_primary(&self.role, self.election_id.as_ref())
    }
}

/// One switch behind the service.
pub trait Backend: Send + Sync + 'static {
    /// A guard during whose life no write runs; see [`Backend::exclude_writes`].
    type WriteExclusion: Send;

    /// The device id that requests of P4Runtime must carry.
    fn device_id(&self) -> u64;

    /// The architecture of the programs that this switch takes, as P4Info names it; `None` if the switch does not
    /// report one. A controller with programs for several architectures chooses by it which one to push.
    fn arch(&self) -> Option<&'static str> {
        None
    }

    /// The controllers of this switch; packets, digests and notifications go to them.
    fn controllers(&self) -> &Controllers;

    /// Waits until no write runs; none begins while the returned guard exists. Arbitration takes this guard before it
    /// changes the primary. A backend that reaches its switch over a network returns at once, so that arbitration never
    /// waits for that network.
    fn exclude_writes(&self) -> impl Future<Output = Self::WriteExclusion> + Send;

    /// Makes the updates of a request. The result has one outcome for each update.
    ///
    /// # Errors
    /// The status that refuses the whole request, for example the one from [`Permit::check`].
    fn write(
        self: Arc<Self>,
        permit: Permit,
        request: p4::WriteRequest,
    ) -> impl Future<Output = Result<Vec<Outcome>, Status>> + Send;

    /// Reads the entities that match the patterns. The result has one outcome for each pattern.
    ///
    /// # Errors
    /// The status that refuses the whole request.
    fn read(
        self: Arc<Self>,
        patterns: Vec<p4::Entity>,
    ) -> impl Future<Output = Result<(Vec<Fragment>, Vec<Outcome>), Status>> + Send;

    /// Verifies, saves or commits a program.
    ///
    /// # Errors
    /// The status that refuses the request, for example the one from [`Permit::check`].
    fn set_pipeline(
        self: Arc<Self>,
        permit: Permit,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> impl Future<Output = Result<(), Status>> + Send;

    /// Returns what `view` makes of the config that control requests address; `None` without a program.
    ///
    /// # Errors
    /// `UNAVAILABLE` while the backend cannot know which program runs: after `None` a controller would push its
    /// program.
    fn pipeline<T>(&self, view: impl FnOnce(&p4::ForwardingPipelineConfig) -> T) -> Result<Option<T>, Status>;

    /// Saves the roles' highest election ids, which a bid may just have changed, where the switch outlives this
    /// process.
    fn save_elections(&self) {}

    /// Sends a controller's packet into the switch without waiting.
    ///
    /// # Errors
    /// The reason why the packet is dropped.
    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome;

    /// Handles the acknowledgement of a digest list.
    ///
    /// # Errors
    /// `NOT_FOUND` when P4Info has no digest of this id.
    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome;

    /// Runs the switch's periodic tasks. Returns only when the server must end.
    fn run(self: Arc<Self>) -> impl Future<Output = ()> + Send;
}
