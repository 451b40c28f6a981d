//! What the service needs of what is behind it: an engine in this process, or a driver over a network.
//!
//! The cut lies at the request, not at the entity: a backend gets a whole batch, so it decides how many messages a batch costs,
//! what a batch takes back, and what it waits for. The service holds no lock across any of these calls.

use std::future::Future;
use std::sync::Arc;

use tonic::Status;

use crate::controllers::Controllers;
use crate::fault::Outcome;
use crate::proto::p4::v1 as p4;
use crate::read::Part;
use crate::streams::Streams;
use p4::set_forwarding_pipeline_config_request::Action;

/// The primary's right to change the switch, as a request claims it. A backend checks it when the request's turn comes: another
/// controller may have become primary while it waited.
#[derive(Debug, Clone)]
pub struct Permit {
    role: String,
    election_id: Option<p4::Uint128>,
}

impl Permit {
    /// The right that a request with these fields claims.
    pub fn new(role: String, election_id: Option<p4::Uint128>) -> Self {
        Self { role, election_id }
    }

    /// Lets the request pass if its sender is primary now.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown role, `PERMISSION_DENIED` for any controller but its primary.
    #[allow(clippy::result_large_err)]
    pub fn check(&self, streams: &Streams) -> Result<(), Status> {
        streams.check_primary(&self.role, self.election_id.as_ref())
    }
}

/// One switch behind the service.
pub trait Backend: Send + Sync + 'static {
    /// Keeps writes from being under way; see [`Backend::quiet`].
    type Quiet: Send;

    /// P4Runtime's device id.
    fn device_id(&self) -> u64;

    /// The architecture of the programs that it takes, as P4Info names it; `None`: it leaves that unsaid. A controller that has
    /// programs for several learns from it which one to push.
    fn arch(&self) -> Option<&'static str> {
        None
    }

    /// The controllers of this switch; packets, digests and notifications go to them.
    fn controllers(&self) -> &Controllers;

    /// Waits until no write is under way; none begins while the result exists. Bids are handled meanwhile. A backend that reaches its
    /// switch over a network returns at once, so that arbitration never waits for a peer.
    fn quiet(&self) -> impl Future<Output = Self::Quiet> + Send;

    /// Makes the updates of a request; the result has one outcome for each.
    ///
    /// # Errors
    /// What refuses the request as a whole, among it what [`Permit::check`] says.
    fn write(
        self: Arc<Self>,
        permit: Permit,
        request: p4::WriteRequest,
    ) -> impl Future<Output = Result<Vec<Outcome>, Status>> + Send;

    /// Finds the entities that fit the patterns; the result has one outcome for each pattern.
    ///
    /// # Errors
    /// What refuses the request as a whole.
    fn read(
        self: Arc<Self>,
        patterns: Vec<p4::Entity>,
    ) -> impl Future<Output = Result<(Vec<Part>, Vec<Outcome>), Status>> + Send;

    /// Verifies, saves or commits a program.
    ///
    /// # Errors
    /// What refuses it, among it what [`Permit::check`] says.
    fn set_pipeline(
        self: Arc<Self>,
        permit: Permit,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> impl Future<Output = Result<(), Status>> + Send;

    /// What `view` makes of the config that control requests are about; `None` without a program.
    ///
    /// # Errors
    /// `UNAVAILABLE` while the backend does not know yet: a controller that was answered `None` would push its program.
    fn pipeline<T>(&self, view: impl FnOnce(&p4::ForwardingPipelineConfig) -> T) -> Result<Option<T>, Status>;

    /// Remembers the highest election ids, which a bid may just have changed, if the switch outlives this process.
    fn elected(&self) {}

    /// Sends a controller's packet into the switch. Does not wait.
    ///
    /// # Errors
    /// Why the packet is dropped.
    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome;

    /// Handles the acknowledgement of a digest list.
    ///
    /// # Errors
    /// When P4Info has no such digest.
    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome;

    /// Does what the switch does by the clock, and ends only when the server has to.
    fn run(self: Arc<Self>) -> impl Future<Output = ()> + Send;
}
