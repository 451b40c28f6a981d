//! The flag `--pcap`: captures the frames that every port receives and sends. The files have the names that
//! `simple_switch` gives them.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sluice_ports::pcap::PcapWriter;

use crate::fileid::FileId;

/// The two captures of one port, of received and of sent frames.
pub struct Captures {
    interface: String,
    files: Option<(Capture, Capture)>,
    unflushed: bool,
}

/// The capture of frames in one direction.
struct Capture {
    path: PathBuf,
    writer: PcapWriter<BufWriter<File>>,
    id: FileId,
    /// Whether `path` no longer leads to the file in use, and no new capture can be started there. If so, the error has
    /// already been logged.
    is_cut_off: bool,
}

impl Capture {
    fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::create(&path)?;
        let id = FileId::of(&file.metadata()?);
        Ok(Self { path, writer: PcapWriter::new(BufWriter::new(file))?, id, is_cut_off: false })
    }

    /// Starts a new capture if another program has renamed or removed the file in use. If this fails, frames are still
    /// written to the file in use.
    fn follow(&mut self) {
        if self.id.is_at(&self.path) {
            self.is_cut_off = false;
            return;
        }
        let next = Self::create(self.path.clone()).and_then(|mut next| next.writer.flush().map(|()| next));
        match next {
            Ok(next) => *self = next,
            Err(error) => {
                if !self.is_cut_off {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "the capture goes on in the renamed file, because no new one can be started");
                }
                self.is_cut_off = true;
            }
        }
    }
}

impl Captures {
    /// Creates `IFACE_in.pcap` and `IFACE_out.pcap` in `directory`.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub fn create(directory: &Path, interface: &str) -> io::Result<Self> {
        let create = |direction: &str| Capture::create(directory.join(format!("{interface}_{direction}.pcap")));
        let files = Some((create("in")?, create("out")?));
        Ok(Self { interface: interface.to_owned(), files, unflushed: true })
    }

    /// Writes frames to the capture of received frames.
    pub fn received<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) {
        self.write(frames, |files| &mut files.0);
    }

    /// Writes frames to the capture of sent frames. The caller sends the frames afterwards.
    pub fn sent<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) {
        self.write(frames, |files| &mut files.1);
    }

    fn write<'f>(
        &mut self,
        mut frames: impl Iterator<Item = &'f [u8]>,
        which: impl Fn(&mut (Capture, Capture)) -> &mut Capture,
    ) {
        let Some(files) = &mut self.files else { return };
        let now = SystemTime::now();
        let result = frames.try_for_each(|frame| which(files).writer.write(now, frame));
        self.unflushed = true;
        self.stop_on_error(result);
    }

    /// Makes the captured frames visible to readers. If another program, such as logrotate, has renamed or removed a
    /// file, starts a new capture in its place.
    pub fn flush(&mut self) {
        let Some((input, output)) = self.files.as_mut().filter(|_| self.unflushed) else { return };
        let result = input.writer.flush().and_then(|()| output.writer.flush());
        if result.is_ok() {
            input.follow();
            output.follow();
        }
        self.unflushed = false;
        self.stop_on_error(result);
    }

    /// Returns whether frames wait to be flushed.
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
