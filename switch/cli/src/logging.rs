//! Sets up logging: the destination of log lines, and their level.

use std::io;
use std::sync::Arc;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, TraceFormat};
use crate::rotation::RotatingFile;

/// The `tracing` target of the lines that describe the processing of each packet. These lines are enabled independently
/// of the log level.
pub const PACKETS: &str = "packet";

/// Returns the format of the trace of packets: the format of `--trace`, or, without this flag, text at the log level
/// `trace`. Returns `None` if packets are not traced.
pub fn packet_trace(args: &Args) -> Option<TraceFormat> {
    args.trace.or_else(|| (args.log_level == Some(LevelFilter::TRACE)).then_some(TraceFormat::Text))
}

/// Starts logging. Returns the log file, if there is one. Without a log destination on the command line, warnings are
/// written to standard error.
///
/// # Errors
/// Fails if the log file cannot be written.
pub fn start(args: &Args) -> io::Result<Option<Arc<RotatingFile>>> {
    let has_destination = args.log_console || args.log_file.is_some();
    let level = args.log_level.unwrap_or(if has_destination { LevelFilter::INFO } else { LevelFilter::WARN });
    let packets = packet_trace(args);
    let filter = filter_fn(move |event| {
        if event.target() == PACKETS {
            return packets == Some(TraceFormat::Text);
        }
        // Lines of libraries are logged only if they are warnings or errors, even at lower levels such as `debug`.
        let own = event.target().starts_with("sluice");
        *event.level() <= if own { level } else { level.min(LevelFilter::WARN) }
    });
    let file = match &args.log_file {
        Some(base) => Some(Arc::new(RotatingFile::open(base, args.log_rotation)?)),
        None => None,
    };
    let writer = || match &file {
        Some(file) => BoxMakeWriter::new(Arc::clone(file)),
        None if args.log_console => BoxMakeWriter::new(io::stdout),
        None => BoxMakeWriter::new(io::stderr),
    };
    let lines = fmt::layer().with_ansi(false).with_target(false).with_writer(writer());
    // The line of a packet's JSON object contains no other text.
    let objects =
        fmt::layer().with_ansi(false).with_target(false).with_level(false).without_time().with_writer(writer());
    let is_object = filter_fn(move |event| event.target() == PACKETS && packets == Some(TraceFormat::Json));
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(objects.with_filter(is_object)).init();
    Ok(file)
}
