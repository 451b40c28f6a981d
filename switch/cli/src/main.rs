//! The command `sluice-switch`: a P4 software switch with the flags of `simple_switch_grpc`.

mod args;
mod captures;
mod dataplane;
mod fileid;
mod files;
mod flags;
mod link;
mod links;
mod logging;
mod metrics;
mod queues;
mod rotation;
mod statistics;
mod trace;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Options;
use sluice_p4runtime::proto::DESCRIPTORS;
use sluice_p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use sluice_p4runtime::{Config, Device, Pipeline, PipelineError, Settings, parse_p4info, serve, server};
use sluice_ports::{Interface, Options as PortOptions, Pulse};
use sluice_serve::{Listener, Signals, Supervisor, unserved};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use args::{Args, Command, DEFAULT_ADDRESS, TraceFormat};
use captures::Captures;
use dataplane::{DataPlane, RunOptions};
use files::{Inputs, Output};
use link::Link;
use links::Links;
use statistics::Statistics;

/// Time between two updates of the statistics file.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let args = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(args)) => args,
        Ok(Command::Print(text)) => return print(text.as_bytes()),
        Ok(Command::Protoset) => return print(DESCRIPTORS),
        Err(error) => {
            print_error(&format!("sluice-switch: {error}"));
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("sluice-switch: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to standard error. Ignores an error, because standard error may no longer have a reader.
fn print_error(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn print(bytes: &[u8]) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(args: &Args) -> Result<(), String> {
    let log = logging::start(args).map_err(|error| match &args.log_file {
        Some(base) => format!("cannot write the log file {}: {error}", rotation::name(base, 0).display()),
        None => format!("cannot log: {error}"),
    })?;
    args.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let signals = runtime.block_on(async { Signals::catch() }).map_err(unwaited)?;
    let settings = settings(args)?;
    let trace = logging::packet_trace(args);
    let config = Config {
        device_id: args.device_id,
        cpu_port: args.cpu_port,
        engine: Options { drop_port: args.drop_port, interpret: args.interpret, ..Options::default() },
    };
    let device = Arc::new(Device::new(config, trace.is_some()));
    if let Some(program) = &args.program {
        device.start(Arc::new(load(program, args.p4info.as_deref())?));
    }
    let mut data_plane = data_plane(args, &device, trace)?;
    let statistics = Arc::new(Statistics {
        ports: data_plane.port_statistics(),
        device: Arc::clone(&device),
        no_such_port: data_plane.no_such_port(),
    });
    if let Some(path) = &args.stats_file {
        write_last(&statistics, path)?;
    }
    let (stop, supervisor) = (data_plane.stop_handle(), Supervisor::from_environment());
    let (listener, metrics) = runtime.block_on(bind(args))?;
    let (pulse, links) = (stop.pulse(), links(args, &device)?);
    let services = Services { listener, settings, metrics, links, supervisor: &supervisor, pulse };
    let (ended, data_plane_end) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("data-plane".to_owned())
        .spawn(move || {
            // If the thread panics, `ended` is dropped without a message, which the receiver also notices.
            let _ = ended.send(data_plane.run());
        })
        .map_err(|error| format!("cannot start the data plane: {error}"))?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = control(args, device, &statistics, services, data_plane_end) => result,
            never = signals.follow(log.map(|log| move || log.follow())) => match never {},
        }
    });
    supervisor.stopping();
    stop.stop();
    let joined = thread.join();
    runtime.shutdown_timeout(Duration::from_millis(100));
    finish(args, &statistics)?;
    result?;
    joined.map_err(|_| "the data plane has failed".to_owned())
}

/// Opens the ports and creates the data plane.
fn data_plane(args: &Args, device: &Arc<Device>, trace: Option<TraceFormat>) -> Result<DataPlane, String> {
    let options = RunOptions {
        trace,
        watched: args.stats_file.is_some() || args.metrics_address.is_some(),
        busy_poll: args.busy_poll,
    };
    let (ports, files) = match args.use_files {
        None => (open_ports(args)?, None),
        Some(wait) => open_files(args, wait).map(|(ports, files)| (ports, Some(files)))?,
    };
    DataPlane::new(Arc::clone(device), ports, files, options)
        .map_err(|error| format!("cannot wait for packets: {error}"))
}

/// Opens the sockets of P4Runtime and, if they are requested, of the metrics.
async fn bind(args: &Args) -> Result<(Listener, Option<TcpListener>), String> {
    let listener = Listener::bind(&args.address).await.map_err(|error| {
        format!("cannot serve P4Runtime on {}: {}", args.address, unserved(&error, DEFAULT_ADDRESS))
    })?;
    let Some(address) = &args.metrics_address else { return Ok((listener, None)) };
    let metrics = TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot serve metrics on {address}: {}", unserved(&error, DEFAULT_ADDRESS)))?;
    Ok((listener, Some(metrics)))
}

/// Reports to the device which ports are up, and watches their links. Ports that use files are always up.
fn links(args: &Args, device: &Arc<Device>) -> Result<Option<Links>, String> {
    if args.use_files.is_some() {
        for port in &args.ports {
            device.set_port(port.number, true);
        }
        return Ok(None);
    }
    let links = Links::new(Arc::clone(device), &args.ports);
    links.map(Some).map_err(|error| format!("cannot watch the ports' links: {error}"))
}

/// Reads a file and checks that it contains a PEM block of this kind. `what` names the content of the file in error
/// messages.
fn pem(path: &Path, what: &str, kind: &str) -> Result<Vec<u8>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {what} {}: {error}", path.display()))?;
    let has_block =
        String::from_utf8_lossy(&bytes).lines().any(|line| line.starts_with("-----BEGIN ") && line.contains(kind));
    if has_block {
        Ok(bytes)
    } else {
        Err(format!("{}: it has to be {what} in PEM (-----BEGIN ...{kind}-----)", path.display()))
    }
}

/// Returns the P4Runtime server's settings from the command line. Reads the files of TLS; fails if one is unusable.
fn settings(args: &Args) -> Result<Settings, String> {
    let mut settings = Settings::default();
    settings.max_connections = args.max_connections.unwrap_or(settings.max_connections);
    settings.max_request_bytes = args.max_request_mib.map_or(settings.max_request_bytes, |mib| mib << 20);
    let files = &args.tls;
    if let (Some(certificate), Some(key)) = (&files.certificate, &files.key) {
        let chain = pem(certificate, "a certificate", "CERTIFICATE")?;
        let secret = pem(key, "a key", "PRIVATE KEY")?;
        let ca = files.ca.as_deref().map(|path| pem(path, "a certificate", "CERTIFICATE")).transpose()?;
        let tls = server::tls(&chain, &secret, ca.as_deref()).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            let (chain, key) = (certificate.display(), key.display());
            format!("cannot serve TLS with {chain} and {key}{cause}; give a certificate and the key that belongs to it")
        })?;
        settings.tls = Some(tls);
    }
    Ok(settings)
}

/// Loads the program that the command line names.
fn load(program: &Path, p4info: Option<&Path>) -> Result<Pipeline, String> {
    let json = std::fs::read(program).map_err(|error| format!("cannot read {}: {error}", program.display()))?;
    let info = p4info.map(|path| {
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        parse_p4info(&text).map_err(|error| format!("{}: {error}", path.display()))
    });
    let config = ForwardingPipelineConfig { p4info: info.transpose()?, p4_device_config: json, cookie: None };
    Pipeline::new(config).map_err(|error| match (&error, p4info) {
        (PipelineError::Binding(_), Some(p4info)) => format!("{}, {}: {error}", program.display(), p4info.display()),
        _ => format!("{}: {error}", program.display()),
    })
}

type Ports = Vec<(u32, Link, Option<Captures>)>;

fn open_ports(args: &Args) -> Result<Ports, String> {
    let open = |port: &args::PortSpec| {
        let options = PortOptions { bypass_qdisc: args.qdisc_bypass, ..PortOptions::default() };
        let interface =
            Interface::open_with(&port.interface, options).map_err(|error| format!("port {}: {error}", port.number))?;
        let captures = args.pcap.as_deref().map(|directory| {
            Captures::create(directory, &port.interface)
                .map_err(|error| format!("cannot write captures into {}: {error}", directory.display()))
        });
        Ok((port.number, Link::Interface(interface), captures.transpose()?))
    };
    args.ports.iter().map(open).collect()
}

/// Opens capture files in place of interfaces.
fn open_files(args: &Args, wait: Duration) -> Result<(Ports, Inputs), String> {
    let (mut inputs, mut ports) = (Inputs::new(wait), Vec::new());
    for port in &args.ports {
        let problem = |error| format!("port {}: {error}", port.number);
        inputs.open(&port.interface).map_err(problem)?;
        let output = Output::create(&port.interface).map_err(problem)?;
        ports.push((port.number, Link::Files(output), None));
    }
    Ok((ports, inputs))
}

/// The services that run beside the data plane.
struct Services<'a> {
    listener: Listener,
    settings: Settings,
    metrics: Option<TcpListener>,
    links: Option<Links>,
    supervisor: &'a Supervisor,
    /// Checks whether the data-plane thread still works.
    pulse: Pulse,
}

/// Returns true if the data-plane thread still works, and the threads that serve controllers can lock the device.
async fn is_alive(pulse: &mut Pulse, device: &Arc<Device>) -> bool {
    let device = Arc::clone(device);
    tokio::spawn(async move { device.open_streams() + device.ports_up().len() }).await.is_ok() && pulse.beats()
}

async fn serve_metrics(listener: Option<TcpListener>, statistics: Arc<Statistics>) -> std::io::Result<()> {
    match listener {
        Some(listener) => metrics::serve(listener, statistics).await,
        None => std::future::pending().await,
    }
}

async fn follow_links(links: Option<Links>) -> std::io::Result<()> {
    match links {
        Some(links) => links.follow().await.map(|never| match never {}),
        None => std::future::pending().await,
    }
}

/// Returns the error message for a signal handler that the kernel refuses.
fn unwaited(error: io::Error) -> String {
    format!("cannot wait for signals: {error}")
}

/// Reports that the switch is ready, and serves controllers until SIGINT or SIGTERM arrives. Fails if the data plane or
/// a service ends before.
async fn control(
    args: &Args,
    device: Arc<Device>,
    statistics: &Arc<Statistics>,
    services: Services<'_>,
    data_plane_end: oneshot::Receiver<std::io::Result<()>>,
) -> Result<(), String> {
    let on_signal = |kind| signal(kind).map_err(unwaited);
    let (mut interrupt, mut terminate) = (on_signal(SignalKind::interrupt())?, on_signal(SignalKind::terminate())?);
    let Services { listener, settings, metrics, links, supervisor, mut pulse } = services;
    let address = listener.address().map_err(|error| error.to_string())?;
    let metrics_address =
        metrics.as_ref().map(TcpListener::local_addr).transpose().map_err(|error| error.to_string())?;
    announce(args, &address, metrics_address);
    supervisor.ready();
    let watched = Arc::clone(&device);
    let shutdown = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::select! {
        result = serve(device, listener, settings, shutdown) => {
            result.map_err(|error| format!("the P4Runtime server has failed: {error}"))
        }
        end = data_plane_end => match end {
            Ok(Err(error)) => Err(format!("the data plane cannot go on: {error}")),
            Ok(Ok(())) | Err(_) => Err("the data plane has failed".to_owned()),
        },
        never = write_statistics(args.stats_file.as_deref(), statistics) => match never {},
        never = supervisor.watch(async || is_alive(&mut pulse, &watched).await) => match never {},
        end = serve_metrics(metrics, Arc::clone(statistics)) => {
            end.map_err(|error| format!("the metrics server has failed: {error}"))
        }
        end = follow_links(links) => end.map_err(|error| format!("the ports' links cannot be watched: {error}")),
    }
}

/// Writes a line to standard output that reports that the switch is ready. Programs that start the switch wait for this
/// line.
fn announce(args: &Args, address: &str, metrics: Option<SocketAddr>) {
    let ports: Vec<_> = args.ports.iter().map(|port| format!("{}@{}", port.number, port.interface)).collect();
    let ports = if ports.is_empty() { "none".to_owned() } else { ports.join(" ") };
    let mut out = std::io::stdout();
    let id = args.device_id;
    let metrics = metrics.map(|address| format!(", metrics on http://{address}/metrics")).unwrap_or_default();
    let line = writeln!(out, "sluice-switch: serving P4Runtime on {address}, device {id}, ports {ports}{metrics}");
    if let Err(error) = line.and_then(|()| out.flush()) {
        tracing::warn!(%error, "standard output cannot be written");
    }
}

async fn write_statistics(path: Option<&Path>, statistics: &Statistics) -> std::convert::Infallible {
    let Some(path) = path else { return std::future::pending().await };
    let mut interval = tokio::time::interval(STATISTICS_INTERVAL);
    let mut has_logged = false;
    loop {
        interval.tick().await;
        let result = statistics.write(path);
        if let (Err(error), false) = (&result, has_logged) {
            tracing::error!(file = %path.display(), %error, "cannot write the statistics");
        }
        has_logged = result.is_err();
    }
}

fn write_last(statistics: &Statistics, path: &Path) -> Result<(), String> {
    let written = statistics.write(path);
    written.map_err(|error| format!("cannot write the statistics file {}: {error}", path.display()))
}

/// Writes the statistics when the switch ends: to the statistics file or, without such a file, to standard error.
fn finish(args: &Args, statistics: &Statistics) -> Result<(), String> {
    match &args.stats_file {
        Some(path) => write_last(statistics, path),
        None => {
            print_error(&statistics.to_json().to_string());
            Ok(())
        }
    }
}
