//! The names of flags and their spellings, in the syntax of `boost::program_options`, which `simple_switch_grpc` uses.
//!
//! A long flag may be abbreviated if only one flag of its section begins with the abbreviation. The sections are the
//! flags before `--`, and the target's flags after `--`. This switch accepts each flag in both sections. If an
//! abbreviation matches flags of both sections, those of the section that contains the abbreviation take precedence.

/// The section of the command line, before or after `--`, that contains a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The words before `--`: flags of every BMv2 target.
    General,
    /// The words after `--`: flags of `simple_switch` and `simple_switch_grpc`.
    Target,
}

/// The flags of every BMv2 target (`options_parse.cpp`). `input-config` is an alternative to the word that names the
/// program.
const GENERAL: &[&str] = &[
    "help",
    "interface",
    "pcap",
    "use-files",
    "packet-in",
    "thrift-port",
    "device-id",
    "nanolog",
    "log-console",
    "log-file",
    "log-level",
    "log-flush",
    "log-file-max-size",
    "log-file-max-files",
    "notifications-addr",
    "debugger",
    "debugger-addr",
    "restore-state",
    "dump-packet-data",
    "version",
    "json-version",
    "no-p4",
    "max-port-count",
    "input-config",
    "to-pass-further",
];

/// The flags of the targets `simple_switch_grpc` and `simple_switch`.
const TARGET: &[&str] = &[
    "load-modules",
    "disable-swap",
    "enable-swap",
    "grpc-server-addr",
    "grpc-server-ssl",
    "grpc-server-cacert",
    "grpc-server-cert",
    "grpc-server-key",
    "grpc-server-with-client-auth",
    "cpu-port",
    "drop-port",
    "dp-grpc-server-addr",
    "priority-queues",
    "max-mc-groups",
    "max-l1-entries",
    "max-l2-entries",
];

/// The flags that only this switch has.
const OWN: &[&str] = &[
    "p4info",
    "trace",
    "metrics-addr",
    "interpret",
    "stats-file",
    "busy-poll",
    "qdisc-bypass",
    "max-connections",
    "max-request-mib",
    "protoset",
];

/// The flags of BMv2 that have no effect on this switch: the name, whether the flag has a value, and why it has no
/// effect. The switch accepts these flags, so that scripts which use them run.
pub const WITHOUT_EFFECT: &[(&str, bool, &str)] = &[
    ("packet-in", true, "there is no nanomsg packet input; packets come by -i"),
    ("thrift-port", true, "there is no Thrift server, simple_switch_CLI cannot connect; P4Runtime has registers too"),
    ("nanolog", true, "there are no nanomsg events; use --trace"),
    ("notifications-addr", true, "there are no nanomsg notifications; they go to the P4Runtime stream"),
    ("debugger", false, "there is no debugger; use --trace"),
    ("debugger-addr", true, "there is no debugger; use --trace"),
    ("restore-state", true, "the switch starts empty; write its state over P4Runtime"),
    ("dump-packet-data", true, "use --pcap or --trace"),
    ("load-modules", true, "extern instances are not supported"),
    ("disable-swap", false, "a program can always be replaced over P4Runtime"),
    ("enable-swap", false, "a program can always be replaced over P4Runtime"),
    ("dp-grpc-server-addr", true, "packets cannot be injected over gRPC; use -i with a veth pair"),
    ("priority-queues", true, "there are no priority queues; the link's queueing discipline queues"),
    ("max-port-count", true, "the number of ports is not limited"),
    ("max-mc-groups", true, "the number of multicast groups is not limited"),
    ("max-l1-entries", true, "the number of multicast entries is not limited"),
    ("max-l2-entries", true, "the number of multicast entries is not limited"),
];

/// Returns the long name of a flag with a single letter.
pub fn short(letter: char) -> Result<&'static str, String> {
    match letter {
        'h' => Ok("help"),
        'i' => Ok("interface"),
        'L' => Ok("log-level"),
        'v' => Ok("version"),
        _ => Err(format!("unknown flag -{letter}")),
    }
}

/// Returns the full name of the flag that `name` names or abbreviates; an error if there is no such flag, or if the
/// abbreviation matches several.
pub fn long(name: &str, section: Section) -> Result<&'static str, String> {
    let groups = match section {
        Section::General => [GENERAL, TARGET, OWN],
        Section::Target => [TARGET, GENERAL, OWN],
    };
    if let Some(flag) = groups.iter().copied().flatten().find(|flag| **flag == name) {
        return Ok(flag);
    }
    for group in groups {
        let matching: Vec<_> = group.iter().filter(|flag| !name.is_empty() && flag.starts_with(name)).collect();
        match matching[..] {
            [] => {}
            [flag] => return Ok(flag),
            _ => {
                let names: Vec<_> = matching.iter().map(|flag| format!("--{flag}")).collect();
                return Err(format!("--{name} may be {}; write more of it", names.join(" or ")));
            }
        }
    }
    Err(format!("unknown flag --{name}"))
}
