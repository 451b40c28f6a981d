//! The binary as users meet it: its line of readiness, its ports, its statistics, its end. On veth pairs in a network
//! namespace of each test's own; needs root, and says so and passes without it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_ports::{Interface, Poller, RxBatch, TxBatch};

use p4::p4_runtime_client::P4RuntimeClient;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../p4runtime/tests/p4/everything.json");
const P4INFO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../p4runtime/tests/p4/everything.p4info.txtpb");

/// Runs `test` in a fresh namespace with two veth pairs: port 1 is `s1` with its other end `h1`, port 2 likewise.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    // SAFETY: no pointers are involved.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: network namespaces need root");
        return;
    }
    std::thread::spawn(|| {
        // SAFETY: no pointers are involved; only this thread changes its namespace, and children inherit it.
        let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "unshare: {}", std::io::Error::last_os_error());
        run("ip link set lo up");
        for number in [1, 2] {
            add_pair(number);
        }
        test();
    })
    .join()
    .expect("the test in the namespace failed");
}

fn add_pair(number: u32) {
    run(&format!("ip link add s{number} type veth peer name h{number}"));
    for end in ["s", "h"] {
        run(&format!("sysctl -q -w net.ipv6.conf.{end}{number}.disable_ipv6=1"));
        run(&format!("ip link set {end}{number} up"));
    }
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().expect(command);
    assert!(status.success(), "{command}: {status}");
}

/// A running switch; killed if a test fails before it has ended.
struct Switch {
    child: Child,
    out: BufReader<ChildStdout>,
    ready: String,
}

impl Switch {
    fn start(flags: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice-switch"))
            .args(flags.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        out.read_line(&mut ready).unwrap();
        Self { child, out, ready }
    }

    /// The address it serves, from its line of readiness.
    fn address(&self) -> String {
        let rest = self.ready.strip_prefix("sluice-switch: serving P4Runtime on ").expect(&self.ready);
        rest.split_once(',').expect(&self.ready).0.to_owned()
    }

    fn stop(mut self, signal: i32) -> (Option<i32>, String, String) {
        // SAFETY: the child has not been waited for, so that its id is still its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
        let status = self.child.wait().unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status.code(), out, err)
    }

    /// Processor time it has used, in clock ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // Ended children give an error, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An end of a veth pair that belongs to the test.
struct Host {
    interface: Interface,
    poller: Poller,
}

impl Host {
    fn open(name: &str) -> Self {
        let interface = Interface::open(name).unwrap();
        let poller = Poller::new().unwrap();
        poller.add(interface.raw_fd().unwrap(), 0).unwrap();
        Self { interface, poller }
    }

    fn send(&mut self, frames: &[Vec<u8>]) {
        for frames in frames.chunks(64) {
            let mut batch = TxBatch::default();
            frames.iter().for_each(|frame| batch.push(frame, &[]));
            self.interface.send(&mut batch);
        }
    }

    /// What arrives until `count` frames are there, or 5 seconds are over.
    fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut frames, mut batch, mut events) = (Vec::new(), RxBatch::default(), Vec::new());
        let deadline = Instant::now() + Duration::from_secs(5);
        while frames.len() < count {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            self.poller.wait(&mut events, Some(left)).unwrap();
            self.interface.receive(&mut batch);
            frames.extend(batch.frames().map(<[u8]>::to_vec));
        }
        frames
    }
}

fn frame(dst: u8, ethertype: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(length, 0x77);
    frame
}

/// The controller's side: everything in this thread, so that its sockets are in this thread's namespace.
fn controller<T>(address: &str, work: impl AsyncFnOnce(Session) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = Session::open(address).await;
        let result = tokio::time::timeout(Duration::from_secs(20), work(session)).await;
        result.expect("the controller is not done after 20 s")
    })
}

struct Session {
    client: P4RuntimeClient<tonic::transport::Channel>,
    to_switch: tokio::sync::mpsc::Sender<p4::StreamMessageRequest>,
    from_switch: tonic::Streaming<p4::StreamMessageResponse>,
}

impl Session {
    async fn open(address: &str) -> Self {
        let mut client = P4RuntimeClient::connect(format!("http://{address}")).await.unwrap();
        let (to_switch, requests) = tokio::sync::mpsc::channel(4);
        let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
        let from_switch = client.stream_channel(requests).await.unwrap().into_inner();
        let mut session = Self { client, to_switch, from_switch };
        let election_id = Some(p4::Uint128 { high: 0, low: 1 });
        let bid = p4::MasterArbitrationUpdate { device_id: 7, election_id, ..Default::default() };
        session.tell(ToSwitch::Arbitration(bid)).await;
        session.next().await;
        session
    }

    async fn tell(&self, message: ToSwitch) {
        self.to_switch.send(p4::StreamMessageRequest { update: Some(message) }).await.unwrap();
    }

    async fn next(&mut self) -> FromSwitch {
        self.from_switch.message().await.unwrap().unwrap().update.unwrap()
    }

    /// Sets the default action of `I.ternary_t`, which all frames meet.
    async fn act(&mut self, action_id: u32, value: u8) {
        let param = p4::action::Param { param_id: 1, value: vec![value] };
        let action = p4::Action { action_id, params: vec![param] };
        let entry = p4::TableEntry {
            table_id: 0x0200_0003,
            is_default_action: true,
            action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
            ..Default::default()
        };
        let entity = p4::Entity { entity: Some(p4::entity::Entity::TableEntry(entry)) };
        let update = p4::Update { r#type: p4::update::Type::Modify as i32, entity: Some(entity) };
        let request = p4::WriteRequest {
            device_id: 7,
            election_id: Some(p4::Uint128 { high: 0, low: 1 }),
            updates: vec![update],
            ..Default::default()
        };
        self.client.write(request).await.unwrap();
    }
}

const FORWARD: u32 = 0x0100_0002;
const TO_CONTROLLER: u32 = 0x0100_0004;

fn flags(more: &str) -> String {
    format!(
        "{PROGRAM} --p4info {P4INFO} -i 1@s1 -i 2@s2 --device-id 7 {more} -- \
         --grpc-server-addr 127.0.0.1:0 --cpu-port 510"
    )
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

#[test]
fn packets_are_conserved_and_the_end_is_clean() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let stats = directory.path().join("stats.json");
        let pcap = directory.path().display();
        let switch = Switch::start(&flags(&format!("--stats-file {} --pcap={pcap}", stats.display())));
        assert!(switch.ready.ends_with(", device 7, ports 1@s1 2@s2\n"), "{}", switch.ready);
        let (mut left, mut right) = (Host::open("h1"), Host::open("h2"));
        controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
        let frames: Vec<_> = (0..1000).map(|number| frame(number as u8, 0x0800, 60 + number)).collect();
        left.send(&frames);
        assert!(right.receive(1000) == frames, "frames differ");
        right.send(&[frame(1, 0x0800, 60)]);
        assert_eq!(right.receive(1).len(), 1, "port 2 sends back by port 2");
        let (code, _, err) = switch.stop(libc::SIGTERM);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let stats = json(&std::fs::read_to_string(stats).unwrap());
        assert_eq!(stats["ports"]["1"]["rx_packets"], 1000);
        assert_eq!(stats["ports"]["1"]["rx_kernel_drops"], 0);
        assert_eq!(stats["ports"]["2"]["tx_packets"], 1001);
        assert_eq!(stats["ports"]["2"]["present"], true);
        assert_eq!((&stats["engine"]["received"], &stats["engine"]["emitted"]), (&1001.into(), &1001.into()));
        for (name, count) in [("s1_in", 1000), ("s1_out", 0), ("s2_in", 1), ("s2_out", 1001)] {
            assert_eq!(pcap_packets(&directory.path().join(format!("{name}.pcap"))), count, "{name}");
        }
    });
}

/// Counts the packets of a capture.
fn pcap_packets(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let (mut at, mut count) = (24, 0);
    while at < bytes.len() {
        at += 16 + u32::from_ne_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        count += 1;
    }
    assert_eq!(at, bytes.len());
    count
}

#[test]
fn packets_go_to_the_controller_and_come_from_it() {
    in_namespace(|| {
        let switch = Switch::start(&flags(""));
        let (mut left, mut right) = (Host::open("h1"), Host::open("h2"));
        controller(&switch.address(), async |mut session| {
            session.act(TO_CONTROLLER, 5).await;
            left.send(&[frame(9, 0x0800, 70)]);
            let FromSwitch::Packet(packet) = session.next().await else { panic!("no packet") };
            assert_eq!(packet.payload, frame(9, 0x0800, 70));
            let values: Vec<_> = packet.metadata.iter().map(|field| field.value.as_slice()).collect();
            assert_eq!(values, [[1], [5]]);
            let field = |metadata_id, value| p4::PacketMetadata { metadata_id, value: vec![value] };
            let metadata = vec![field(1, 2), field(2, 0), field(3, 0)];
            session.tell(ToSwitch::Packet(p4::PacketOut { payload: frame(3, 0x0800, 80), metadata })).await;
            // The answer to a read shows that the packet has been queued.
            session.client.capabilities(p4::CapabilitiesRequest { device_id: 7 }).await.unwrap();
        });
        assert_eq!(right.receive(1), [frame(3, 0x0800, 80)]);
        let (code, _, err) = switch.stop(libc::SIGINT);
        assert_eq!(code, Some(0));
        let stats = json(&err);
        assert_eq!((&stats["controller"]["packet_in"], &stats["controller"]["packet_out"]), (&1.into(), &1.into()));
    });
}

#[test]
fn an_interface_may_come_back() {
    in_namespace(|| {
        let switch = Switch::start(&flags("--log-console"));
        controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
        run("ip link del s1");
        run("ip link set s2 down");
        run("ip link set s2 up");
        add_pair(1);
        let (mut left, mut right) = (Host::open("h1"), Host::open("h2"));
        let started = Instant::now();
        let arrived = loop {
            left.send(&[frame(1, 0x0800, 60)]);
            let arrived = right.interface.receive(&mut RxBatch::default());
            if right.interface.counters().rx_packets.get() > 0 {
                break arrived;
            }
            assert!(started.elapsed() < Duration::from_secs(5), "nothing forwarded 5 s after the interface came back");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(arrived, sluice_ports::Received::Frames);
        let (code, out, _) = switch.stop(libc::SIGTERM);
        assert_eq!(code, Some(0));
        assert!(out.contains("interface is gone") && out.contains("interface is back"), "{out}");
    });
}

#[test]
fn an_idle_switch_uses_no_processor_time() {
    in_namespace(|| {
        let switch = Switch::start(&flags(""));
        controller(&switch.address(), async |mut session| {
            session.act(FORWARD, 2).await;
            run("ip link set s1 down");
            std::thread::sleep(Duration::from_millis(300));
            let before = switch.ticks();
            std::thread::sleep(Duration::from_secs(2));
            let used = switch.ticks() - before;
            assert!(used <= 2, "{used} ticks of 10 ms in 2 s, with a port down");
        });
    });
}

#[test]
fn the_trace_tells_what_happens_to_a_packet() {
    in_namespace(|| {
        let switch = Switch::start(&flags("--log-console --trace"));
        let (mut left, mut right) = (Host::open("h1"), Host::open("h2"));
        controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
        left.send(&[frame(9, 0x0800, 70)]);
        assert_eq!(right.receive(1).len(), 1);
        let (_, out, _) = switch.stop(libc::SIGTERM);
        for text in
            ["packet 1: in by port 1", "parser state", "table I.ternary_t", "action I.forward(", "out by port 2"]
        {
            assert!(out.contains(text), "no «{text}» in {out}");
        }
    });
}

/// What the binary says on standard error when it refuses to start, and its exit code.
fn refusal(flags: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice-switch")).args(flags).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn refusals_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let broken: PathBuf = directory.path().join("broken.json");
    std::fs::write(&broken, "{}").unwrap();
    let broken = broken.to_str().unwrap();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = busy.local_addr().unwrap().to_string();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--frobnicate"], 2, "unknown flag --frobnicate"),
        (&["--no-p4", "--thrift-port", "9090"], 2, "there is no Thrift server"),
        (&["/nonexistent.json"], 1, "cannot read /nonexistent.json"),
        (&[broken], 1, "broken.json: program (p4_device_config)"),
        (&[PROGRAM, "--p4info", PROGRAM], 1, "everything.json: P4Info text"),
        (&["--no-p4", "--grpc-server-addr", &busy], 1, "cannot serve P4Runtime on 127.0.0.1:"),
    ];
    for (flags, code, text) in cases {
        let (found, message) = refusal(flags);
        assert_eq!(found, Some(code), "{message}");
        assert!(message.contains(text), "«{message}» does not contain «{text}»");
    }
}
