//! Handles SIGHUP, SIGUSR1 and SIGUSR2. By default these signals end a process. They must not end this process, because
//! log rotations send them.

use std::convert::Infallible;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The caught signals. After [`Signals::catch`] they no longer end the process.
pub struct Signals {
    hangup: Signal,
    user: [Signal; 2],
}

impl Signals {
    /// Installs the handlers. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// Fails if the kernel or the runtime refuses a handler.
    pub fn catch() -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup, user: [signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?] })
    }

    /// Calls `on_hangup`, if given, for each SIGHUP. Logs every other signal as one that has no effect.
    pub async fn follow(mut self, on_hangup: Option<impl Fn()>) -> Infallible {
        let [first, second] = &mut self.user;
        loop {
            let name = tokio::select! {
                _ = self.hangup.recv() => "SIGHUP",
                _ = first.recv() => "SIGUSR1",
                _ = second.recv() => "SIGUSR2",
            };
            match &on_hangup {
                Some(act) if name == "SIGHUP" => act(),
                _ => tracing::warn!(signal = name, "signal without a meaning"),
            }
        }
    }
}
