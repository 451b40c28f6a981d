//! Notifications to systemd, where it started this process (`sd_notify(3)`): ready, alive, stopping.

use std::convert::Infallible;
use std::env;
use std::future::pending;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Reports within the time after which systemd takes the process for dead. Each reports whether a thread has worked since the
/// report before the last, so that a thread may be away for two thirds of that time.
const REPORTS: u32 = 6;

/// Without systemd nothing is sent; a notification that systemd does not take is lost without an error.
pub struct Supervisor {
    systemd: Option<(UnixDatagram, SocketAddr)>,
    /// Between two signs of life; `None`: systemd wants none.
    pause: Option<Duration>,
}

impl Supervisor {
    /// By the environment that systemd gives (`NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`).
    pub fn from_environment() -> Self {
        let word = |name| env::var(name).ok().filter(|word| !word.is_empty());
        let systemd = word("NOTIFY_SOCKET").and_then(|name| match open(&name) {
            Ok(systemd) => Some(systemd),
            Err(error) => {
                tracing::warn!(socket = name, %error, "systemd cannot be notified");
                None
            }
        });
        let is_ours = word("WATCHDOG_PID").is_none_or(|id| id == std::process::id().to_string());
        let time = word("WATCHDOG_USEC").filter(|_| is_ours).and_then(|time| time.parse::<u64>().ok());
        let pause = time.filter(|time| *time > 0).map(|time| Duration::from_micros(time) / REPORTS);
        Self { systemd, pause }
    }

    /// The process serves.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// The process ends.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// Gives signs of life for as long as it is polled: each time `lives` returns true. `lives` may ask threads for a sign
    /// of theirs, and judge them at the next call by what has come since.
    pub async fn watch(&self, mut lives: impl AsyncFnMut() -> bool) -> Infallible {
        let (Some(pause), Some(_)) = (self.pause, &self.systemd) else { return pending().await };
        loop {
            tokio::time::sleep(pause).await;
            if lives().await {
                self.say("WATCHDOG=1");
            } else {
                tracing::error!("packets have not been handled since the last look; systemd gets no sign of life");
            }
        }
    }

    fn say(&self, what: &str) {
        let Some((socket, systemd)) = &self.systemd else { return };
        if let Err(error) = socket.send_to_addr(what.as_bytes(), systemd) {
            tracing::debug!(%error, what, "systemd does not take it");
        }
    }
}

/// A socket to send by, which never waits, and where to send: a path, or behind an `@` an abstract name.
fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let systemd = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, systemd))
}
