//! Generates the load for the figures on content switching: every request has its own connection. Measures the time to
//! the first byte of the answer.
//!
//! `first_byte ADDRESS:PORT PATHS BODY RATE SECONDS`
//!
//! Requests the paths (separated by commas) in turn. If BODY is 0, the requests are GET. Otherwise they are POST with
//! an XML document of BODY bytes, in which the element that the rule compares comes last. On average, RATE requests
//! start per second; the intervals between their starts are exponential, and the same in every run. If RATE is 0, 16
//! requests are in progress at a time, and each begins as soon as another ends. For each answer, prints the
//! microseconds from just before the connection attempt to the first byte and to the last byte of the answer, and the
//! answer's number of bytes. Then prints `failed N: WHY` (N: the number of failed requests, WHY: the first error), and
//! `late US`: 99 of 100 requests started at most this number of microseconds late. A request has failed if the status
//! of its answer is not 200, or if connecting or waiting for further bytes takes longer than 5 s or ends in an error.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of concurrent requests if RATE is not 0. A request that is due while so many are in progress
/// begins late.
const OPEN_LOOP: usize = 128;
/// The number of concurrent requests if RATE is 0.
const CLOSED_LOOP: usize = 16;
const OK: &[u8] = b"HTTP/1.1 200 ";
const USAGE: &str = "usage: first_byte ADDRESS:PORT PATHS BODY RATE SECONDS";

struct Load {
    server: SocketAddr,
    requests: Vec<Vec<u8>>,
    /// The start time of each request, counted from the start of the run. `None` if RATE is 0: then each request begins
    /// as soon as another ends.
    times: Option<Vec<Duration>>,
    length: Duration,
}

/// The microseconds to the first and to the last byte of an answer, and the number of bytes.
struct Answer {
    first: u128,
    last: u128,
    bytes: usize,
}

#[derive(Default)]
struct Measurement {
    answers: Vec<Answer>,
    failures: Vec<String>,
    late: Vec<u128>,
}

impl Load {
    fn parse(arguments: &[String]) -> Option<Load> {
        let [server, paths, body, rate, seconds] = arguments else { return None };
        let (body, rate, seconds) = (body.parse().ok()?, rate.parse().ok()?, seconds.parse().ok()?);
        Some(Load {
            server: server.parse().ok()?,
            requests: paths.split(',').map(|path| request(path, body)).collect(),
            times: (rate > 0.0).then(|| arrivals(rate, seconds)),
            length: Duration::try_from_secs_f64(seconds).ok()?,
        })
    }

    /// Returns when the request with this number is due, counted from the start of the run: at its time in `times`, or
    /// `now` if RATE is 0. `None` if the run has no further request.
    fn time(&self, number: usize, now: Duration) -> Option<Duration> {
        match &self.times {
            Some(times) => times.get(number).copied(),
            None => (now < self.length).then_some(now),
        }
    }

    fn work(&self, start: Instant, next: &AtomicUsize) -> Measurement {
        let mut measurement = Measurement::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(due) = self.time(number, start.elapsed()) else { return measurement };
            thread::sleep(due.saturating_sub(start.elapsed()));
            measurement.late.push(start.elapsed().saturating_sub(due).as_micros());
            match ask(self.server, &self.requests[number % self.requests.len()]) {
                Ok(answer) => measurement.answers.push(answer),
                Err(error) => measurement.failures.push(error.to_string()),
            }
        }
    }

    fn run(&self) -> Measurement {
        let (start, next) = (Instant::now(), AtomicUsize::new(0));
        let workers = if self.times.is_some() { OPEN_LOOP } else { CLOSED_LOOP };
        let mut all = Measurement::default();
        thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| self.work(start, &next))).collect();
            for worker in workers {
                let measurement = worker.join().expect("a worker does not panic");
                all.answers.extend(measurement.answers);
                all.failures.extend(measurement.failures);
                all.late.extend(measurement.late);
            }
        });
        all
    }
}

fn request(path: &str, body: usize) -> Vec<u8> {
    let head = format!("{path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: first_byte\r\nConnection: close\r\n");
    if body == 0 {
        return format!("GET {head}\r\n").into_bytes();
    }
    let body = document(body);
    format!("POST {head}Content-Type: text/xml\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn document(size: usize) -> String {
    let mut text = String::from("<?xml version=\"1.0\"?><purchase>");
    let end = "<totalAmount>60000</totalAmount></purchase>";
    for number in 0.. {
        let item = format!("<item><productID>{number}</productID><unitPrice>20.50</unitPrice></item>\n");
        if text.len() + item.len() + end.len() > size {
            break;
        }
        text += &item;
    }
    text + end
}

/// Returns the start times of the requests of a run of `seconds` seconds: `rate` per second on average, at exponential
/// intervals. The times are the same in every run, because the random generator (splitmix64) has a fixed seed.
fn arrivals(rate: f64, seconds: f64) -> Vec<Duration> {
    let (mut state, mut at, mut times) = (1_u64, 0.0, Vec::new());
    loop {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        at -= (1.0 - uniform).ln() / rate;
        if at >= seconds {
            return times;
        }
        times.push(Duration::from_secs_f64(at));
    }
}

fn ask(server: SocketAddr, request: &[u8]) -> io::Result<Answer> {
    let begun = Instant::now();
    let mut connection = TcpStream::connect_timeout(&server, TIMEOUT)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.write_all(request)?;
    let mut buffer = [0; 1 << 16];
    let mut bytes = connection.read(&mut buffer)?;
    let first = begun.elapsed().as_micros();
    if !buffer[..bytes].starts_with(OK) {
        let line = buffer[..bytes].split(|&byte| byte == b'\r').next().unwrap_or_default();
        return Err(io::Error::other(format!("answer '{}'", String::from_utf8_lossy(line))));
    }
    loop {
        match connection.read(&mut buffer)? {
            0 => return Ok(Answer { first, last: begun.elapsed().as_micros(), bytes }),
            count => bytes += count,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(load) = Load::parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut measurement = load.run();
    for answer in &measurement.answers {
        println!("{} {} {}", answer.first, answer.last, answer.bytes);
    }
    measurement.late.sort_unstable();
    println!("failed {}: {}", measurement.failures.len(), measurement.failures.first().map_or("none", String::as_str));
    println!("late {}", measurement.late.get(measurement.late.len() * 99 / 100).unwrap_or(&0));
    ExitCode::SUCCESS
}
