//! The command line: flags mean what they mean on `simple_switch_grpc`, and those it does not have are this switch's own.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};
use thiserror::Error;
use tracing::level_filters::LevelFilter;

use crate::rotation::Rotation;

/// The port of P4Runtime.
const DEFAULT_ADDRESS: &str = "127.0.0.1:9559";
const DEFAULT_DROP_PORT: u32 = 511;
/// Ports of v1model have 9 bits.
const HIGHEST_PORT: u32 = 511;
/// Ports that can stand for the controller, or for dropping.
const PORTS: RangeInclusive<u64> = 1..=HIGHEST_PORT as u64;
/// As many MiB still fit 32 bits.
const LIMITS: RangeInclusive<u64> = 1..=4095;

/// What `--help` says.
pub const HELP: &str = "\
usage: sluice-switch [flags] PROGRAM.json     a program compiled by p4c for BMv2
       sluice-switch [flags] --no-p4          wait for a program over P4Runtime

as on simple_switch_grpc (a `--` between the flags is accepted anywhere):
  -i, --interface PORT@IFACE   use network interface IFACE as port PORT; may be repeated
      --device-id N            P4Runtime device id [0]
      --no-p4                  start without a program
      --grpc-server-addr A     address to serve P4Runtime on [127.0.0.1:9559; simple_switch_grpc: 0.0.0.0:9559]
                               or unix:PATH for a Unix socket
      --grpc-server-ssl        serve P4Runtime over TLS, with --grpc-server-cert FILE and --grpc-server-key FILE (PEM)
      --grpc-server-with-client-auth
                               clients need a certificate from --grpc-server-cacert FILE (PEM)
      --cpu-port N             port number that stands for the controller; without it no packet-in and packet-out
      --drop-port N            egress_spec that drops [511]
      --log-console            log to standard output
      --log-file FILE          log to FILE
  -L, --log-level LEVEL        trace, debug, info, warn, error or off [info; simple_switch_grpc: trace]
      --log-flush              accepted; every line is flushed
      --log-file-max-size N    begin a new log file after N bytes [5242880]
      --log-file-max-files N   keep N older log files [3]
      --pcap[=DIR]             write IFACE_in.pcap and IFACE_out.pcap into DIR [.]
      --use-files SECONDS      packets from IFACE_in.pcap and out to IFACE_out.pcap in place of interfaces; read after
                               SECONDS
      --max-port-count N       accepted; there is no limit
      --version, --json-version, -h, --help

this switch's own:
      --p4info FILE            P4Info in text form for PROGRAM.json, so that controllers need not push it
      --trace[=json]           log what happens to each packet (also with --log-level trace), as lines of text or, with
                               =json, as one JSON object a packet
      --metrics-addr HOST:PORT serve metrics for Prometheus on http://HOST:PORT/metrics
      --interpret              interpret the program instead of compiling it to machine code
      --stats-file FILE        write statistics as JSON into FILE every second and at the end
      --busy-poll              look for packets all the time in place of waiting for them; takes one core
      --qdisc-bypass           send past the interfaces' queueing disciplines: links shaped by tc are not shaped then
      --max-connections N      controllers that may be connected at a time [64]
      --max-request-mib N      largest P4Runtime request, in MiB [128]
      --protoset               print the P4Runtime messages as a FileDescriptorSet (for grpcurl -protoset), and end
";

/// Flags of `simple_switch_grpc` that this switch does not have and cannot do without, and why.
const REFUSED: &[(&str, &str)] = &[
    ("packet-in", "there is no nanomsg packet input; use -i"),
    ("debugger", "there is no debugger; use --trace"),
    ("debugger-addr", "there is no debugger; use --trace"),
    ("restore-state", "state cannot be restored from a file"),
    ("dp-grpc-server-addr", "packets cannot be injected over gRPC; use -i with a veth pair"),
    ("priority-queues", "there are no priority queues; the link's queueing discipline queues"),
];

/// Flags of `simple_switch_grpc` without effect here, whether they take a value, and why. Packets go the same way without them,
/// so that scripts that give them run; each is logged as a warning.
const WITHOUT_EFFECT: &[(&str, bool, &str)] = &[
    ("thrift-port", true, "there is no Thrift server, simple_switch_CLI cannot connect; P4Runtime has registers too"),
    ("nanolog", true, "there are no nanomsg events; use --trace"),
    ("notifications-addr", true, "there are no nanomsg notifications; they go to the P4Runtime stream"),
    ("dump-packet-data", true, "use --pcap or --trace"),
    ("disable-swap", false, "a program can always be replaced over P4Runtime"),
    ("max-mc-groups", true, "the number of multicast groups is not limited"),
    ("max-l1-entries", true, "the number of multicast entries is not limited"),
    ("max-l2-entries", true, "the number of multicast entries is not limited"),
];

/// A port of the switch and the interface behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The number the program sees.
    pub number: u32,
    /// The interface's name.
    pub interface: String,
}

/// What the per-packet trace looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// A line for each step.
    Text,
    /// A JSON object for each packet.
    Json,
}

/// What the flags of TLS say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// TLS is asked for.
    pub on: bool,
    /// The server's certificate chain (PEM).
    pub certificate: Option<PathBuf>,
    /// Its key (PEM).
    pub key: Option<PathBuf>,
    /// Whose certificates clients have to have (PEM).
    pub ca: Option<PathBuf>,
    /// Clients need a certificate.
    pub client_auth: bool,
}

/// Everything the command line decides.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    /// The program to start with.
    pub program: Option<PathBuf>,
    /// Its P4Info.
    pub p4info: Option<PathBuf>,
    /// The ports, in order of the command line.
    pub ports: Vec<PortSpec>,
    /// P4Runtime's device id.
    pub device_id: u64,
    /// Where P4Runtime is served.
    pub address: String,
    /// Encryption of P4Runtime.
    pub tls: TlsFiles,
    /// Controllers that may be connected at a time; `None`: as many as usual.
    pub max_connections: Option<usize>,
    /// Largest request in MiB; `None`: as usual.
    pub max_request_mib: Option<usize>,
    /// The port that stands for the controller.
    pub cpu_port: Option<u32>,
    /// The `egress_spec` that drops.
    pub drop_port: u32,
    /// Interpret the program instead of compiling it.
    pub interpret: bool,
    /// Log to standard output.
    pub log_console: bool,
    /// Log to this file.
    pub log_file: Option<PathBuf>,
    /// When that file is put aside for a fresh one, and how often.
    pub log_rotation: Rotation,
    /// How much to log; `None` when neither a level nor a place was asked for.
    pub log_level: Option<LevelFilter>,
    /// Where captures go, if any.
    pub pcap: Option<PathBuf>,
    /// What to warn of: flags that have no effect here.
    pub warnings: Vec<String>,
    /// Files in place of interfaces, read after this time.
    pub use_files: Option<Duration>,
    /// Look for packets all the time.
    pub busy_poll: bool,
    /// Send past the queueing disciplines.
    pub qdisc_bypass: bool,
    /// Log what happens to each packet.
    pub trace: Option<TraceFormat>,
    /// Where metrics are served, if anywhere.
    pub metrics_address: Option<String>,
    /// Where statistics go, if anywhere but the end of standard error.
    pub stats_file: Option<PathBuf>,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Run the switch.
    Run(Box<Args>),
    /// Say something and end.
    Print(String),
    /// Print the descriptors of the P4Runtime messages and end.
    Protoset,
}

/// What is wrong with the command line.
#[derive(Debug, Error)]
#[error("{0} (sluice-switch --help lists the flags)")]
pub struct UsageError(String);

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

fn usage(text: impl Into<String>) -> UsageError {
    UsageError(text.into())
}

/// Reads the command line, without the program's own name.
///
/// # Errors
/// Names the flag that is unknown, incomplete or contradictory.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    // simple_switch_grpc wants its target's flags behind `--`; here they may stand anywhere.
    let mut parser = Parser::from_args(arguments.into_iter().filter(|argument| argument != "--"));
    let mut args = Args {
        program: None,
        p4info: None,
        ports: Vec::new(),
        device_id: 0,
        address: DEFAULT_ADDRESS.to_owned(),
        tls: TlsFiles::default(),
        max_connections: None,
        max_request_mib: None,
        cpu_port: None,
        drop_port: DEFAULT_DROP_PORT,
        interpret: false,
        log_console: false,
        log_file: None,
        log_rotation: Rotation::default(),
        log_level: None,
        pcap: None,
        warnings: Vec::new(),
        use_files: None,
        busy_poll: false,
        qdisc_bypass: false,
        trace: None,
        metrics_address: None,
        stats_file: None,
    };
    let mut no_p4 = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(HELP.to_owned())),
            Arg::Short('v') | Arg::Long("version") => {
                return Ok(Command::Print(format!("sluice-switch {}\n", env!("CARGO_PKG_VERSION"))));
            }
            Arg::Long("protoset") => return Ok(Command::Protoset),
            Arg::Long("json-version") => return Ok(Command::Print("2.23\n".to_owned())),
            Arg::Short('i') | Arg::Long("interface") => args.ports.push(port(&parser.value()?.string()?)?),
            Arg::Long("device-id") => args.device_id = number(parser.value()?, "--device-id", 0..=u64::MAX)?,
            Arg::Long("no-p4") => no_p4 = true,
            Arg::Long("grpc-server-addr") => args.address = parser.value()?.string()?,
            Arg::Long("grpc-server-ssl") => args.tls.on = true,
            Arg::Long("grpc-server-cert") => args.tls.certificate = Some(parser.value()?.into()),
            Arg::Long("grpc-server-key") => args.tls.key = Some(parser.value()?.into()),
            Arg::Long("grpc-server-cacert") => args.tls.ca = Some(parser.value()?.into()),
            Arg::Long("grpc-server-with-client-auth") => args.tls.client_auth = true,
            Arg::Long("busy-poll") => args.busy_poll = true,
            Arg::Long("qdisc-bypass") => args.qdisc_bypass = true,
            Arg::Long("max-connections") => {
                args.max_connections = Some(number(parser.value()?, "--max-connections", LIMITS)? as usize);
            }
            Arg::Long("max-request-mib") => {
                args.max_request_mib = Some(number(parser.value()?, "--max-request-mib", LIMITS)? as usize);
            }
            Arg::Long("cpu-port") => args.cpu_port = Some(number(parser.value()?, "--cpu-port", PORTS)? as u32),
            Arg::Long("interpret") => args.interpret = true,
            Arg::Long("drop-port") => args.drop_port = number(parser.value()?, "--drop-port", PORTS)? as u32,
            Arg::Long("log-console") => args.log_console = true,
            Arg::Long("log-file") => args.log_file = Some(parser.value()?.into()),
            Arg::Short('L') | Arg::Long("log-level") => args.log_level = Some(level(&parser.value()?.string()?)?),
            Arg::Long("log-flush") => {}
            Arg::Long("log-file-max-size") => {
                args.log_rotation.most_bytes = number(parser.value()?, "--log-file-max-size", 1..=u64::MAX)?;
            }
            Arg::Long("log-file-max-files") => {
                args.log_rotation.backups =
                    number(parser.value()?, "--log-file-max-files", 0..=u32::MAX.into())? as u32;
            }
            Arg::Long("max-port-count") => drop(number(parser.value()?, "--max-port-count", 0..=u32::MAX.into())?),
            Arg::Long("pcap") => args.pcap = Some(parser.optional_value().map_or_else(|| ".".into(), Into::into)),
            Arg::Long("use-files") => {
                // Negative numbers mean 0, as on simple_switch_grpc.
                let text = parser.value()?.string()?;
                let seconds: i32 =
                    text.parse().map_err(|_| usage(format!("--use-files {text}: it has to be a number of seconds")))?;
                args.use_files = Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            }
            Arg::Long("p4info") => args.p4info = Some(parser.value()?.into()),
            Arg::Long("trace") => args.trace = Some(trace_format(parser.optional_value())?),
            Arg::Long("metrics-addr") => args.metrics_address = Some(parser.value()?.string()?),
            Arg::Long("stats-file") => args.stats_file = Some(parser.value()?.into()),
            Arg::Long(flag) => {
                if let Some((name, takes_value, why)) = WITHOUT_EFFECT.iter().find(|(name, ..)| *name == flag) {
                    args.warnings.push(format!("--{name} has no effect: {why}"));
                    if *takes_value {
                        parser.value()?;
                    }
                    continue;
                }
                if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == flag) {
                    return Err(usage(format!("--{flag}: {why}")));
                }
                return Err(usage(format!("unknown flag --{flag}")));
            }
            Arg::Short(flag) => return Err(usage(format!("unknown flag -{flag}"))),
            Arg::Value(value) if args.program.is_none() => args.program = Some(value.into()),
            Arg::Value(value) => {
                return Err(usage(format!("there is a program already, what is {}?", value.to_string_lossy())));
            }
        }
    }
    check(&args, no_p4)?;
    Ok(Command::Run(Box::new(args)))
}

fn port(text: &str) -> Result<PortSpec, UsageError> {
    // p4c's runner gives "-i 1@veth1" as one word
    let parts =
        text.trim_start().split_once('@').and_then(|(number, interface)| Some((number.parse().ok()?, interface)));
    match parts {
        Some((number, interface)) if !interface.is_empty() => Ok(PortSpec { number, interface: interface.to_owned() }),
        _ => Err(usage(format!("-i {text}: it has to be PORT@IFACE, for example 1@veth1"))),
    }
}

fn number(value: OsString, flag: &str, range: RangeInclusive<u64>) -> Result<u64, UsageError> {
    let text = value.string()?;
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (least, most) = range.into_inner();
    number.ok_or_else(|| usage(format!("{flag} {text}: it has to be between {least} and {most}")))
}

fn trace_format(value: Option<OsString>) -> Result<TraceFormat, UsageError> {
    match value.map(ValueExt::string).transpose()?.as_deref() {
        None | Some("text") => Ok(TraceFormat::Text),
        Some("json") => Ok(TraceFormat::Json),
        Some(other) => Err(usage(format!("--trace={other}: it has to be text or json"))),
    }
}

fn check_tls(tls: &TlsFiles) -> Result<(), UsageError> {
    let TlsFiles { on, certificate, key, ca, client_auth } = tls;
    if !on && (certificate.is_some() || key.is_some() || ca.is_some() || *client_auth) {
        return Err(usage("there is no TLS without --grpc-server-ssl"));
    }
    if *on && (certificate.is_none() || key.is_none()) {
        return Err(usage("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key"));
    }
    if *client_auth && ca.is_none() {
        return Err(usage("--grpc-server-with-client-auth needs --grpc-server-cacert"));
    }
    if *on && ca.is_some() && !client_auth {
        return Err(usage("--grpc-server-cacert checks nobody without --grpc-server-with-client-auth"));
    }
    Ok(())
}

fn level(text: &str) -> Result<LevelFilter, UsageError> {
    match text {
        "trace" | "debug" | "info" | "warn" | "error" | "off" => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| usage(format!("--log-level {text}: it has to be trace, debug, info, warn, error or off")))
}

fn check(args: &Args, no_p4: bool) -> Result<(), UsageError> {
    match (&args.program, no_p4) {
        (None, false) => return Err(usage("a program is missing: give PROGRAM.json, or --no-p4")),
        (Some(program), true) => {
            return Err(usage(format!("--no-p4 and the program {} contradict each other", program.display())));
        }
        (None, true) if args.p4info.is_some() => {
            return Err(usage("--p4info belongs to a program on the command line"));
        }
        _ => {}
    }
    check_tls(&args.tls)?;
    for (place, port) in args.ports.iter().enumerate() {
        let PortSpec { number, interface } = port;
        if *number > HIGHEST_PORT {
            return Err(usage(format!("-i {number}@{interface}: ports end at {HIGHEST_PORT}")));
        }
        if Some(*number) == args.cpu_port {
            return Err(usage(format!("-i {number}@{interface}: {number} is the CPU port")));
        }
        if *number == args.drop_port {
            return Err(usage(format!("-i {number}@{interface}: {number} is the drop port")));
        }
        for earlier in &args.ports[..place] {
            if earlier.number == *number {
                return Err(usage(format!("port {number} is given twice")));
            }
            if earlier.interface == *interface {
                return Err(usage(format!("interface {interface} is given twice")));
            }
        }
    }
    if args.cpu_port == Some(args.drop_port) {
        return Err(usage("the CPU port and the drop port are the same; choose another --cpu-port"));
    }
    if args.use_files.is_some() && args.pcap.is_some() {
        return Err(usage("--use-files and --pcap name the same files; leave --pcap out"));
    }
    if args.log_console && args.log_file.is_some() {
        return Err(usage("--log-console and --log-file exclude each other"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Args {
        match parse(line.split_whitespace().map(OsString::from)) {
            Ok(Command::Run(args)) => *args,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refusal(line: &str) -> String {
        parse(line.split_whitespace().map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn the_command_lines_of_simple_switch_grpc() {
        let args = run("-i 1@veth1 -i 2@veth2 --device-id 3 --log-console -L debug prog.json -- \
                        --grpc-server-addr 127.0.0.1:50051 --cpu-port 510");
        let port = |number, name: &str| PortSpec { number, interface: name.to_owned() };
        assert_eq!(args.ports, [port(1, "veth1"), port(2, "veth2")]);
        assert_eq!((args.device_id, args.cpu_port, args.drop_port), (3, Some(510), 511));
        assert_eq!(args.address, "127.0.0.1:50051");
        assert_eq!(args.program, Some("prog.json".into()));
        assert_eq!(args.log_level, Some(LevelFilter::DEBUG));
        let args = run("--no-p4 --interface=7@s1-eth7 -- --drop-port 100 --interpret");
        assert_eq!((args.program, args.drop_port, args.interpret), (None, 100, true));
        assert_eq!(args.address, "127.0.0.1:9559");
        assert_eq!(run("p.json --pcap").pcap, Some(".".into()));
        assert_eq!(run("--use-files 2 p.json").use_files, Some(Duration::from_secs(2)));
        assert_eq!(run("--use-files -1 p.json").use_files, Some(Duration::ZERO));
        assert_eq!(run("--pcap=/x p.json").pcap, Some("/x".into()));
        assert_eq!(run("--trace p.json").trace, Some(TraceFormat::Text));
        assert_eq!(run("--trace=json p.json").trace, Some(TraceFormat::Json));
        let args = run("--busy-poll p.json --qdisc-bypass");
        assert!(args.busy_poll && args.qdisc_bypass);
    }

    #[test]
    fn the_command_line_of_p4cs_runner() {
        let args = run("--log-file switch.log --log-flush --use-files 0 --dump-packet-data 10240 --thrift-port 9099 \
                        --device-id 9 -i 0@pcap0 -i 1@pcap1 prog.json");
        assert_eq!((args.device_id, args.ports.len(), args.use_files), (9, 2, Some(Duration::ZERO)));
        let Ok(Command::Run(one_word)) = parse(["-i 1@pcap1", "prog.json"].map(OsString::from)) else { panic!() };
        assert_eq!(one_word.ports, args.ports[1..]);
        let [dump, thrift] = &args.warnings[..] else { panic!("{:?}", args.warnings) };
        assert_eq!(dump, "--dump-packet-data has no effect: use --pcap or --trace");
        assert!(thrift.starts_with("--thrift-port has no effect: there is no Thrift server"), "{thrift}");
        assert_eq!(run("p.json --disable-swap --nanolog ipc:///tmp/x").warnings.len(), 2);
    }

    #[test]
    fn refusals_name_the_flag() {
        for (line, text) in [
            ("p.json --frobnicate", "unknown flag --frobnicate"),
            ("p.json --trace=yaml", "--trace=yaml: it has to be text or json"),
            ("p.json --debugger", "--debugger: there is no debugger"),
            ("p.json --thrift-port", "missing argument"),
            ("", "a program is missing"),
            ("--no-p4 p.json", "contradict"),
            ("p.json -i veth1", "-i veth1: it has to be PORT@IFACE"),
            ("p.json -i 1@a -i 1@b", "port 1 is given twice"),
            ("p.json -i 1@a -i 2@a", "interface a is given twice"),
            ("p.json -i 510@a --cpu-port 510", "510 is the CPU port"),
            ("p.json --cpu-port 0", "--cpu-port 0: it has to be between 1 and 511"),
            ("p.json --cpu-port 511", "the CPU port and the drop port are the same"),
            ("p.json --use-files 0 --pcap", "--use-files and --pcap name the same files"),
            ("p.json --grpc-server-cert c", "there is no TLS without --grpc-server-ssl"),
            ("p.json --grpc-server-ssl --grpc-server-cert c", "needs --grpc-server-cert and --grpc-server-key"),
            (
                "p.json --grpc-server-ssl --grpc-server-cert c --grpc-server-key k --grpc-server-with-client-auth",
                "needs --grpc-server-cacert",
            ),
            (
                "p.json --grpc-server-ssl --grpc-server-cert c --grpc-server-key k --grpc-server-cacert a",
                "--grpc-server-cacert checks nobody",
            ),
            ("p.json --max-connections 0", "--max-connections 0: it has to be between 1 and 4095"),
            ("p.json --device-id x", "--device-id x: it has to be between 0 and 18446744073709551615"),
            ("p.json --log-file-max-size 0", "--log-file-max-size 0: it has to be between 1 and"),
            ("p.json --log-file-max-files x", "--log-file-max-files x: it has to be between 0 and"),
            ("p.json --max-port-count x", "--max-port-count x: it has to be between 0 and"),
            ("p.json --use-files x", "--use-files x: it has to be a number of seconds"),
            ("p.json -L loud", "--log-level loud"),
            ("p.json --device-id", "missing argument"),
        ] {
            let refusal = refusal(line);
            assert!(refusal.contains(text), "{line}: {refusal}");
        }
    }
}
