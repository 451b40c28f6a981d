//! Where log lines go, and how many of them.

use std::fs::OpenOptions;
use std::io;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Args;

/// The target of the per-packet trace, which is switched apart from the log level.
pub const PACKETS: &str = "packet";

/// Whether each packet is to be traced.
pub fn traces_packets(args: &Args) -> bool {
    args.trace || args.log_level == Some(LevelFilter::TRACE)
}

/// Starts logging. Without a place on the command line, warnings go to standard error.
///
/// # Errors
/// When the log file cannot be written.
pub fn start(args: &Args) -> io::Result<()> {
    let asked = args.log_console || args.log_file.is_some();
    let level = args.log_level.unwrap_or(if asked { LevelFilter::INFO } else { LevelFilter::WARN });
    let packets = traces_packets(args);
    let filter = filter_fn(move |event| {
        if event.target() == PACKETS {
            return packets;
        }
        // Libraries below this workspace speak up for warnings only.
        let own = event.target().starts_with("sluice");
        *event.level() <= if own { level } else { level.min(LevelFilter::WARN) }
    });
    let layer = fmt::layer().with_target(false);
    let registry = tracing_subscriber::registry();
    match &args.log_file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            let layer = layer.with_ansi(false).with_writer(Mutex::new(file));
            registry.with(layer.with_filter(filter)).init();
        }
        None if args.log_console => {
            registry.with(layer.with_ansi(false).with_writer(io::stdout).with_filter(filter)).init();
        }
        None => registry.with(layer.with_ansi(false).with_writer(io::stderr).with_filter(filter)).init(),
    }
    Ok(())
}
