//! veth pairs in a network namespace: the switch uses the end `sN`, the load generator the end `hN`.

use std::error::Error;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

/// Moves this thread, with all threads and processes that it starts later, to a new namespace with veth pairs of these
/// numbers.
pub fn enter_namespace(numbers: &[u32]) -> Result<(), Box<dyn Error>> {
    // SAFETY: the call has no pointer arguments.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("a network namespace needs root: {}", io::Error::last_os_error()).into());
    }
    run("ip link set lo up")?;
    for number in numbers {
        run(&format!("ip link add s{number} type veth peer name h{number}"))?;
        for end in ["s", "h"] {
            run(&format!("sysctl -q -w net.ipv6.conf.{end}{number}.disable_ipv6=1"))?;
            run(&format!("ip link set {end}{number} up"))?;
        }
    }
    // The kernel drops the frames of an interface until it has noticed that the interface's link is up.
    let started = Instant::now();
    while numbers.iter().any(|number| !is_up(&format!("s{number}"))) {
        if started.elapsed() > Duration::from_secs(60) {
            return Err("no carrier after a minute".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn is_up(interface: &str) -> bool {
    let output = Command::new("ip").args(["-o", "link", "show", interface]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(" state UP "))
}

fn run(command: &str) -> Result<(), Box<dyn Error>> {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap_or_default()).args(words).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command}: {status}").into()) }
}

/// The numbers of packets that an interface has received and sent.
pub struct Packets {
    pub received: u64,
    pub sent: u64,
}

/// Reads the numbers of packets of an interface from the kernel.
pub fn packets(interface: &str) -> Result<Packets, Box<dyn Error>> {
    let table = std::fs::read_to_string("/proc/self/net/dev")?;
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'));
    let fields: Vec<&str> = line.ok_or(format!("there is no {interface}"))?.split_whitespace().collect();
    Ok(Packets { received: fields[1].parse()?, sent: fields[9].parse()? })
}
