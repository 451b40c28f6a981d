//! A running switch, and a controller that connects to it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_ports::pcap_reader::PcapReader;

use p4::p4_runtime_client::P4RuntimeClient;
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;

pub const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/p4runtime/tests/p4/everything.json");
pub const P4INFO: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/p4runtime/tests/p4/everything.p4info.txtpb");

pub const POOL_TABLE: u32 = 0x0200_0004;
pub const FORWARD: u32 = 0x0100_0002;
pub const TO_CONTROLLER: u32 = 0x0100_0004;

/// A running switch, which is killed if a test fails before the switch has ended.
pub struct Switch {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The lines on the switch's standard output before the line that reports that it is ready.
    pub before: String,
    pub ready: String,
}

impl Switch {
    /// Starts a switch, and waits for the line that reports that it is ready.
    pub fn start(flags: &str) -> Self {
        let mut switch = Self::spawn(Path::new("."), flags);
        switch.await_ready();
        switch
    }

    /// Starts a switch in this directory, without waiting for it.
    pub fn spawn(directory: &Path, flags: &str) -> Self {
        let words: Vec<_> = flags.split_whitespace().collect();
        Self::with_words(directory, &words)
    }

    /// Starts a switch in this directory. The flags in `words` may contain spaces.
    pub fn with_words(directory: &Path, words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice-switch"))
            .args(words)
            .current_dir(directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out, before: String::new(), ready: String::new() }
    }

    pub fn await_ready(&mut self) {
        loop {
            self.ready.clear();
            let length = self.out.read_line(&mut self.ready).unwrap();
            if length == 0 || self.ready.starts_with("sluice-switch: ") {
                return;
            }
            self.before.push_str(&self.ready);
        }
    }

    /// Returns the next line on the switch's standard output.
    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// Waits until the switch ends by itself. Returns its exit code and its standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status.code(), err)
    }

    /// Returns the address on which the switch serves P4Runtime, from the line that reports that it is ready.
    pub fn address(&self) -> String {
        let rest = self.ready.strip_prefix("sluice-switch: serving P4Runtime on ").expect(&self.ready);
        rest.split_once(',').expect(&self.ready).0.to_owned()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: this process has not yet waited for the child, so the id still belongs to the child.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    pub fn stop(mut self, signal: i32) -> (Option<i32>, String, String) {
        self.signal(signal);
        let status = self.child.wait().unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut err).unwrap();
        }
        (status.code(), out, err)
    }

    /// Closes the reading end of the switch's standard error.
    pub fn hang_up(&mut self) {
        drop(self.child.stderr.take());
    }

    /// Limits the switch's file descriptors to numbers below `count`. Descriptors that are already open remain open.
    /// Returns the previous limit.
    pub fn limit_files(&self, count: libc::rlim_t) -> libc::rlim_t {
        let process = self.child.id() as i32;
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid during both calls, and the other pointer is null. The process id still belongs to
        // the child, because this process has not yet waited for the child.
        unsafe {
            assert_eq!(libc::prlimit(process, libc::RLIMIT_NOFILE, std::ptr::null(), &mut limit), 0);
            let before = std::mem::replace(&mut limit.rlim_cur, count);
            assert_eq!(libc::prlimit(process, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()), 0);
            before
        }
    }

    /// Returns the processor time that the switch has used, in clock ticks of 10 ms.
    pub fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // The calls fail for a child that has already ended; these errors are ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn frame(dst: u8, ethertype: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(length, 0x77);
    frame
}

/// Runs a controller in this thread, so that its sockets belong to the thread's network namespace.
pub fn controller<T>(address: &str, work: impl AsyncFnOnce(Session) -> T) -> T {
    in_runtime(async { work(Session::open(address).await).await })
}

pub struct Session {
    pub client: P4RuntimeClient<tonic::transport::Channel>,
    to_switch: tokio::sync::mpsc::Sender<p4::StreamMessageRequest>,
    from_switch: tonic::Streaming<p4::StreamMessageResponse>,
}

impl Session {
    pub async fn open(address: &str) -> Self {
        let mut client = P4RuntimeClient::connect(format!("http://{address}")).await.unwrap();
        let (to_switch, requests) = tokio::sync::mpsc::channel(4);
        let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
        let from_switch = client.stream_channel(requests).await.unwrap().into_inner();
        let mut session = Self { client, to_switch, from_switch };
        let election_id = Some(p4::Uint128 { high: 0, low: 1 });
        let bid = p4::MasterArbitrationUpdate { device_id: 7, election_id, ..Default::default() };
        session.send_message(ToSwitch::Arbitration(bid)).await;
        session.next().await;
        session
    }

    pub async fn send_message(&self, message: ToSwitch) {
        self.to_switch.send(p4::StreamMessageRequest { update: Some(message) }).await.unwrap();
    }

    pub async fn next(&mut self) -> FromSwitch {
        self.from_switch.message().await.unwrap().unwrap().update.unwrap()
    }

    /// Writes an entry for frames to the address that ends in `dst`. The entry selects among these ports, whose links
    /// the switch watches.
    pub async fn select_among(&mut self, dst: u8, ports: &[u8]) {
        let member = |port: &u8| p4::ActionProfileAction {
            action: Some(p4::Action {
                action_id: FORWARD,
                params: vec![p4::action::Param { param_id: 1, value: vec![*port] }],
            }),
            weight: 1,
            watch_kind: Some(p4::action_profile_action::WatchKind::WatchPort(vec![*port])),
        };
        let set = p4::ActionProfileActionSet {
            action_profile_actions: ports.iter().map(member).collect(),
            ..Default::default()
        };
        let exact = p4::field_match::Exact { value: vec![2, 0, 0, 0, 0, dst] };
        let exact = Some(p4::field_match::FieldMatchType::Exact(exact));
        let entry = p4::TableEntry {
            table_id: POOL_TABLE,
            r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: exact }],
            action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileActionSet(set)) }),
            ..Default::default()
        };
        self.write(p4::update::Type::Insert, entry).await;
    }

    /// Sets the default action of the table `I.ternary_t`. The switch runs this action on all frames.
    pub async fn act(&mut self, action_id: u32, value: u8) {
        let param = p4::action::Param { param_id: 1, value: vec![value] };
        let action = p4::Action { action_id, params: vec![param] };
        let entry = p4::TableEntry {
            table_id: 0x0200_0003,
            is_default_action: true,
            action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
            ..Default::default()
        };
        self.write(p4::update::Type::Modify, entry).await;
    }

    async fn write(&mut self, kind: p4::update::Type, entry: p4::TableEntry) {
        let entity = p4::Entity { entity: Some(p4::entity::Entity::TableEntry(entry)) };
        let update = p4::Update { r#type: kind as i32, entity: Some(entity) };
        let request = p4::WriteRequest {
            device_id: 7,
            election_id: Some(p4::Uint128 { high: 0, low: 1 }),
            updates: vec![update],
            ..Default::default()
        };
        self.client.write(request).await.unwrap();
    }
}

/// Returns the frames of a capture. Fails while the switch is writing one of the frames.
pub fn capture(path: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let mut reader = PcapReader::new(std::fs::File::open(path)?)?;
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record()? {
        frames.push(record.frame);
    }
    Ok(frames)
}

/// Runs a controller in this thread, for at most 60 seconds.
pub fn in_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await });
    result.expect("the controller is not done after 60 s")
}
