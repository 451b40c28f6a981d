//! Tests the binary from outside: the line that reports that it is ready, its ports, its statistics and its end.
//!
//! Each test runs on veth pairs in a network namespace of its own, which needs root. Without root, each test prints
//! that it is skipped, and passes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sluice_p4runtime::proto::p4::v1 as p4;
use sluice_ports::{Interface, Poller, RxBatch, TxBatch};

use crate::common::{FORWARD, P4INFO, PROGRAM, Switch, TO_CONTROLLER, controller, frame};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;

/// Runs `test` in a new namespace with two veth pairs. The switch's port 1 uses `s1`, whose other end is `h1`; port 2
/// uses `s2`, whose other end is `h2`.
pub fn in_namespace(test: impl FnOnce() + Send + 'static) {
    // SAFETY: the call has no pointer arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: network namespaces need root");
        return;
    }
    std::thread::spawn(|| {
        // SAFETY: the call has no pointer arguments. It moves this thread alone to a new namespace, which the processes
        // that the thread starts inherit.
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
    // The kernel drops the frames of an interface until it has noticed that the interface's link is up.
    let started = Instant::now();
    while !["s", "h"].iter().all(|end| is_up(&format!("{end}{number}"))) {
        assert!(started.elapsed() < Duration::from_secs(60), "no carrier after a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_up(interface: &str) -> bool {
    let output = Command::new("ip").args(["-o", "link", "show", interface]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains(" state UP ")
}

pub fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().expect(command);
    assert!(status.success(), "{command}: {status}");
}

/// The end of a veth pair that the test uses.
pub struct Host {
    interface: Interface,
    poller: Poller,
}

impl Host {
    pub fn open(name: &str) -> Self {
        let interface = Interface::open(name).unwrap();
        let poller = Poller::new().unwrap();
        poller.add(interface.raw_fd().unwrap(), 0).unwrap();
        Self { interface, poller }
    }

    pub fn send(&mut self, frames: &[Vec<u8>]) {
        for frames in frames.chunks(64) {
            let mut batch = TxBatch::default();
            frames.iter().for_each(|frame| batch.push(frame, &[]));
            self.interface.send(&mut batch);
        }
    }

    /// Receives frames until there are `count` frames, for at most a minute.
    fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        self.receive_within(count, Duration::from_secs(60))
    }

    /// Receives frames until there are `count` frames, for at most `time`.
    fn receive_within(&mut self, count: usize, time: Duration) -> Vec<Vec<u8>> {
        let (mut frames, mut batch, mut events) = (Vec::new(), RxBatch::default(), Vec::new());
        let deadline = Instant::now() + time;
        while frames.len() < count {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            self.poller.wait(&mut events, Some(left)).unwrap();
            self.interface.receive(&mut batch);
            frames.extend(batch.frames().map(<[u8]>::to_vec));
        }
        frames
    }
}

fn flags(extra: &str) -> String {
    format!(
        "{PROGRAM} --p4info {P4INFO} -i 1@s1 -i 2@s2 --device-id 7 {extra} -- \
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

/// Returns the number of packets in a capture.
fn pcap_packets(path: &Path) -> usize {
    crate::common::capture(path).unwrap().len()
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
            session.send_message(ToSwitch::Packet(p4::PacketOut { payload: frame(3, 0x0800, 80), metadata })).await;
            // The reply to this request shows that the switch has queued the packet.
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
    for extra_flags in ["", "--busy-poll --qdisc-bypass"] {
        in_namespace(move || vanishing(extra_flags, "up"));
    }
}

#[test]
fn an_interface_may_come_back_that_was_down_when_it_went() {
    in_namespace(|| vanishing("", "down"));
}

fn vanishing(extra_flags: &str, before: &str) {
    let switch = Switch::start(&flags(&format!("--log-console {extra_flags}")));
    controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
    run(&format!("ip link set s1 {before}"));
    std::thread::sleep(Duration::from_millis(50));
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
        assert!(started.elapsed() < Duration::from_secs(60), "nothing forwarded after the interface came back");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(arrived, sluice_ports::Received::Frames);
    let (code, out, _) = switch.stop(libc::SIGTERM);
    assert_eq!(code, Some(0));
    assert!(out.contains("interface is gone") && out.contains("interface is back"), "{out}");
}

#[test]
fn an_interface_that_cannot_be_opened_again_is_logged_once_and_opened_later() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let switch = Switch::start(&flags(&format!("--log-file {}", directory.path().join("log").display())));
        let path = directory.path().join("log.txt");
        controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
        let before = switch.limit_files(3);
        run("ip link del s1");
        until_logged(&path, "interface is gone");
        add_pair(1);
        let text = "interface cannot be opened yet";
        until_logged(&path, text);
        // In this second the switch tries four more times to open the interface. It must log the failure only once.
        std::thread::sleep(Duration::from_secs(1));
        let log = std::fs::read_to_string(&path).unwrap();
        assert_eq!(log.matches(text).count(), 1, "{log}");
        assert!(log.contains("interface s1: Too many open files") && !log.contains("interface is back"), "{log}");
        switch.limit_files(before);
        until_logged(&path, "interface is back");
        let (mut left, mut right) = (Host::open("h1"), Host::open("h2"));
        left.send(&[frame(1, 0x0800, 60)]);
        assert_eq!(right.receive(1).len(), 1);
    });
}

/// Waits until the log contains `text`. Returns the log.
fn until_logged(path: &Path, text: &str) -> String {
    let started = Instant::now();
    loop {
        let log = std::fs::read_to_string(path).unwrap_or_default();
        if log.contains(text) {
            return log;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no «{text}» in {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
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
fn the_trace_reports_what_happens_to_a_packet() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let switch = Switch::start(&flags(&format!("--log-file {} --trace", directory.path().join("log").display())));
        let path = directory.path().join("log.txt");
        let (mut left, mut right) = (Host::open("h1"), Host::open("h2"));
        controller(&switch.address(), async |mut session| session.act(FORWARD, 2).await);
        let until_logged = |text: &str| until_logged(&path, text);
        left.send(&[frame(9, 0x0800, 70)]);
        assert_eq!(right.receive(1).len(), 1);
        let log = until_logged("packet 1: out by port 2, 70 bytes\n");
        for text in ["packet 1: in by port 1", "parser state", "table I.ternary_t", "action I.forward("] {
            assert!(log.contains(text), "no «{text}» in {log}");
        }
        assert!(!log.contains("dropped"), "{log}");
        run("ip link set s2 mtu 1000");
        left.send(&[frame(9, 0x0800, 1200)]);
        until_logged("packet 2: dropped: port 2: refused: Message too long (os error 90)\n");
        run("ip link set s2 down");
        left.send(&[frame(9, 0x0800, 70)]);
        until_logged("packet 3: dropped: port 2: the interface is down\n");
        run("ip link del s2");
        std::thread::sleep(Duration::from_millis(500));
        // With `s2` the kernel has also removed the other end of the pair, `h2`. So only `left` is used from here on.
        left.send(&[frame(9, 0x0800, 70)]);
        until_logged("packet 4: dropped: port 2: the interface is down\n");
    });
}

#[test]
fn members_follow_the_links_of_their_ports() {
    in_namespace(|| {
        add_pair(3);
        let switch = Switch::start(&flags("-i 3@s3"));
        let (mut sender, mut first, mut second) = (Host::open("h1"), Host::open("h2"), Host::open("h3"));
        controller(&switch.address(), async |mut session| session.select_among(5, &[2, 3]).await);
        let frames: Vec<_> = (0..=255u8)
            .map(|source| {
                let mut frame = frame(5, 0x0800, 60);
                frame[9..12].fill(source);
                frame
            })
            .collect();
        sender.send(&frames);
        assert!(!first.receive(1).is_empty() && !second.receive(1).is_empty(), "both ports are chosen");
        // Once the switch has noticed that the link of port 3 is down, it must select port 2 for all frames.
        run("ip link set h3 down");
        let all_by_port_2 = |sender: &mut Host, first: &mut Host| {
            let started = Instant::now();
            loop {
                first.receive_within(usize::MAX, Duration::from_millis(20));
                sender.send(&frames);
                if first.receive_within(frames.len(), Duration::from_millis(500)).len() == frames.len() {
                    return;
                }
                assert!(started.elapsed() < Duration::from_secs(60), "port 3 is chosen still");
            }
        };
        all_by_port_2(&mut sender, &mut first);
        run("ip link set h3 up");
        let mut second = Host::open("h3");
        let started = Instant::now();
        while second.receive_within(1, Duration::from_millis(200)).is_empty() {
            assert!(started.elapsed() < Duration::from_secs(60), "port 3 is not chosen again");
            sender.send(&frames);
        }
    });
}

/// Runs the binary with flags that it refuses. Returns its exit code and its message on standard error.
fn refusal(flags: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice-switch")).args(flags).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_program_whose_arrays_do_not_fit_into_memory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let json = std::fs::read_to_string(PROGRAM).unwrap();
    assert!(json.contains("\"size\" : 300000"));
    let path = directory.path().join("large.json");
    std::fs::write(&path, json.replace("\"size\" : 300000", "\"size\" : 200000000")).unwrap();
    // The limit on memory suffices for the switch itself, but not for the program's arrays.
    let limited = format!("ulimit -v 1000000; exec {} {}", env!("CARGO_BIN_EXE_sluice-switch"), path.display());
    let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    for text in ["large.json: ", "1600000000 of them 'I.last_source', and there is not so much memory"] {
        assert!(message.contains(text), "«{message}» does not contain «{text}»");
    }
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn it_ends_cleanly_when_its_output_has_no_reader() {
    let mut switch = Switch::start("--no-p4 --grpc-server-addr 127.0.0.1:0");
    switch.hang_up();
    let (code, ..) = switch.stop(libc::SIGTERM);
    assert_eq!(code, Some(0));
}

#[test]
fn refusals_state_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let invalid: PathBuf = directory.path().join("invalid.json");
    std::fs::write(&invalid, "{}").unwrap();
    let invalid = invalid.to_str().unwrap();
    let file = |name: &str, content: &[u8]| {
        std::fs::write(directory.path().join(name), content).unwrap();
        directory.path().join(name).to_str().unwrap().to_owned()
    };
    let json = std::fs::read(PROGRAM).unwrap();
    let (cut, empty) = (file("cut.json", &json[..json.len() / 2]), file("empty", b""));
    let other = file("other.txtpb", b"tables { preamble { id: 33554433 name: \"I.other\" } }");
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = busy.local_addr().unwrap().to_string();
    let cases: [(&[&str], i32, &str); 17] = [
        (&["--frobnicate"], 2, "unknown flag --frobnicate"),
        (&["--no-p4", "--log-console", "--log-file", "x"], 2, "--log-console and --log-file exclude each other"),
        (&["--no-p4", "--log-file", "/nonexistent/s"], 1, "cannot write the log file /nonexistent/s.txt: No such file"),
        (&["/nonexistent.json"], 1, "cannot read /nonexistent.json"),
        (&[invalid], 1, "invalid.json: program (p4_device_config)"),
        (&[&cut], 1, "this is not JSON: EOF while parsing"),
        (&[&empty], 1, "it is empty; give the JSON that p4c-bm2-ss writes"),
        (&[P4INFO], 1, "it is neither a JSON object nor a p4.tmp.P4DeviceConfig"),
        (&[PROGRAM, "--p4info", PROGRAM], 1, "everything.json: P4Info text"),
        (&[PROGRAM, "--p4info", "/nonexistent.txtpb"], 1, "cannot read /nonexistent.txtpb"),
        (&[PROGRAM, "--p4info", &empty], 1, "P4Info text: there is nothing in it; give what p4c writes"),
        (&[PROGRAM, "--p4info", &other], 1, "other.txtpb: P4Info has table I.other, the program's JSON does not"),
        (&["--no-p4", "--grpc-server-addr", &busy], 1, "in use (os error 98); end what listens there"),
        (&["--no-p4", "--grpc-server-addr", "127.0.0.1"], 1, "an address is HOST:PORT, for example 127.0.0.1:9559"),
        (&["--no-p4", "--grpc-server-addr", "192.0.2.1:9559"], 1, "give an address of this host"),
        (&["--no-p4", "--grpc-server-addr", "unix:/nonexistent/s"], 1, "make the folder first"),
        (
            &["--no-p4", "--grpc-server-addr", "127.0.0.1:0", "--stats-file", "/nonexistent/s"],
            1,
            "cannot write the statistics file /nonexistent/s",
        ),
    ];
    for (flags, code, text) in cases {
        let (actual, message) = refusal(flags);
        assert_eq!(actual, Some(code), "{message}");
        assert!(message.contains(text), "«{message}» does not contain «{text}»");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
