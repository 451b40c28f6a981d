//! A controller that sends each write as soon as the switch has replied to the previous one.

use std::error::Error;
use std::time::{Duration, Instant};

use sluice_p4runtime::parse_p4info;
use sluice_p4runtime::proto::p4::v1 as p4;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use p4::p4_runtime_client::P4RuntimeClient;
use p4::update::Type::Insert;
use p4::write_request::Atomicity;

use crate::batches::{SOURCE, batch, entry, update};

const P4INFO: &str = include_str!("../../../../crates/p4runtime/tests/p4/everything.p4info.txtpb");
const PROGRAM: &str = include_str!("../../../../crates/p4runtime/tests/p4/everything.json");
const ELECTION: Option<p4::Uint128> = Some(p4::Uint128 { high: 0, low: 1 });

/// The primary controller of a switch. The switch runs the program that the controller has pushed.
pub struct Writer {
    /// The runtime has a thread of its own, which replies to the switch's HTTP/2 pings between writes.
    runtime: Runtime,
    client: P4RuntimeClient<Channel>,
    /// The stream, which must stay open so that the controller remains primary.
    _stream: (tokio::sync::mpsc::Sender<p4::StreamMessageRequest>, tonic::Streaming<p4::StreamMessageResponse>),
}

impl Writer {
    /// Connects to the switch at `address` as its primary controller, pushes the program, and inserts the entry that
    /// forwards the frames to port 2.
    pub fn connect(address: &str) -> Result<Self, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (client, stream) = runtime.block_on(async {
            let mut client = P4RuntimeClient::connect(format!("http://{address}")).await?;
            let (bids, requests) = tokio::sync::mpsc::channel(1);
            let bid = p4::MasterArbitrationUpdate { device_id: 1, election_id: ELECTION, ..Default::default() };
            let bid = p4::stream_message_request::Update::Arbitration(bid);
            bids.send(p4::StreamMessageRequest { update: Some(bid) }).await?;
            let mut stream = client.stream_channel(ReceiverStream::new(requests)).await?.into_inner();
            stream.message().await?;
            let config = p4::ForwardingPipelineConfig {
                p4info: Some(parse_p4info(P4INFO)?),
                p4_device_config: PROGRAM.as_bytes().to_vec(),
                cookie: None,
            };
            let action = p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
            let push = p4::SetForwardingPipelineConfigRequest {
                device_id: 1,
                election_id: ELECTION,
                action: action.into(),
                config: Some(config),
                ..Default::default()
            };
            client.set_forwarding_pipeline_config(push).await?;
            client.write(request(Atomicity::ContinueOnError, vec![update(Insert, entry(SOURCE, 1, 2))])).await?;
            Ok::<_, Box<dyn Error>>((client, (bids, stream)))
        })?;
        Ok(Self { runtime, client, _stream: stream })
    }

    /// Writes batches of about `size` updates, one after the other, for the time `length`. Successive batches forward
    /// the frames to port 2 and port 3 in turn. Returns the number of updates per second.
    pub fn write_for(&mut self, length: Duration, atomicity: Atomicity, size: usize) -> Result<f64, tonic::Status> {
        let batches = [2, 3].map(|port| request(atomicity, batch(size, port)));
        let Self { runtime, client, .. } = self;
        runtime.block_on(async {
            let (started, mut updates) = (Instant::now(), 0);
            for request in batches.iter().cycle() {
                if started.elapsed() >= length {
                    break;
                }
                client.write(request.clone()).await?;
                updates += request.updates.len();
            }
            Ok(updates as f64 / started.elapsed().as_secs_f64())
        })
    }
}

fn request(atomicity: Atomicity, updates: Vec<p4::Update>) -> p4::WriteRequest {
    p4::WriteRequest { device_id: 1, election_id: ELECTION, atomicity: atomicity.into(), updates, ..Default::default() }
}
