//! The command line of `sluice-tofino`.

use std::ffi::OsString;

use lexopt::{Arg, Parser, ValueExt};
use thiserror::Error;
use tracing::level_filters::LevelFilter;

/// Default address on which the gateway serves P4Runtime.
const DEFAULT_ADDRESS: &str = "127.0.0.1:9559";
/// Default URI of the driver's BF Runtime server.
const DEFAULT_DRIVER: &str = "http://127.0.0.1:50052";

/// Default folder on the driver's machine for the files of programs that the driver loads.
const DEFAULT_FOLDER: &str = "/var/lib/sluice-tofino/programs";

/// The text of `--help`.
pub const HELP: &str = "\
usage: sluice-tofino [flags]      serve P4Runtime in front of bf_switchd's BF Runtime

  --grpc-server-addr A     address to serve P4Runtime on [127.0.0.1:9559], or unix:PATH for a Unix socket
  --device-id N            P4Runtime device id [1]
  --driver URI             where BF Runtime is served [http://127.0.0.1:50052]
  --driver-device N        the driver's number of the device [0]
  --client-id N            the number by which the driver identifies this gateway; no other client may have it [1]
  --program NAME           the program to use, if the driver runs several
  --pipes N,N              pipes whose register cells are added up in an answer: those that packets come in by [0]
  --cpu-port N             the device's port that leads to the CPU (PCIe: 192 with two pipes, 320 with four); without it, none is set
  --ports FILE             front-panel ports to set, with speed and error correction, in TOML
  --cpu-interface IFACE    network interface by which packets for the controller come and go; without it there are none
  --metrics-addr HOST:PORT serve metrics for Prometheus on http://HOST:PORT/metrics
  --program-folder PATH    folder on the driver's machine for the files of programs that it loads [/var/lib/sluice-tofino/programs]
  --reload                 at a commit the driver loads its program again instead of clearing the tables: seconds on the model, where
                           clearing takes minutes; on hardware its ports go down
  --state FOLDER           keep in this folder what controllers write, so that a restarted gateway adopts it; without this flag,
                           a restarted gateway starts empty
  --log-level LEVEL        trace, debug, info, warn, error or off [info]
  -h, --help, -v, --version
";

/// The action that the command line requests.
pub enum Command {
    /// Serve P4Runtime with these arguments.
    Run(Box<Args>),
    /// Print a text and exit.
    Print(String),
}

/// The arguments of a gateway that serves P4Runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    /// Address on which the gateway serves P4Runtime.
    pub address: String,
    /// The device id that P4Runtime requests for this switch must carry.
    pub device_id: u64,
    /// URI of the driver's BF Runtime server.
    pub driver: String,
    /// The number that the driver gives to the device.
    pub driver_device: u32,
    /// The client id by which the driver identifies this gateway.
    pub client_id: u32,
    /// The name of the program to use, required if the driver runs several programs.
    pub program: Option<String>,
    /// The pipes of the device that a read of a register includes. The result has, for each cell, the sum of its values
    /// in these pipes.
    pub pipes: Vec<u32>,
    /// The port of the device that is connected to the CPU; `None` leaves the device's setting unchanged.
    pub cpu_port: Option<u32>,
    /// Path of the file that configures front-panel ports.
    pub ports: Option<String>,
    /// Network interface for packets to and from the controller.
    pub cpu_interface: Option<String>,
    /// Address on which the gateway serves metrics; `None` for no metrics.
    pub metrics_address: Option<String>,
    /// Folder on the driver's machine for the files of programs that the driver loads.
    pub program_folder: String,
    /// The effect of the commit of a program that the driver already runs: if true, the driver loads the program again;
    /// otherwise the gateway clears the program's tables.
    pub reload: bool,
    /// Folder in which the gateway saves its state for a restart; `None` to save no state.
    pub state: Option<String>,
    /// The least severe level of messages that the gateway logs.
    pub log_level: LevelFilter,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            address: DEFAULT_ADDRESS.to_owned(),
            device_id: 1,
            driver: DEFAULT_DRIVER.to_owned(),
            driver_device: 0,
            client_id: 1,
            program: None,
            pipes: vec![0],
            cpu_port: None,
            ports: None,
            cpu_interface: None,
            metrics_address: None,
            program_folder: DEFAULT_FOLDER.to_owned(),
            reload: false,
            state: None,
            log_level: LevelFilter::INFO,
        }
    }
}

/// Errors of the command line.
#[derive(Debug, Error)]
pub enum ArgsError {
    /// An unknown flag, or a flag with a wrong value.
    #[error("{0}; see --help")]
    Flag(#[from] lexopt::Error),
    /// A list of pipes that cannot be parsed.
    #[error("--pipes {0}: give numbers from 0 to 7, such as 0,1")]
    Pipes(String),
    /// A program folder that is not an absolute path.
    #[error("--program-folder {0}: give an absolute path, such as /var/lib/sluice-tofino/programs")]
    Folder(String),
}

/// Parses the command line.
///
/// # Errors
/// Fails for the first flag that is unknown or has a wrong value.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, ArgsError> {
    let mut args = Args::default();
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("grpc-server-addr") => args.address = parser.value()?.string()?,
            Arg::Long("device-id") => args.device_id = parser.value()?.parse()?,
            Arg::Long("driver") => args.driver = parser.value()?.string()?,
            Arg::Long("driver-device") => args.driver_device = parser.value()?.parse()?,
            Arg::Long("client-id") => args.client_id = parser.value()?.parse()?,
            Arg::Long("program") => args.program = Some(parser.value()?.string()?),
            Arg::Long("pipes") => args.pipes = pipes(&parser.value()?.string()?)?,
            Arg::Long("cpu-port") => args.cpu_port = Some(parser.value()?.parse()?),
            Arg::Long("ports") => args.ports = Some(parser.value()?.string()?),
            Arg::Long("cpu-interface") => args.cpu_interface = Some(parser.value()?.string()?),
            Arg::Long("metrics-addr") => args.metrics_address = Some(parser.value()?.string()?),
            Arg::Long("program-folder") => args.program_folder = folder(parser.value()?.string()?)?,
            Arg::Long("reload") => args.reload = true,
            Arg::Long("state") => args.state = Some(parser.value()?.string()?),
            Arg::Long("log-level") => args.log_level = parser.value()?.parse()?,
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(HELP.to_owned())),
            Arg::Short('v') | Arg::Long("version") => {
                return Ok(Command::Print(format!("sluice-tofino {}\n", env!("CARGO_PKG_VERSION"))));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Run(Box::new(args)))
}

fn pipes(list: &str) -> Result<Vec<u32>, ArgsError> {
    let pipes: Option<Vec<u32>> =
        list.split(',').map(|pipe| pipe.trim().parse().ok().filter(|pipe| *pipe < 8)).collect();
    pipes.ok_or_else(|| ArgsError::Pipes(list.to_owned()))
}

/// Returns an absolute path unchanged. Refuses relative paths, because the driver would resolve them against its own
/// working directory.
fn folder(path: String) -> Result<String, ArgsError> {
    if path.starts_with('/') { Ok(path) } else { Err(ArgsError::Folder(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Args, String> {
        match parse(line.split_whitespace().map(OsString::from)) {
            Ok(Command::Run(args)) => Ok(*args),
            Ok(Command::Print(text)) => Err(text),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn flags_set_the_driver_and_the_pipes() {
        let args = run("--driver http://switch:50052 --program sluice --pipes 0,2 --cpu-interface bf_pci0").unwrap();
        assert_eq!((args.driver.as_str(), args.program.as_deref()), ("http://switch:50052", Some("sluice")));
        assert_eq!((args.pipes, args.cpu_interface.as_deref()), (vec![0, 2], Some("bf_pci0")));
        assert_eq!(run("").unwrap(), Args::default());
    }

    #[test]
    fn wrong_flags_are_named() {
        assert!(run("--pipe 0").unwrap_err().contains("--pipe"));
        assert!(run("--pipes 0,9").unwrap_err().contains("--pipes 0,9: give numbers from 0 to 7"));
        assert!(run("--program-folder programs").unwrap_err().contains("give an absolute path"));
        assert!(run("--help").unwrap_err().starts_with("usage: sluice-tofino"));
    }
}
