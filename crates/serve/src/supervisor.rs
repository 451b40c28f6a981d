//! Notifications to systemd, if systemd started this process (`sd_notify(3)`): ready, alive and stopping.

use std::convert::Infallible;
use std::env;
use std::future::pending;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The number of checks within the watchdog time. Systemd ends the process if it receives no notification for this
/// time. A check sends a notification only if the threads have worked since the previous check. So systemd does not end
/// the process because of threads that are stuck for less than two thirds of the watchdog time.
const REPORTS: u32 = 6;

/// The connection to systemd. If systemd did not start this process, no notifications are sent. A notification that
/// systemd does not accept is lost without an error.
pub struct Supervisor {
    systemd: Option<(UnixDatagram, SocketAddr)>,
    /// The time between two checks whether the process is alive; `None` if systemd expects no watchdog notifications.
    pause: Option<Duration>,
}

impl Supervisor {
    /// Reads the environment variables that systemd sets (`NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`).
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

    /// Notifies systemd that the process is ready to serve.
    pub fn ready(&self) {
        self.notify("READY=1");
    }

    /// Notifies systemd that the process is ending.
    pub fn stopping(&self) {
        self.notify("STOPPING=1");
    }

    /// While the future is polled, calls `is_alive` periodically, and notifies systemd that the process is alive each
    /// time that the result is true. Never calls `is_alive` if systemd expects no such notifications. `is_alive` may
    /// wake threads, and check at its next call whether these threads have worked since.
    pub async fn watch(&self, mut is_alive: impl AsyncFnMut() -> bool) -> Infallible {
        let (Some(pause), Some(_)) = (self.pause, &self.systemd) else { return pending().await };
        loop {
            tokio::time::sleep(pause).await;
            if is_alive().await {
                self.notify("WATCHDOG=1");
            } else {
                tracing::error!(
                    "packets have not been handled since the last check; systemd is not notified that the process is alive"
                );
            }
        }
    }

    fn notify(&self, state: &str) {
        let Some((socket, systemd)) = &self.systemd else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), systemd) {
            tracing::debug!(%error, state, "systemd does not accept the notification");
        }
    }
}

/// Opens a socket that never blocks. Returns the socket and systemd's address, which is a path or, after an `@`, an
/// abstract name.
fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let systemd = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, systemd))
}
