//! The program `sluice-agent`, which runs the agent of content services on a network interface.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sluice_agent::args::{self, Args, Command};
use sluice_agent::control::{Control, SharedState, locked};
use sluice_agent::metrics::{self, Metrics};
use sluice_agent::proto::agent_server::AgentServer;
use sluice_agent::runner::{Handle, Runner};
use sluice_agent::{Engine, Settings, offline};
use sluice_ports::Interface;
use sluice_serve::{Listener, Signals, Supervisor, unserved};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tonic::transport::Server;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The time limit for open connections to end after the agent has begun to drain.
const DRAIN: Duration = Duration::from_secs(10);
const CONTROLLERS: usize = 16;
/// The maximum size of a message, in bytes. The controller sends all rules in one message.
const LARGEST_REQUEST: usize = 128 << 20;
const EXAMPLE: &str = "127.0.0.1:9600";

fn main() -> ExitCode {
    let result = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(args)) => {
            run(&args).map(|()| String::new()).map_err(|error| format!("sluice-agent: {error}\n"))
        }
        Ok(Command::Print(text)) => Ok(text),
        Ok(Command::Check(rules)) => read(&rules).and_then(|rules| offline::check(&rules)),
        Ok(Command::Match { rules, source, service, request }) => read(&rules).and_then(|rules| {
            let request = match request {
                Some(path) => read(&path)?,
                None => standard_input()?,
            };
            offline::decide(&rules, source, service, &request)
        }),
        Err(error) => {
            let _ = writeln!(io::stderr(), "sluice-agent: {error}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(text) => {
            let _ = io::stderr().write_all(text.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("sluice-agent: cannot read {}: {error}\n", path.display()))
}

fn standard_input() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map_err(|error| format!("sluice-agent: cannot read the request: {error}\n"))?;
    Ok(bytes)
}

/// Reads the hardware address of an interface.
fn mac(interface: &str) -> Result<[u8; 6], String> {
    let path = format!("/sys/class/net/{interface}/address");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let bytes: Option<Vec<u8>> = text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| format!("{interface} is no Ethernet interface"))
}

fn run(args: &Args) -> Result<(), String> {
    let own = Targets::new().with_target("sluice", args.log).with_default(args.log.min(tracing::Level::WARN.into()));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false).with_writer(io::stderr);
    tracing_subscriber::registry().with(own).with(lines).init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let caught = runtime.block_on(async { Signals::catch() }).map_err(unwaited)?;
    let interface = Interface::open(&args.interface).map_err(|error| error.to_string())?;
    let counters = Arc::clone(interface.counters());
    let settings = Settings {
        mac: mac(&args.interface)?,
        address: args.address,
        gateway: args.gateway,
        epoch_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        budget: args.memory,
    };
    let shared = Arc::new(SharedState::default());
    let mut runner = Runner::new(Engine::new(settings), interface, Arc::clone(&shared))
        .map_err(|error| format!("cannot wait for frames: {error}"))?;
    let handle = runner.handle();
    let (listener, metrics) = runtime.block_on(bind(args))?;
    let (ended, end) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("engine".to_owned())
        .spawn(move || {
            // If the thread panics, the sender is dropped without a message; the receiver then reports a failure of the
            // engine.
            let _ = ended.send(runner.run());
        })
        .map_err(|error| format!("cannot start the engine: {error}"))?;
    let measured = Metrics { shared: Arc::clone(&shared), interface: counters, started: Instant::now() };
    let result = runtime.block_on(async {
        tokio::select! {
            result = control(args, shared, &handle, (listener, metrics, measured), end) => result,
            never = caught.follow(None::<fn()>) => match never {},
        }
    });
    handle.end();
    let joined = thread.join();
    runtime.shutdown_timeout(Duration::from_millis(100));
    result?;
    joined.map_err(|_| "the engine has failed".to_owned())
}

async fn bind(args: &Args) -> Result<(Listener, Option<TcpListener>), String> {
    let no = |what, address: &str, error| format!("cannot serve {what} on {address}: {}", unserved(&error, EXAMPLE));
    let listener = Listener::bind(&args.control).await.map_err(|error| no("control", &args.control, error))?;
    let Some(address) = &args.metrics else { return Ok((listener, None)) };
    let metrics = TcpListener::bind(address).await.map_err(|error| no("metrics", address, error))?;
    Ok((listener, Some(metrics)))
}

/// Serves the controller's gRPC requests and the metrics until the engine ends, or until the time limit for draining
/// has passed.
async fn control(
    args: &Args,
    shared: Arc<SharedState>,
    handle: &Handle,
    (listener, metrics, measured): (Listener, Option<TcpListener>, Metrics),
    mut end: oneshot::Receiver<io::Result<()>>,
) -> Result<(), String> {
    let on_signal = |kind| signal(kind).map_err(unwaited);
    let mut signals = (on_signal(SignalKind::interrupt())?, on_signal(SignalKind::terminate())?);
    let address = listener.address().map_err(|error| error.to_string())?;
    let (supervisor, mut pulse) = (Supervisor::from_environment(), handle.pulse());
    announce(args, &address, metrics.as_ref().and_then(|metrics| metrics.local_addr().ok()));
    supervisor.ready();
    let lives = async || {
        let shared = Arc::clone(&shared);
        let answer = tokio::spawn(async move { locked(&shared.load).connections });
        answer.await.is_ok() && pulse.beats()
    };
    let waker = handle.clone();
    let service = Control::new(Arc::clone(&shared), move || waker.wake());
    let service = AgentServer::new(service).max_decoding_message_size(LARGEST_REQUEST);
    let server = Server::builder().add_service(service).serve_with_incoming(listener.connections(CONTROLLERS));
    let drained = async {
        tokio::select! {
            () = either(&mut signals) => {}
            () = shared.drain.notified() => {}
        }
        supervisor.stopping();
        handle.drain();
        tokio::select! {
            () = tokio::time::sleep(DRAIN) => tracing::warn!("ending although connections are left"),
            () = either(&mut signals) => {}
        }
    };
    let metrics = async {
        match metrics {
            Some(listener) => metrics::serve(listener, measured).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = server => result.map_err(|error| format!("the control server has failed: {error}")),
        result = metrics => result.map_err(|error| format!("the metrics server has failed: {error}")),
        () = drained => Ok(()),
        never = supervisor.watch(lives) => match never {},
        result = &mut end => match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the engine cannot go on: {error}")),
            Err(_) => Err("the engine has failed".to_owned()),
        },
    }
}

/// Returns the error message if the kernel accepts no signal handler.
fn unwaited(error: io::Error) -> String {
    format!("cannot wait for signals: {error}")
}

/// Waits until one of two signals arrives.
async fn either((first, second): &mut (Signal, Signal)) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}

/// Prints a line on standard output when the agent is ready. Programs that start the agent wait for this line.
fn announce(args: &Args, control: &str, metrics: Option<std::net::SocketAddr>) {
    let metrics = metrics.map(|address| format!(", metrics on http://{address}/metrics")).unwrap_or_default();
    let mut out = io::stdout();
    let line = writeln!(out, "sluice-agent: {} on {}, control on {control}{metrics}", args.address, args.interface);
    if let Err(error) = line.and_then(|()| out.flush()) {
        tracing::warn!(%error, "standard output cannot be written");
    }
}
