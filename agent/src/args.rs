//! Parses the command line of `sluice-agent`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};
use thiserror::Error;
use tracing::level_filters::LevelFilter;

/// The text that `--help` prints.
pub const HELP: &str = "\
usage: sluice-agent --interface IFACE --address A --gateway A --control C [flags]
       sluice-agent check FILE                           check rules (the `content:` block as JSON) for mistakes
       sluice-agent match FILE [--source A] [--service A:PORT] [--request FILE|-]
                                                         print which rule matches a request, which is read from FILE
                                                         or from standard input

  -i, --interface IFACE      the network interface; the kernel has no address there
      --address A            the agent's IPv4 address, for which it answers ARP itself
      --gateway A            the switch's IPv4 address on that link
      --control C            where the controller connects: HOST:PORT, or unix:///PATH
      --metrics HOST:PORT    serve metrics for Prometheus on http://HOST:PORT/metrics
      --memory MIB           memory for connections [64]
      --log LEVEL            trace, debug, info, warn, error or off, to standard error [warn]
  -v, --version, -h, --help

SIGTERM and SIGINT: the agent takes no new work, and ends when no connection is left or after 10 seconds; a second signal
ends it at once.
SIGHUP, SIGUSR1 and SIGUSR2 are logged, and have no other effect.
Exit codes: 0, 1 for a failure (check: a mistake; match: refused), 2 for a wrong command line.
";

/// The flags of `sluice-agent`.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    /// The network interface.
    pub interface: String,
    /// The agent's IPv4 address.
    pub address: Ipv4Addr,
    /// The switch's IPv4 address on the agent's link.
    pub gateway: Ipv4Addr,
    /// The address and port on which the agent accepts the controller's connections.
    pub control: String,
    /// The address and port on which the agent serves metrics; `None`: it serves none.
    pub metrics: Option<String>,
    /// Memory for connections, in bytes.
    pub memory: usize,
    /// The least severe level that is logged.
    pub log: LevelFilter,
}

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Run the agent.
    Run(Args),
    /// Check rules for mistakes.
    Check(PathBuf),
    /// Print which rule matches a request.
    Match {
        /// The file with the rules.
        rules: PathBuf,
        /// The client's address.
        source: IpAddr,
        /// The service's address and port.
        service: SocketAddr,
        /// The file with the request; `None`: the request is read from standard input.
        request: Option<PathBuf>,
    },
    /// Print a text (help or version) and exit.
    Print(String),
}

/// A description of what is wrong with the command line.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0} (sluice-agent --help lists the flags)")]
pub struct UsageError(String);

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

/// Parses the command line, given without the program's own name.
///
/// # Errors
/// An error that names the unknown, missing or wrong flag.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match arguments.first().and_then(|word| word.to_str()) {
        Some("check") => rules_command(&arguments[1..], false),
        Some("match") => rules_command(&arguments[1..], true),
        _ => run_command(arguments),
    }
}

fn printed(arg: &Arg<'_>) -> Option<Command> {
    match arg {
        Arg::Short('h') | Arg::Long("help") => Some(Command::Print(HELP.to_owned())),
        Arg::Short('v') | Arg::Long("version") => {
            Some(Command::Print(format!("sluice-agent {}\n", env!("CARGO_PKG_VERSION"))))
        }
        _ => None,
    }
}

fn rules_command(arguments: &[OsString], is_match: bool) -> Result<Command, UsageError> {
    let mut parser = Parser::from_args(arguments);
    let (mut rules, mut request) = (None, None);
    let (mut source, mut service) = (IpAddr::from([192, 0, 2, 1]), SocketAddr::from(([192, 0, 2, 100], 80)));
    while let Some(arg) = parser.next()? {
        if let Some(command) = printed(&arg) {
            return Ok(command);
        }
        match arg {
            Arg::Value(path) if rules.is_none() => rules = Some(PathBuf::from(path)),
            Arg::Long("source") if is_match => source = parser.value()?.parse()?,
            Arg::Long("service") if is_match => service = parser.value()?.parse()?,
            Arg::Long("request") if is_match => {
                let path = parser.value()?;
                request = (path != "-").then(|| path.into());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let rules = rules.ok_or_else(|| UsageError("a FILE with rules is missing".to_owned()))?;
    Ok(if is_match { Command::Match { rules, source, service, request } } else { Command::Check(rules) })
}

fn run_command(arguments: Vec<OsString>) -> Result<Command, UsageError> {
    let mut parser = Parser::from_args(arguments);
    let (mut interface, mut address, mut gateway, mut control) = (None, None, None, None);
    let (mut metrics, mut memory, mut log) = (None, 64, LevelFilter::WARN);
    while let Some(arg) = parser.next()? {
        if let Some(command) = printed(&arg) {
            return Ok(command);
        }
        match arg {
            Arg::Short('i') | Arg::Long("interface") => interface = Some(parser.value()?.string()?),
            Arg::Long("address") => address = Some(parser.value()?.parse()?),
            Arg::Long("gateway") => gateway = Some(parser.value()?.parse()?),
            Arg::Long("control") => control = Some(parser.value()?.string()?),
            Arg::Long("metrics") => metrics = Some(parser.value()?.string()?),
            Arg::Long("memory") => memory = parser.value()?.parse()?,
            Arg::Long("log") => log = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    let missing = |flag| UsageError(format!("--{flag} is missing"));
    if !(1..=1 << 20).contains(&memory) {
        return Err(UsageError("--memory: write a number of MiB from 1 to 1048576".to_owned()));
    }
    Ok(Command::Run(Args {
        interface: interface.ok_or_else(|| missing("interface"))?,
        address: address.ok_or_else(|| missing("address"))?,
        gateway: gateway.ok_or_else(|| missing("gateway"))?,
        control: control.ok_or_else(|| missing("control"))?,
        metrics,
        memory: memory << 20,
        log,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn an_agent() {
        let line = "-i eth0 --address 10.0.9.2 --gateway 10.0.9.1 --control unix:///run/a --log info";
        let Ok(Command::Run(args)) = parsed(line) else { panic!("a run is expected") };
        assert_eq!((args.interface.as_str(), args.control.as_str(), args.memory), ("eth0", "unix:///run/a", 64 << 20));
        assert_eq!((args.gateway, args.log), (Ipv4Addr::new(10, 0, 9, 1), LevelFilter::INFO));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let assert_error = |line, text: &str| {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        assert_error("--interface eth0", "--address is missing");
        assert_error("--interface eth0 --address ten", "ten");
        assert_error("--speed 9", "--speed");
        assert_error("check", "FILE");
        assert_error("check a.json --source 10.0.0.1", "--source");
        assert_error("-i e --address 10.0.9.2 --gateway 10.0.9.1 --control c --memory 0", "--memory");
    }

    #[test]
    fn rules_are_looked_at() {
        assert_eq!(parsed("check a.json"), Ok(Command::Check("a.json".into())));
        let expected = Command::Match {
            rules: "a".into(),
            source: [10, 0, 1, 1].into(),
            service: ([203, 0, 113, 80], 80).into(),
            request: Some("r".into()),
        };
        assert_eq!(parsed("match a --request r --source 10.0.1.1 --service 203.0.113.80:80"), Ok(expected));
    }
}
