//! The command `sluice-tofino`: serves P4Runtime in front of Tofino's driver.

mod args;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use args::{Args, Command};
use sluice_p4runtime::{Settings as ServerSettings, serve};
use sluice_serve::{Listener, Supervisor};
use sluice_tofino::client::Address;
use sluice_tofino::cpu::Port;
use sluice_tofino::front_panel::FrontPanel;
use sluice_tofino::journal::{self, Journal, JournalError, JournalOwner, Restored};
use sluice_tofino::{Gateway, Settings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    let args = match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(args)) => args,
        Ok(Command::Print(text)) => {
            let written = std::io::stdout().write_all(text.as_bytes());
            return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sluice-tofino: {error}");
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt().with_max_level(args.log_level).with_ansi(io::stdout().is_terminal()).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = runtime.map_err(|error| format!("cannot start threads: {error}")).and_then(|runtime| {
        let result = runtime.block_on(run(&args));
        // The process must not wait for the thread of the CPU interface, which never ends.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sluice-tofino: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<(), String> {
    let supervisor = Supervisor::from_environment();
    let port = args.cpu_interface.as_ref().map(|_| Arc::new(Port::default()));
    let driver = Address {
        uri: args.driver.clone(),
        device: args.driver_device,
        client: args.client_id,
        program: args.program.clone(),
    };
    let front_panel = args.ports.as_deref().map(FrontPanel::open).transpose().map_err(|error| error.to_string())?;
    let settings = Settings {
        device_id: args.device_id,
        driver,
        pipes: args.pipes.clone(),
        cpu_port: args.cpu_port,
        front_panel: front_panel.unwrap_or_default(),
        program_folder: args.program_folder.clone(),
        reload: args.reload,
    };
    let gateway = Arc::new(match &args.state {
        None => Gateway::new(settings, port.clone()),
        Some(folder) => {
            let (journal, restored) = open_journal(folder, args).map_err(|error| format!("--state {error}"))?;
            tracing::info!(folder, adopts = restored.is_some(), "what controllers write is saved for a restart");
            Gateway::new(settings, port.clone()).with_journal(journal, restored)
        }
    });
    let listener = Listener::bind(&args.address)
        .await
        .map_err(|error| format!("--grpc-server-addr {}: {error}; give a free HOST:PORT or unix:PATH", args.address))?;
    let metrics = serve_metrics(args.metrics_address.as_deref(), Arc::clone(&gateway)).await?;
    let mut failed = std::pin::pin!(cpu(args.cpu_interface.clone(), port, Arc::clone(&gateway)));
    let signals = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let (mut interrupt, mut terminate) = (signals(SignalKind::interrupt())?, signals(SignalKind::terminate())?);
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    supervisor.ready();
    tracing::info!(address = args.address, driver = args.driver, "serving P4Runtime");
    let watched = Arc::clone(&gateway);
    // `sizes` locks the state. If a thread holds the lock forever, the call never returns, and systemd receives no
    // watchdog notification.
    let lives = async || {
        watched.sizes();
        true
    };
    let result = tokio::select! {
        never = supervisor.watch(lives) => match never {},
        error = metrics => Err(error),
        served = serve(gateway, listener, ServerSettings::default(), stop) => {
            served.map_err(|error| format!("serving P4Runtime: {error}"))
        }
        error = &mut failed => Err(error),
    };
    supervisor.stopping();
    result
}

/// Opens the journal in a folder. Also returns the state that an earlier gateway saved there, if it can be restored.
fn open_journal(folder: &str, args: &Args) -> Result<(Journal, Option<Restored>), JournalError> {
    let owner = JournalOwner { boot: journal::boot()?, device_id: args.device_id, driver_device: args.driver_device };
    Journal::open(Path::new(folder), owner)
}

/// Listens on the address of the metrics. The returned future serves the metrics; it ends only if the server ends, and
/// returns the reason. Without an address, the future never ends.
async fn serve_metrics(
    address: Option<&str>,
    gateway: Arc<Gateway>,
) -> Result<impl Future<Output = String> + use<>, String> {
    let listener = match address {
        None => None,
        Some(address) => Some(
            TcpListener::bind(address)
                .await
                .map_err(|error| format!("--metrics-addr {address}: {error}; give a free HOST:PORT"))?,
        ),
    };
    if let Some(Ok(address)) = listener.as_ref().map(TcpListener::local_addr) {
        tracing::info!("metrics on http://{address}/metrics");
    }
    Ok(async move {
        let Some(listener) = listener else { return std::future::pending().await };
        match sluice_tofino::metrics::serve(listener, gateway).await {
            Ok(()) => "the metrics server has ended".to_owned(),
            Err(error) => format!("the metrics server has failed: {error}"),
        }
    })
}

/// Moves packets between the CPU interface and controllers, in a thread of its own. Returns the reason when the thread
/// ends. Without a CPU interface, never returns.
async fn cpu(interface: Option<String>, port: Option<Arc<Port>>, gateway: Arc<Gateway>) -> String {
    let (Some(interface), Some(port)) = (interface, port) else { return std::future::pending().await };
    let moved = tokio::task::spawn_blocking(move || port.run(&interface, |frame| gateway.packet_in(frame)));
    match moved.await {
        Ok(Ok(())) => "the CPU interface's thread has ended".to_owned(),
        Ok(Err(error)) => format!("{error}; give an existing network interface"),
        Err(error) => format!("the CPU interface's thread has failed: {error}"),
    }
}
