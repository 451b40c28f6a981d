//! Checks, after all flags are parsed, that they can be combined.

use super::{Args, PortSpec, TlsFiles, UsageError, usage};

/// The highest port of v1model in p4c, where ports have 9 bits.
const V1MODEL_HIGHEST_PORT: u32 = 511;
/// The highest port that can have an interface: the highest port of a v1model whose ports were widened to 16 bits.
const HIGHEST_PORT: u32 = 65_535;

/// Refuses flags that contradict each other, and a command line without a program. Removes flags that have no effect
/// beside others, and warns of them.
pub(super) fn check(args: &mut Args, no_p4: bool) -> Result<(), UsageError> {
    if no_p4 && let Some(program) = args.program.take() {
        args.warn(format!("the program {} has no effect beside --no-p4", program.display()));
    }
    if !no_p4 && args.program.is_none() {
        let swallowed_program =
            args.pcap.as_ref().filter(|directory| directory.extension().is_some_and(|end| end == "json"));
        return Err(match swallowed_program {
            Some(word) => usage(format!("a program is missing: --pcap took {}; write --pcap=DIR", word.display())),
            None => usage("a program is missing: give PROGRAM.json, or --no-p4"),
        });
    }
    if no_p4 && args.p4info.is_some() {
        return Err(usage("--p4info belongs to a program on the command line"));
    }
    check_tls(args)?;
    check_ports(args)?;
    if args.use_files.is_some() && args.pcap.take().is_some() {
        args.warn("--pcap has no effect beside --use-files, whose files have these names".to_owned());
    }
    if args.log_console && args.log_file.is_some() {
        return Err(usage("--log-console and --log-file exclude each other"));
    }
    Ok(())
}

/// Refuses TLS if the flag of a required certificate or key is missing. Removes TLS flags that have no effect, as on
/// `simple_switch_grpc`, and warns of them.
fn check_tls(args: &mut Args) -> Result<(), UsageError> {
    let TlsFiles { on, certificate, key, ca, client_auth } = &args.tls;
    if *on && (certificate.is_none() || key.is_none()) {
        return Err(usage("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key"));
    }
    if *on && *client_auth && ca.is_none() {
        return Err(usage("--grpc-server-with-client-auth needs --grpc-server-cacert"));
    }
    if !on && (certificate.is_some() || key.is_some() || ca.is_some() || *client_auth) {
        args.tls = TlsFiles::default();
        args.warn("P4Runtime is served without TLS: certificates and keys need --grpc-server-ssl".to_owned());
    } else if ca.is_some() && !client_auth {
        args.tls.ca = None;
        args.warn("--grpc-server-cacert has no effect without --grpc-server-with-client-auth".to_owned());
    }
    Ok(())
}

fn check_ports(args: &mut Args) -> Result<(), UsageError> {
    let drop_port = args.drop_port;
    for (place, port) in args.ports.iter().enumerate() {
        let PortSpec { number, interface } = port;
        if *number > HIGHEST_PORT {
            return Err(usage(format!("-i {number}@{interface}: ports end at {HIGHEST_PORT}")));
        }
        if Some(*number) == args.cpu_port {
            return Err(usage(format!("-i {number}@{interface}: {number} is the CPU port")));
        }
        if args.ports[..place].iter().any(|earlier| earlier.interface == *interface) {
            return Err(usage(format!("interface {interface} is given twice")));
        }
    }
    if args.ports.iter().any(|port| port.number == drop_port) {
        args.warn(format!("nothing goes out by port {drop_port}, the drop port; another --drop-port frees it"));
    }
    if args.cpu_port == Some(drop_port) {
        args.warn(format!("no packet-in comes by port {drop_port}, the drop port; another --drop-port frees it"));
    }
    if args.ports.iter().map(|port| port.number).chain(args.cpu_port).any(|number| number > V1MODEL_HIGHEST_PORT) {
        args.warn(format!("ports above {V1MODEL_HIGHEST_PORT} need a program whose ports have more than 9 bits"));
    }
    Ok(())
}
