//! The command line: flags of `simple_switch_grpc` with equal meaning, and flags that only this switch has.

mod together;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};
use thiserror::Error;
use tracing::level_filters::LevelFilter;

use crate::flags::{self, Section};
use crate::rotation::Rotation;

/// The default address on which the switch serves P4Runtime.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9559";
const DEFAULT_DROP_PORT: u32 = 511;
/// The port numbers that BMv2 accepts for the drop port and, except 0, for the CPU port. Neither has an interface.
const ANY_PORT: RangeInclusive<u64> = 0..=u32::MAX as u64;
/// The range of `--max-connections` and `--max-request-mib`. The largest limit in MiB, converted to bytes, fits into
/// 32 bits.
const LIMITS: RangeInclusive<u64> = 1..=4095;

/// The text of `--help`.
pub const HELP: &str = "\
usage: sluice-switch [flags] PROGRAM.json     a program compiled by p4c for BMv2
       sluice-switch [flags] --no-p4          wait for a program over P4Runtime

as on simple_switch_grpc (--flag VALUE, --flag=VALUE, -iVALUE; names may be cut short; `--` may stand anywhere):
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
      --log-file FILE          log to FILE.txt
  -L, --log-level LEVEL        trace, debug, info, warn, error or off [info; simple_switch_grpc: trace]
      --log-flush              accepted; every line is flushed
      --log-file-max-size N    put FILE.txt aside as FILE.1.txt after N bytes [5242880]
      --log-file-max-files N   keep N older log files [3]
      --pcap [DIR]             write IFACE_in.pcap and IFACE_out.pcap into DIR [.]; the next word is DIR if it is no flag
      --use-files SECONDS      packets from IFACE_in.pcap and out to IFACE_out.pcap in place of interfaces; read after
                               SECONDS
  -v, --version, --json-version, -h, --help
Those of simple_switch and simple_switch_grpc that are not named here are accepted; the log says why they have no effect.

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

SIGTERM and SIGINT: writes the last statistics and ends.
SIGHUP: opens the log file anew. Without it, that happens within a second of a rename or removal, with a line.
SIGUSR1 and SIGUSR2, and SIGHUP without a log file: a line in the log, no more.
";

/// A port of the switch, with its interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The port number that the program uses.
    pub number: u32,
    /// The name of the interface.
    pub interface: String,
}

/// The format of the trace, the log of each packet's processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// One line for each processing step of a packet.
    Text,
    /// One JSON object for each packet.
    Json,
}

/// The flags that configure TLS.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Whether the command line requests TLS.
    pub on: bool,
    /// The server's certificate chain, a PEM file.
    pub certificate: Option<PathBuf>,
    /// The server's key, a PEM file.
    pub key: Option<PathBuf>,
    /// The certificate of the authority that signs the clients' certificates, a PEM file.
    pub ca: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub client_auth: bool,
}

/// All settings of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    /// The file of the program that the switch runs at its start.
    pub program: Option<PathBuf>,
    /// The file of the program's P4Info.
    pub p4info: Option<PathBuf>,
    /// The ports, in the order of the command line.
    pub ports: Vec<PortSpec>,
    /// The device id in P4Runtime.
    pub device_id: u64,
    /// The address on which the switch serves P4Runtime.
    pub address: String,
    /// The TLS settings of P4Runtime.
    pub tls: TlsFiles,
    /// Limit on the number of controllers that are connected at the same time; `None` for the default.
    pub max_connections: Option<usize>,
    /// Limit on the size of a request, in MiB; `None` for the default.
    pub max_request_mib: Option<usize>,
    /// The number of the CPU port, through which the program and the controllers exchange packets; `None` without a CPU
    /// port.
    pub cpu_port: Option<u32>,
    /// The value of `egress_spec` that drops a packet.
    pub drop_port: u32,
    /// Whether the switch interprets the program instead of compiling it.
    pub interpret: bool,
    /// Whether the switch logs to standard output.
    pub log_console: bool,
    /// The path of the log file without its suffix: `.txt`, or `.1.txt`, `.2.txt` and so on after rotations.
    pub log_file: Option<PathBuf>,
    /// The rotation of the log file: when it is renamed and a new file is begun, and how many renamed files remain.
    pub log_rotation: Rotation,
    /// The log level; `None` if the command line contains no level. The default then depends on whether the log has a
    /// destination ([`crate::logging::start`]).
    pub log_level: Option<LevelFilter>,
    /// The folder for captures of frames; `None` for no captures.
    pub pcap: Option<PathBuf>,
    /// Warnings about flags that have no effect on this switch.
    pub warnings: Vec<String>,
    /// The time after which the switch reads the files that replace its interfaces; `None` if it uses interfaces.
    pub use_files: Option<Duration>,
    /// Whether the switch polls for packets without sleeping.
    pub busy_poll: bool,
    /// Whether sent frames bypass the kernel's queueing disciplines.
    pub qdisc_bypass: bool,
    /// The format in which the switch logs the processing of each packet; `None` for no trace.
    pub trace: Option<TraceFormat>,
    /// The address on which the switch serves metrics; `None` for no metrics.
    pub metrics_address: Option<String>,
    /// The file for statistics. Without a file, the switch writes them once, to standard error when it ends.
    pub stats_file: Option<PathBuf>,
}

impl Default for Args {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl Args {
    /// Adds a warning for the log, unless an equal warning exists.
    fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Skips a flag of BMv2 that has no effect on this switch, with the flag's value, and adds a warning. Fails for any
    /// other flag, and if the value is missing.
    fn has_no_effect(&mut self, flag: &str, parser: &mut Parser) -> Result<(), UsageError> {
        let matching = flags::WITHOUT_EFFECT.iter().find(|(name, ..)| *name == flag);
        let &(name, takes_value, why) = matching.ok_or_else(|| usage(format!("unknown flag --{flag}")))?;
        if takes_value {
            parser.value()?;
        }
        self.warn(format!("--{name} has no effect: {why}"));
        Ok(())
    }

    /// Adds a port with its interface. If the command line gives a port two interfaces, the last one applies, as on
    /// `simple_switch_grpc`, and a warning names the earlier one.
    fn add_port(&mut self, port: PortSpec) {
        if let Some(place) = self.ports.iter().position(|earlier| earlier.number == port.number) {
            let PortSpec { number, interface } = self.ports.remove(place);
            self.warn(format!("-i {number}@{interface} has no effect: port {number} is given again"));
        }
        self.ports.push(port);
    }
}

/// The action that the command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Run the switch.
    Run(Box<Args>),
    /// Print a text and exit.
    Print(String),
    /// Print the descriptors of the P4Runtime messages and exit.
    Protoset,
}

/// The error in the command line.
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

/// Parses the command line, which does not include the program's own name.
///
/// # Errors
/// Fails for a flag that is unknown or incomplete, for a value that is not allowed, for flags that contradict each
/// other, and if the program is missing. The error names the flags.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut arguments = arguments.into_iter();
    let general = arguments.by_ref().take_while(|word| word != "--").collect();
    let mut reading = Reading { args: Args::default(), no_p4: false, further: Vec::new() };
    if let Some(command) = reading.section(Section::General, general)? {
        return Ok(command);
    }
    let mut target = std::mem::take(&mut reading.further);
    target.extend(arguments.filter(|word| word != "--"));
    if let Some(command) = reading.section(Section::Target, target)? {
        return Ok(command);
    }
    let Reading { mut args, no_p4, .. } = reading;
    together::check(&mut args, no_p4)?;
    Ok(Command::Run(Box::new(args)))
}

/// The state of parsing the command line.
struct Reading {
    args: Args,
    no_p4: bool,
    /// The values of `--to-pass-further`, which are parsed like words after `--`.
    further: Vec<OsString>,
}

impl Reading {
    /// Parses the words before or after `--`. Returns a command if the switch is not to run.
    fn section(&mut self, section: Section, words: Vec<OsString>) -> Result<Option<Command>, UsageError> {
        let mut parser = Parser::from_args(words);
        while let Some(argument) = parser.next()? {
            let flag = match argument {
                Arg::Short(letter) => flags::short(letter),
                Arg::Long(name) => flags::long(name, section),
                Arg::Value(word) => {
                    self.word(word);
                    continue;
                }
            };
            if let Some(command) = self.flag(flag.map_err(usage)?, &mut parser)? {
                return Ok(Some(command));
            }
        }
        Ok(None)
    }

    /// Parses a word that belongs to no flag. The first such word is the program; BMv2 ignores further ones.
    fn word(&mut self, word: OsString) {
        if self.args.program.is_none() {
            self.args.program = Some(word.into());
        } else {
            self.args.warn(format!("the word {} has no effect: there is a program already", word.to_string_lossy()));
        }
    }

    fn flag(&mut self, flag: &'static str, parser: &mut Parser) -> Result<Option<Command>, UsageError> {
        let args = &mut self.args;
        match flag {
            "help" => return Ok(Some(Command::Print(HELP.to_owned()))),
            "version" => {
                return Ok(Some(Command::Print(format!("sluice-switch {}\n", env!("CARGO_PKG_VERSION")))));
            }
            "json-version" => return Ok(Some(Command::Print("2.23\n".to_owned()))),
            "protoset" => return Ok(Some(Command::Protoset)),
            "input-config" => {
                let word = parser.value()?;
                self.word(word);
            }
            "to-pass-further" => self.further.push(parser.value()?),
            "no-p4" => self.no_p4 = true,
            "interface" => args.add_port(port(&parser.value()?.string()?)?),
            "device-id" => args.device_id = number(parser.value()?, "--device-id", 0..=u64::MAX)?,
            "grpc-server-addr" => args.address = parser.value()?.string()?,
            "grpc-server-ssl" => args.tls.on = true,
            "grpc-server-cert" => args.tls.certificate = Some(parser.value()?.into()),
            "grpc-server-key" => args.tls.key = Some(parser.value()?.into()),
            "grpc-server-cacert" => args.tls.ca = Some(parser.value()?.into()),
            "grpc-server-with-client-auth" => args.tls.client_auth = true,
            "cpu-port" => args.cpu_port = Some(number(parser.value()?, "--cpu-port", 1..=*ANY_PORT.end())? as u32),
            "drop-port" => args.drop_port = number(parser.value()?, "--drop-port", ANY_PORT)? as u32,
            "pcap" => args.pcap = Some(implied(parser, ".")?.into()),
            "use-files" => args.use_files = Some(wait(&parser.value()?.string()?)?),
            "log-console" => args.log_console = true,
            "log-file" => args.log_file = Some(parser.value()?.into()),
            "log-level" => args.log_level = Some(level(&parser.value()?.string()?)?),
            // The switch flushes every line, with and without this flag.
            "log-flush" => {}
            "log-file-max-size" => {
                args.log_rotation.max_bytes = number(parser.value()?, "--log-file-max-size", 1..=u64::MAX)?;
            }
            "log-file-max-files" => {
                args.log_rotation.backups =
                    number(parser.value()?, "--log-file-max-files", 0..=u32::MAX.into())? as u32;
            }
            "p4info" => args.p4info = Some(parser.value()?.into()),
            "trace" => args.trace = Some(trace_format(parser.optional_value())?),
            "metrics-addr" => args.metrics_address = Some(parser.value()?.string()?),
            "interpret" => args.interpret = true,
            "stats-file" => args.stats_file = Some(parser.value()?.into()),
            "busy-poll" => args.busy_poll = true,
            "qdisc-bypass" => args.qdisc_bypass = true,
            "max-connections" => {
                args.max_connections = Some(number(parser.value()?, "--max-connections", LIMITS)? as usize);
            }
            "max-request-mib" => {
                args.max_request_mib = Some(number(parser.value()?, "--max-request-mib", LIMITS)? as usize);
            }
            _ => args.has_no_effect(flag, parser)?,
        }
        Ok(None)
    }
}

/// Returns the value of a flag whose value is optional: the text after `=`, or else the next word, unless this word is
/// a flag. If neither exists, returns `otherwise`.
fn implied(parser: &mut Parser, otherwise: &str) -> Result<OsString, UsageError> {
    if let Some(value) = parser.optional_value() {
        return Ok(value);
    }
    let word = parser.raw_args()?.next_if(|word| !word.as_encoded_bytes().starts_with(b"-"));
    Ok(word.unwrap_or_else(|| otherwise.into()))
}

/// Parses the time of `--use-files`, in seconds. Negative numbers mean 0, as on `simple_switch_grpc`.
fn wait(text: &str) -> Result<Duration, UsageError> {
    let seconds: i32 =
        text.parse().map_err(|_| usage(format!("--use-files {text}: it has to be a number of seconds")))?;
    Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn port(text: &str) -> Result<PortSpec, UsageError> {
    // The test runner of p4c passes "-i 1@veth1" as one word, so that the value begins with a space.
    let fields =
        text.trim_start().split_once('@').and_then(|(number, interface)| Some((number.parse().ok()?, interface)));
    match fields {
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

fn level(text: &str) -> Result<LevelFilter, UsageError> {
    match text {
        "trace" | "debug" | "info" | "warn" | "error" | "off" => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| usage(format!("--log-level {text}: it has to be trace, debug, info, warn, error or off")))
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
        assert_eq!(run("--use-files 2 p.json").use_files, Some(Duration::from_secs(2)));
        assert_eq!(run("--use-files -1 p.json").use_files, Some(Duration::ZERO));
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
    fn the_command_lines_of_p4langs_tutorials() {
        for (line, program) in [
            (
                "-i 1@v1 --pcap d --nanolog ipc:///x --device-id 0 prog.json --log-console --thrift-port 9090 -- \
                 --grpc-server-addr 127.0.0.1:50051",
                Some("prog.json"),
            ),
            ("-i 1@v1 --no-p4 --log-console --pcap d -- --grpc-server-addr 127.0.0.1:50051", None),
        ] {
            let args = run(line);
            assert_eq!((args.program, args.pcap), (program.map(Into::into), Some("d".into())), "{line}");
            assert_eq!((args.address.as_str(), args.log_console), ("127.0.0.1:50051", true), "{line}");
        }
    }

    /// The parser of `simple_switch_grpc` returns the same results for these command lines.
    #[test]
    fn an_optional_value_is_the_next_word_unless_that_is_a_flag() {
        for (line, directory) in [
            ("prog.json --pcap d", "d"),
            ("--pcap d prog.json", "d"),
            ("prog.json --pcap", "."),
            ("--pcap=d prog.json", "d"),
            ("--pcap --log-console prog.json", "."),
            ("--pcap -- prog.json", "."),
            ("prog.json --pc d", "d"),
        ] {
            let args = run(line);
            assert_eq!((args.program, args.pcap), (Some("prog.json".into()), Some(directory.into())), "{line}");
        }
    }

    #[test]
    fn every_spelling_of_a_flag() {
        let port = PortSpec { number: 1, interface: "v1".to_owned() };
        for spelling in ["-i 1@v1", "-i1@v1", "--interface 1@v1", "--interface=1@v1", "--inter 1@v1", "--int=1@v1"] {
            assert_eq!(run(&format!("p.json {spelling}")).ports, std::slice::from_ref(&port), "{spelling}");
        }
        for spelling in ["-L debug", "-Ldebug", "--log-level debug", "--log-level=debug", "--log-l debug"] {
            assert_eq!(run(&format!("p.json {spelling}")).log_level, Some(LevelFilter::DEBUG), "{spelling}");
        }
        for words in ["-- --cpu 5", "-- --cpu-port=5", "--cpu-port 5", "--to-pass-further --cpu --to-pass-further 5"] {
            assert_eq!(run(&format!("p.json {words}")).cpu_port, Some(5), "{words}");
        }
        for words in ["p.json", "--input-config p.json", "--input p.json", "-- p.json --cpu-port 5", "p.json --"] {
            assert_eq!(run(words).program, Some("p.json".into()), "{words}");
        }
        // An abbreviation may match several flags. Before `--`, flags of every BMv2 target take precedence; after it,
        // flags of the specific target.
        assert_eq!(
            run("p.json --max 5").warnings,
            ["--max-port-count has no effect: the number of ports is not limited"]
        );
        assert_eq!(run("p.json -- --dr 5").drop_port, 5);
        assert!(matches!(parse(["-hv"].map(OsString::from)), Ok(Command::Print(text)) if text == HELP));
    }

    #[test]
    fn flags_without_effect_cause_one_warning() {
        for (name, takes_value, why) in flags::WITHOUT_EFFECT {
            let value = if *takes_value { " 7" } else { "" };
            for line in [
                format!("p.json --{name}{value}"),
                format!("--{name}{value} p.json --{name}{value}"),
                format!("p.json -- --{name}{value}"),
            ] {
                let args = run(&line);
                assert_eq!(args.program, Some("p.json".into()), "{line}");
                assert_eq!(args.warnings, [format!("--{name} has no effect: {why}")], "{line}");
            }
        }
    }

    #[test]
    fn flags_that_bmv2_ignores_cause_warnings() {
        for (line, text) in [
            ("--no-p4 p.json", "the program p.json has no effect beside --no-p4"),
            ("p.json q.json", "the word q.json has no effect: there is a program already"),
            ("p.json -i 1@a -i 1@b", "-i 1@a has no effect: port 1 is given again"),
            ("p.json --use-files 0 --pcap", "--pcap has no effect beside --use-files, whose files have these names"),
            ("p.json --cpu-port 511", "no packet-in comes by port 511, the drop port; another --drop-port frees it"),
            ("p.json -i 511@a", "nothing goes out by port 511, the drop port; another --drop-port frees it"),
            ("p.json -i 512@a", "ports above 511 need a program whose ports have more than 9 bits"),
            (
                "p.json --grpc-server-cert c",
                "P4Runtime is served without TLS: certificates and keys need --grpc-server-ssl",
            ),
            (
                "p.json --grpc-server-ssl --grpc-server-cert c --grpc-server-key k --grpc-server-cacert a",
                "--grpc-server-cacert has no effect without --grpc-server-with-client-auth",
            ),
        ] {
            assert_eq!(run(line).warnings, [text], "{line}");
        }
        assert_eq!(run("p.json --grpc-server-cert c").tls, TlsFiles::default());
        assert_eq!(run("p.json --grpc-server-cert c -- --grpc-server-ssl --grpc-server-key k").warnings, [""; 0]);
        assert_eq!(run("p.json -i 1@a -i 1@b").ports, [PortSpec { number: 1, interface: "b".to_owned() }]);
    }

    #[test]
    fn refusals_name_the_flag() {
        for (line, text) in [
            ("p.json --frobnicate", "unknown flag --frobnicate"),
            ("p.json --trace=yaml", "--trace=yaml: it has to be text or json"),
            ("p.json --thrift-port", "missing argument"),
            (
                "p.json --log-f x",
                "--log-f may be --log-file or --log-flush or --log-file-max-size or --log-file-max-files",
            ),
            ("p.json --LOG-CONSOLE", "unknown flag --LOG-CONSOLE"),
            ("p.json --log-console=1", "unexpected argument"),
            ("p.json --log-console --log-file x", "exclude each other"),
            ("p.json -- --max 5", "--max may be --max-mc-groups or --max-l1-entries or --max-l2-entries"),
            ("", "a program is missing"),
            ("--pcap p.json", "a program is missing: --pcap took p.json; write --pcap=DIR"),
            ("p.json -i 65536@a", "ports end at 65535"),
            ("p.json -i veth1", "-i veth1: it has to be PORT@IFACE"),
            ("p.json -i 1@a -i 2@a", "interface a is given twice"),
            ("p.json -i 510@a --cpu-port 510", "510 is the CPU port"),
            ("p.json --cpu-port 0", "--cpu-port 0: it has to be between 1 and 4294967295"),
            ("p.json --grpc-server-ssl --grpc-server-cert c", "needs --grpc-server-cert and --grpc-server-key"),
            (
                "p.json --grpc-server-ssl --grpc-server-cert c --grpc-server-key k --grpc-server-with-client-auth",
                "needs --grpc-server-cacert",
            ),
            ("p.json --max-connections 0", "--max-connections 0: it has to be between 1 and 4095"),
            ("p.json --device-id x", "--device-id x: it has to be between 0 and 18446744073709551615"),
            ("p.json --log-file-max-size 0", "--log-file-max-size 0: it has to be between 1 and"),
            ("p.json --log-file-max-files x", "--log-file-max-files x: it has to be between 0 and"),
            ("p.json --use-files x", "--use-files x: it has to be a number of seconds"),
            ("p.json -L loud", "--log-level loud"),
            ("p.json --device-id", "missing argument"),
        ] {
            let refusal = refusal(line);
            assert!(refusal.contains(text), "{line}: {refusal}");
        }
    }
}
