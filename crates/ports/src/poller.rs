//! Lets a thread sleep until a socket has frames, another thread wakes it, or a timeout is over.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::sys::check;

/// The token by which the kernel reports the waker's event.
const WAKER: u64 = u64::MAX;

/// The event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The socket registered with this token has frames or an error.
    Ready(usize),
    /// Another thread called [`Waker::wake`].
    Woken,
}

/// Waits for several sockets at once.
pub struct Poller {
    epoll: OwnedFd,
    waker: Waker,
}

/// Ends the wait of a [`Poller`] from another thread.
#[derive(Clone)]
pub struct Waker(Arc<WakeupEvent>);

struct WakeupEvent {
    event: OwnedFd,
    /// The number of waits that the waker has ended.
    wakeups: AtomicU64,
}

impl Poller {
    /// Creates a poller without sockets. Until a socket is added, only the waker, a timeout or a signal ends a wait.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are involved.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: no pointers are involved.
        let event = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let poller = Self { epoll, waker: Waker(Arc::new(WakeupEvent { event, wakeups: AtomicU64::new(0) })) };
        poller.register(poller.waker.fd(), WAKER)?;
        Ok(poller)
    }

    /// Returns a handle by which another thread can end the wait.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Adds a socket to wait for; events of the socket contain `token`. The kernel removes the socket when it is
    /// closed.
    pub fn add(&self, socket: RawFd, token: usize) -> io::Result<()> {
        self.register(socket, token as u64)
    }

    fn register(&self, fd: RawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: `event` outlives the call.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) })
    }

    /// Waits until an event occurs or `timeout` is over (`None`: without a limit), and stores the events in `events`. A
    /// signal may end the wait early; then `events` is empty.
    pub fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        const EVENTS: usize = 64;
        events.clear();
        // Round the timeout up to milliseconds, so that the deadline has passed when the wait ends.
        let timeout = timeout.map_or(-1, |timeout| {
            libc::c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
        });
        // SAFETY: all-zero is a valid value of this plain structure.
        let mut ready: [libc::epoll_event; EVENTS] = unsafe { zeroed() };
        // SAFETY: pointer and length describe `ready`, which outlives the call.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), ready.as_mut_ptr(), EVENTS as libc::c_int, timeout) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for event in &ready[..count as usize] {
            events.push(match event.u64 {
                WAKER => {
                    self.waker.drain();
                    Event::Woken
                }
                token => Event::Ready(token as usize),
            });
        }
        Ok(())
    }
}

impl Waker {
    /// Ends the current wait. If no thread is waiting now, the next wait ends immediately.
    pub fn wake(&self) {
        let increment = 1u64.to_ne_bytes();
        // SAFETY: pointer and length describe `increment`. The write fails only if the counter is full. Then a wake-up
        // is already pending, so the failure can be ignored.
        unsafe { libc::write(self.fd(), increment.as_ptr().cast(), increment.len()) };
    }

    /// Returns the number of waits that the waker has ended. The number increases soon after [`Waker::wake`], unless
    /// the waiting thread is blocked elsewhere.
    pub fn wakeups(&self) -> u64 {
        self.0.wakeups.load(Relaxed)
    }

    fn fd(&self) -> RawFd {
        self.0.event.as_raw_fd()
    }

    fn drain(&self) {
        let mut count = [0u8; 8];
        // SAFETY: pointer and length describe `count`. The read of an empty counter fails, and this failure can be
        // ignored.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
        self.0.wakeups.fetch_add(1, Relaxed);
    }
}

/// Checks whether a thread that waits with a [`Poller`] still returns to its next wait, and is not blocked elsewhere.
pub struct Pulse {
    waker: Waker,
    wakeups: u64,
}

impl Pulse {
    /// Starts to check the thread that `waker` wakes, and wakes that thread for the first time.
    pub fn new(waker: Waker) -> Self {
        let wakeups = waker.wakeups();
        waker.wake();
        Self { waker, wakeups }
    }

    /// Returns whether the thread has ended a wait since the last check. Wakes the thread for the next check.
    pub fn beats(&mut self) -> bool {
        let before = std::mem::replace(&mut self.wakeups, self.waker.wakeups());
        self.waker.wake();
        self.wakeups != before
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: `fd` was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_ends_one_wait() {
        let poller = Poller::new().unwrap();
        let mut events = Vec::new();
        poller.waker().wake();
        poller.waker().wake();
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events, [Event::Woken]);
        assert_eq!(poller.waker().wakeups(), 1);
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events, []);
        assert_eq!(poller.waker().wakeups(), 1);
    }

    #[test]
    fn a_pulse_beats_while_its_thread_waits_again_and_again() {
        let poller = Poller::new().unwrap();
        let (mut pulse, mut events) = (Pulse::new(poller.waker()), Vec::new());
        assert!(!pulse.beats());
        poller.wait(&mut events, None).unwrap();
        assert!(pulse.beats());
        assert!(!pulse.beats());
        poller.wait(&mut events, None).unwrap();
        assert!(pulse.beats());
    }
}
