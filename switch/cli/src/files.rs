//! The flag `--use-files`: files replace the interfaces. The switch reads received packets from `IFACE_in.pcap`, and
//! writes sent packets to `IFACE_out.pcap`.
//!
//! Like BMv2, the switch reads the inputs in the order of the frames' timestamps, without waiting between frames. The
//! inputs may be named pipes (opened in the order of the ports). A frame that is incomplete in its input is an error.
//! The switch continues to run after the end of the inputs.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use sluice_ports::pcap::PcapWriter;
use sluice_ports::pcap_reader::{PcapReader, Record};
use sluice_ports::{Counters, Loss, TxBatch, Waker};

/// Limit on the number of frames that the reading thread has read but the data plane has not yet received.
const AHEAD: usize = 256;

/// The output file of a port.
pub struct Output {
    interface: String,
    /// The writer of the file; `None` after a failed write.
    file: Option<PcapWriter<BufWriter<File>>>,
    counters: Arc<Counters>,
}

impl Output {
    /// Creates `IFACE_out.pcap`.
    ///
    /// # Errors
    /// Fails if the file cannot be written. The error names the file.
    pub fn create(interface: &str) -> Result<Self, String> {
        let path = PathBuf::from(format!("{interface}_out.pcap"));
        // The flush writes the header, so that a file to which no packet is sent is a valid capture.
        let file = PcapWriter::create(&path).and_then(|mut file| file.flush().map(|()| file));
        let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { interface: interface.to_owned(), file: Some(file), counters: Arc::default() })
    }

    /// Returns the name of the interface, which the names of the files contain.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the counts of packets read and written.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Writes the frames of `batch`, makes them visible to readers of the file, and empties `batch`. After a failed
    /// write, the file remains as it is: `lost` is called for each frame of this batch and of all later ones.
    pub fn send(&mut self, batch: &mut TxBatch, mut lost: impl FnMut(Loss)) {
        let now = SystemTime::now();
        let written = match &mut self.file {
            Some(file) => batch.frames().try_for_each(|frame| file.write(now, frame)).and_then(|()| file.flush()),
            None => Err(io::Error::other("the output file has ended")),
        };
        match written {
            Ok(()) => {
                self.counters.tx_packets.add(batch.len() as u64);
                self.counters.tx_bytes.add(batch.frames().map(|frame| frame.len() as u64).sum());
            }
            Err(error) => {
                if self.file.take().is_some() {
                    tracing::error!(interface = self.interface, %error, "the output file ends here");
                }
                self.counters.tx_refused.add(batch.len() as u64);
                (0..batch.len()).for_each(|_| lost(Loss::Refused(io::Error::new(error.kind(), error.to_string()))));
            }
        }
        batch.clear();
    }
}

/// A frame, with the index of the port that receives it, or the reason why the inputs cannot be read.
pub type Input = Result<(usize, Vec<u8>), String>;

struct Source {
    path: PathBuf,
    reader: PcapReader<BufReader<File>>,
    next: Option<Record>,
}

impl Source {
    /// Reads the next frame. Waits until a named pipe contains one.
    fn advance(&mut self) -> Result<(), String> {
        self.next = self.reader.next_record().map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(())
    }
}

/// The input files of all ports.
pub struct Inputs {
    sources: Vec<Source>,
    wait: Duration,
}

impl Inputs {
    /// Creates an empty list of inputs, which are read after `wait`.
    pub fn new(wait: Duration) -> Self {
        Self { sources: Vec::new(), wait }
    }

    /// Opens `IFACE_in.pcap` for the next port. Waits until the other end of a named pipe is opened.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a capture. The error names the file.
    pub fn open(&mut self, interface: &str) -> Result<(), String> {
        let path = PathBuf::from(format!("{interface}_in.pcap"));
        let reader = File::open(&path).and_then(|file| PcapReader::new(BufReader::new(file)));
        let reader = reader.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        self.sources.push(Source { path, reader, next: None });
        Ok(())
    }

    /// Starts a thread that reads the inputs. The thread wakes the data plane with `waker` for each frame. The thread
    /// ends at the end of the inputs, when an input cannot be read, or when the receiver is dropped.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn start(self, waker: Waker) -> io::Result<Receiver<Input>> {
        let (sender, receiver) = sync_channel(AHEAD);
        std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            std::thread::sleep(self.wait);
            if let Err(text) = read_all(self.sources, &sender, &waker) {
                let _ = sender.send(Err(text));
            }
            drop(sender);
            waker.wake();
        })?;
        Ok(receiver)
    }
}

/// Sends all frames to the data plane, in the order of their timestamps. Frames with equal timestamps are sent in the
/// order of the ports.
fn read_all(mut sources: Vec<Source>, sender: &SyncSender<Input>, waker: &Waker) -> Result<(), String> {
    for source in &mut sources {
        source.advance()?;
    }
    loop {
        let times = sources.iter().enumerate().filter_map(|(place, source)| Some((source.next.as_ref()?.time, place)));
        let Some((_, place)) = times.min() else { break };
        let Some(record) = sources[place].next.take() else { break };
        if sender.send(Ok((place, record.frame))).is_err() {
            return Ok(());
        }
        waker.wake();
        // The next frame is read only after this one was sent, because a pipe may supply the next one much later.
        sources[place].advance()?;
    }
    Ok(())
}
