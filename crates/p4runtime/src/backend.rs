//! The interface between the P4Runtime service and a switch: an engine in this process, or a driver over a network.
//!
//! A backend receives complete requests rather than single entities. So the backend decides how many messages it sends
//! to the switch for a batch of updates, and which replies it awaits. When an update fails, the backend also decides
//! which other updates it reverts. The service locks nothing while it calls a backend.

use std::future::Future;
use std::sync::Arc;

use tonic::Status;

use crate::controllers::Controllers;
use crate::fault::Outcome;
use crate::proto::p4::v1 as p4;
use crate::read::Fragment;
use crate::streams::Streams;
use p4::set_forwarding_pipeline_config_request::Action;

/// The role and election id of a request whose sender claims to be the primary controller. A backend calls
/// [`Permit::check`] when it begins to process the request, because another controller may have become primary while
/// the request waited.
#[derive(Debug, Clone)]
pub struct Permit {
    role: String,
    election_id: Option<p4::Uint128>,
}

impl Permit {
    /// Returns the permit of a request that carries this role and election id. This call does not check the permit.
    pub fn new(role: String, election_id: Option<p4::Uint128>) -> Self {
        Self { role, election_id }
    }

    /// Returns `Ok` if the sender of the request is the primary controller of the role at present.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown role, `PERMISSION_DENIED` for every controller that is not the role's primary.
    #[allow(clippy::result_large_err)]
    pub fn check(&self, streams: &Streams) -> Result<(), Status> {
        streams.check_primary(&self.role, self.election_id.as_ref())
    }
}

/// The interface through which the service controls one switch.
pub trait Backend: Send + Sync + 'static {
    /// The guard that [`Backend::exclude_writes`] returns.
    type WriteExclusion: Send;

    /// Returns the device id that P4Runtime requests for this switch must carry.
    fn device_id(&self) -> u64;

    /// Returns the architecture of the programs that this switch accepts, as P4Info names it; `None` if the switch
    /// reports no architecture. A controller with programs for several architectures uses the name to select the
    /// program that it pushes.
    fn arch(&self) -> Option<&'static str> {
        None
    }

    /// Returns the controllers of this switch, which receive its packets, digests and notifications.
    fn controllers(&self) -> &Controllers;

    /// Waits until no write runs, and returns a guard; no write begins while the guard exists. The service acquires
    /// the guard before the primary may change. A backend that reaches its switch over a network excludes no writes: it
    /// returns at once a guard without effect, so that arbitration never waits for that network.
    fn exclude_writes(&self) -> impl Future<Output = Self::WriteExclusion> + Send;

    /// Applies the updates of a request. The result has one outcome for each update.
    ///
    /// # Errors
    /// The status that refuses all updates of the request, for example the status from [`Permit::check`].
    fn write(
        self: Arc<Self>,
        permit: Permit,
        request: p4::WriteRequest,
    ) -> impl Future<Output = Result<Vec<Outcome>, Status>> + Send;

    /// Reads the entities that match the patterns. Returns them in a compact form, from which the service builds
    /// messages, and one outcome for each pattern.
    ///
    /// # Errors
    /// The status that refuses all patterns of the request.
    fn read(
        self: Arc<Self>,
        patterns: Vec<p4::Entity>,
    ) -> impl Future<Output = Result<(Vec<Fragment>, Vec<Outcome>), Status>> + Send;

    /// Verifies, saves or commits a program.
    ///
    /// # Errors
    /// The status that refuses the request, for example the status from [`Permit::check`].
    fn set_pipeline(
        self: Arc<Self>,
        permit: Permit,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> impl Future<Output = Result<(), Status>> + Send;

    /// Calls `view` with the forwarding pipeline config to which reads and writes apply: that of the saved program, or
    /// if no program is saved, of the running one. Returns the result of `view`; `None` if there is no program.
    ///
    /// # Errors
    /// `UNAVAILABLE` while the backend cannot determine which program runs. `None` would be wrong then, because a
    /// controller would push its program.
    fn pipeline<T>(&self, view: impl FnOnce(&p4::ForwardingPipelineConfig) -> T) -> Result<Option<T>, Status>;

    /// Saves the roles' highest election ids. The service calls this method after each bid. A backend whose switch
    /// continues to run when this process ends overrides this method.
    fn save_elections(&self) {}

    /// Passes a packet from a controller to the switch without waiting.
    ///
    /// # Errors
    /// The reason why the packet is dropped.
    fn packet_out(&self, packet: &p4::PacketOut) -> Outcome;

    /// Processes the acknowledgement of a digest list.
    ///
    /// # Errors
    /// `NOT_FOUND` when P4Info has no digest with this id.
    fn acknowledge(&self, ack: &p4::DigestListAck) -> Outcome;

    /// Runs the periodic tasks of the switch. Returns only when the server must end.
    fn run(self: Arc<Self>) -> impl Future<Output = ()> + Send;
}
