//! P4Runtime messages over gRPC: the fuzzer's bytes are parsed as a write, a read, a pipeline request or a stream
//! message.
//!
//! The first byte selects the kind of message. The target corrects the device id and the election id, so that requests
//! pass the server's first checks.
#![no_main]

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use prost::Message;
use sluice_engine::Options;
use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_p4runtime::{Config, Device, Settings, parse_p4info, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use p4::p4_runtime_client::P4RuntimeClient;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update;

const DEVICE: u64 = 3;
const CPU_PORT: u32 = 510;
const ELECTION: p4::Uint128 = p4::Uint128 { high: 0, low: 1 };
const JSON: &[u8] = include_bytes!("../../crates/p4runtime/tests/p4/everything.json");
const P4INFO: &str = include_str!("../../crates/p4runtime/tests/p4/everything.p4info.txtpb");
/// The number of inputs after which the program is loaded again. If an input causes a crash, only the few inputs since
/// the last load can be its cause.
const INPUTS_PER_LOAD: u32 = 64;
/// A stream whose answer does not arrive within this time counts as ended.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

struct Session {
    device: Arc<Device>,
    client: P4RuntimeClient<Channel>,
    stream: Option<Stream>,
    inputs: u32,
}

struct Stream {
    requests: mpsc::Sender<p4::StreamMessageRequest>,
    answers: Streaming<p4::StreamMessageResponse>,
}

impl Stream {
    /// Sends a message; returns false if the message ended the stream. After `message` the function sends an
    /// arbitration message, whose answer shows that the server has read `message`.
    async fn send_message(&mut self, message: p4::StreamMessageRequest) -> bool {
        for message in [message, p4::StreamMessageRequest { update: Some(bid()) }] {
            if self.requests.send(message).await.is_err() {
                return false;
            }
        }
        matches!(timeout(ANSWER_TIMEOUT, self.answers.message()).await, Ok(Ok(Some(_))))
    }
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("threads"));
static SESSION: LazyLock<Mutex<Session>> = LazyLock::new(|| Mutex::new(RUNTIME.block_on(session())));

fn pipeline() -> p4::SetForwardingPipelineConfigRequest {
    p4::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: Some(ELECTION),
        action: Action::VerifyAndCommit.into(),
        config: Some(p4::ForwardingPipelineConfig {
            p4info: Some(parse_p4info(P4INFO).expect("P4Info")),
            p4_device_config: JSON.to_vec(),
            cookie: None,
        }),
        ..Default::default()
    }
}

fn bid() -> Update {
    Update::Arbitration(p4::MasterArbitrationUpdate {
        device_id: DEVICE,
        election_id: Some(ELECTION),
        ..Default::default()
    })
}

async fn session() -> Session {
    let config = Config { device_id: DEVICE, cpu_port: Some(CPU_PORT), engine: Options::default() };
    let device = Arc::new(Device::new(config, false));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(serve(Arc::clone(&device), listener, Settings::default(), std::future::pending()));
    let mut client = P4RuntimeClient::connect(address).await.expect("a connection");
    let stream = Some(open(&mut client).await);
    Session { device, client, stream, inputs: 0 }
}

/// Opens a stream and waits until it is primary. The server may need a moment to end the previous stream.
async fn open(client: &mut P4RuntimeClient<Channel>) -> Stream {
    loop {
        let (requests, receiver) = mpsc::channel(16);
        requests.send(p4::StreamMessageRequest { update: Some(bid()) }).await.expect("the receiver is here");
        let mut answers = client.stream_channel(ReceiverStream::new(receiver)).await.expect("a stream").into_inner();
        if let Ok(Some(_)) = answers.message().await {
            return Stream { requests, answers };
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Session {
    /// Loads the program. If loading fails because an input has ended the primary stream, opens a new stream and loads
    /// again.
    async fn push(&mut self) {
        if self.client.set_forwarding_pipeline_config(pipeline()).await.is_err() {
            self.reopen().await;
            self.client.set_forwarding_pipeline_config(pipeline()).await.expect("the program");
        }
    }

    async fn reopen(&mut self) {
        self.stream = None;
        self.stream = Some(open(&mut self.client).await);
    }

    async fn input(&mut self, kind: u8, data: &[u8]) {
        if self.inputs.is_multiple_of(INPUTS_PER_LOAD) {
            self.push().await;
        }
        self.inputs += 1;
        match kind % 4 {
            0 => {
                let Ok(mut request) = p4::WriteRequest::decode(data) else { return };
                (request.device_id, request.election_id) = (DEVICE, Some(ELECTION));
                let _ = self.client.write(request).await;
            }
            1 => {
                let Ok(mut request) = p4::ReadRequest::decode(data) else { return };
                request.device_id = DEVICE;
                let Ok(answers) = self.client.read(request).await else { return };
                let mut answers = answers.into_inner();
                while let Ok(Some(_)) = answers.message().await {}
            }
            2 => {
                let Ok(mut request) = p4::SetForwardingPipelineConfigRequest::decode(data) else { return };
                (request.device_id, request.election_id) = (DEVICE, Some(ELECTION));
                let _ = self.client.set_forwarding_pipeline_config(request).await;
                self.inputs = 0;
            }
            _ => {
                let Ok(message) = p4::StreamMessageRequest::decode(data) else { return };
                let alive = match &mut self.stream {
                    Some(stream) => stream.send_message(message).await,
                    None => false,
                };
                if !alive {
                    self.reopen().await;
                }
            }
        }
        let outs = self.device.take_packet_outs();
        self.device.receive(CPU_PORT, outs.iter().map(Vec::as_slice), &mut Vec::new(), None);
        self.device.receive(1, [&data[..data.len().min(1500)]].into_iter(), &mut Vec::new(), None);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let mut session = SESSION.lock().expect("no panic before");
    RUNTIME.block_on(session.input(kind, data));
});
