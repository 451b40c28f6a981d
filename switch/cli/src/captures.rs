//! `--pcap`: what every port receives and sends, as simple_switch names the files.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::SystemTime;

use sluice_ports::pcap::PcapWriter;

type Writer = PcapWriter<BufWriter<File>>;

/// The two captures of one port.
pub struct Captures {
    interface: String,
    files: Option<(Writer, Writer)>,
    unflushed: bool,
}

impl Captures {
    /// Starts `IFACE_in.pcap` and `IFACE_out.pcap` in `directory`.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub fn create(directory: &Path, interface: &str) -> io::Result<Self> {
        let create = |direction: &str| PcapWriter::create(&directory.join(format!("{interface}_{direction}.pcap")));
        let files = Some((create("in")?, create("out")?));
        Ok(Self { interface: interface.to_owned(), files, unflushed: true })
    }

    /// Adds received frames.
    pub fn received<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) {
        self.write(frames, |files| &mut files.0);
    }

    /// Adds frames that are about to be sent.
    pub fn sent<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) {
        self.write(frames, |files| &mut files.1);
    }

    fn write<'f>(
        &mut self,
        mut frames: impl Iterator<Item = &'f [u8]>,
        which: impl Fn(&mut (Writer, Writer)) -> &mut Writer,
    ) {
        let Some(files) = &mut self.files else { return };
        let now = SystemTime::now();
        let result = frames.try_for_each(|frame| which(files).write(now, frame));
        self.unflushed = true;
        self.stop_on_error(result);
    }

    /// Makes what was written visible to readers.
    pub fn flush(&mut self) {
        let Some((input, output)) = self.files.as_mut().filter(|_| self.unflushed) else { return };
        let result = input.flush().and_then(|()| output.flush());
        self.unflushed = false;
        self.stop_on_error(result);
    }

    /// Whether something waits to be flushed.
    pub fn is_unflushed(&self) -> bool {
        self.unflushed && self.files.is_some()
    }

    fn stop_on_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            tracing::error!(interface = self.interface, %error, "the capture stops: it cannot be written");
            self.files = None;
        }
    }
}
