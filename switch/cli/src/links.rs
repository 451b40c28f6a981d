//! Tells the switch which of its ports have a link, whenever that changes.

use std::convert::Infallible;
use std::sync::Arc;

use sluice_p4runtime::Device;
use sluice_ports::LinkWatch;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::args::PortSpec;

/// The ports whose links are watched.
pub struct Links {
    watch: LinkWatch,
    ports: Vec<PortSpec>,
    device: Arc<Device>,
}

impl Links {
    /// Tells the device of these ports, and listens for changes.
    ///
    /// # Errors
    /// When the kernel refuses a netlink socket.
    pub fn new(device: Arc<Device>, ports: &[PortSpec]) -> std::io::Result<Self> {
        let links = Self { watch: LinkWatch::new()?, ports: ports.to_vec(), device };
        links.tell();
        Ok(links)
    }

    fn tell(&self) {
        for PortSpec { number, interface } in &self.ports {
            let up = self.watch.is_up(interface);
            if self.device.set_port(*number, up) {
                tracing::info!(port = number, interface, up, "the port's link");
            }
        }
    }

    /// Passes changes on for as long as it is polled.
    ///
    /// # Errors
    /// When the socket cannot be waited for.
    pub async fn follow(self) -> std::io::Result<Infallible> {
        use std::os::fd::AsRawFd;
        let socket = AsyncFd::with_interest(self.watch.as_raw_fd(), Interest::READABLE)?;
        loop {
            let mut ready = socket.readable().await?;
            self.watch.drain();
            ready.clear_ready();
            self.tell();
        }
    }
}
