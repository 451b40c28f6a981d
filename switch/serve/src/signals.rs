//! The signals that end a process by default, and here do not: SIGHUP, SIGUSR1 and SIGUSR2. Log rotations send them.

use std::convert::Infallible;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Those signals; from [`Signals::catch`] on they no longer end the process.
pub struct Signals {
    hangup: Signal,
    user: [Signal; 2],
}

impl Signals {
    /// Catches them. Has to run inside a Tokio runtime.
    ///
    /// # Errors
    /// When the kernel or the runtime takes no handler.
    pub fn catch() -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup, user: [signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?] })
    }

    /// Calls `on_hangup` for each SIGHUP, if there is one, and logs every other signal as one without a meaning.
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
