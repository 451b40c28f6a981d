//! Updates the states of the switch's ports whenever the link of an interface changes.

use std::convert::Infallible;
use std::sync::Arc;

use sluice_p4runtime::Device;
use sluice_ports::LinkWatch;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::args::PortSpec;

/// The ports of the switch, and the watch for changes of their links.
pub struct Links {
    watch: LinkWatch,
    ports: Vec<PortSpec>,
    device: Arc<Device>,
}

impl Links {
    /// Sets the current states of these ports in the device, and subscribes to changes of links.
    ///
    /// # Errors
    /// Fails if the kernel refuses a netlink socket.
    pub fn new(device: Arc<Device>, ports: &[PortSpec]) -> std::io::Result<Self> {
        let links = Self { watch: LinkWatch::new()?, ports: ports.to_vec(), device };
        update_ports(&links.watch, ports, &links.device, |_, _| {});
        Ok(links)
    }

    /// Updates the device after every change, as long as the future is polled.
    ///
    /// # Errors
    /// Fails if the thread cannot wait for the socket.
    pub async fn follow(self) -> std::io::Result<Infallible> {
        let Self { watch, ports, device } = self;
        // SAFETY: `watch` owns its socket, and keeps it open as long as the `AsyncFd` that owns `watch` exists.
        let watch = unsafe { AsyncFd::register_with_interest(watch, Interest::READABLE) }?;
        loop {
            let mut ready = watch.readable().await?;
            watch.get_ref().drain();
            ready.clear_ready();
            update_ports(watch.get_ref(), &ports, &device, |PortSpec { number, interface }, up| {
                tracing::info!(port = number, interface, up, "the port's link");
            });
        }
    }
}

fn update_ports(watch: &LinkWatch, ports: &[PortSpec], device: &Device, changed: impl Fn(&PortSpec, bool)) {
    for port in ports {
        let up = watch.is_up(&port.interface);
        if device.set_port(port.number, up) {
            changed(port, up);
        }
    }
}
