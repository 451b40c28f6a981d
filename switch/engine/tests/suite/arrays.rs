//! Tests registers, counters, meters, hashes, random numbers, digests, checksums, value sets and parser errors.

use crate::common::{SECOND, Switch};
use sluice_engine::{ControlError, CounterData, DigestConfig, Engine, MeterConfig, Options, TraceEvent};

/// Builds a request of `arrays.p4`, with a variable-length field that contains `options`.
fn request(what: u8, index: u32, options: &[u8]) -> Vec<u8> {
    let sum = checksum(&[options, &[1, 2, 3, 4]].concat());
    [&[what][..], &index.to_be_bytes(), &[options.len() as u8], options, &sum.to_be_bytes(), &[1, 2, 3, 4], b"payload"]
        .concat()
}

fn checksum(data: &[u8]) -> u16 {
    let mut sum: u32 = data.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum();
    while sum >> 16 != 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

struct Answer {
    value: u64,
    wide: u128,
    flags: u8,
}

/// Reads the program's answer, which is between the checksum and the payload of the frame.
fn answer(frame: &[u8], options: usize) -> Answer {
    let at = 6 + options + 6;
    let number = |range: std::ops::Range<usize>| frame[range].iter().fold(0u128, |v, &b| v << 8 | u128::from(b));
    assert_eq!(&frame[at + 25..], b"payload");
    Answer { value: number(at..at + 8) as u64, wide: number(at + 8..at + 24), flags: frame[at + 24] }
}

fn query(s: &mut Switch, now: u64, what: u8, index: u32) -> Answer {
    answer(&s.one(now, &request(what, index, &[])), 0)
}

#[test]
fn registers_of_all_widths() {
    let mut s = Switch::new("arrays");
    let r = |name: &str| s.program.register(name).unwrap();
    let (narrow, full, wide) = (r("I.narrow"), r("I.full"), r("I.wide"));
    s.engine.register_write(narrow, 3, &[0x7f]).unwrap();
    assert_eq!(query(&mut s, 0, 1, 3).value, 0x7f);
    assert_eq!(s.engine.register_read(narrow, 3).unwrap(), [0], "7 bits wrap");
    query(&mut s, 0, 2, 9);
    assert_eq!(query(&mut s, 0, 2, 9).value, u64::MAX);
    assert_eq!(s.engine.register_read(full, 9).unwrap(), (u64::MAX - 1).to_be_bytes());
    query(&mut s, 0, 3, 0);
    assert_eq!(query(&mut s, 0, 3, 0).wide, 1 << 64 | 1);
    assert_eq!(s.engine.register_read(wide, 0).unwrap(), (2u128 << 64 | 2).to_be_bytes());
    // A read outside of the array leaves its destination unchanged, which is 0 here. A write outside of the array has
    // no effect.
    assert_eq!(query(&mut s, 0, 1, 10).value, 0);
    query(&mut s, 0, 2, u32::MAX);

    assert!(matches!(s.engine.register_write(narrow, 0, &[0x80]), Err(ControlError::InvalidArgument(_))));
    assert!(matches!(s.engine.register_write(narrow, 10, &[1]), Err(ControlError::OutOfRange(_))));
    s.engine.register_fill(narrow, &[0, 5]).unwrap();
    let mut cells = Vec::new();
    s.engine.register_read_range(narrow, 2, 8, &mut cells).unwrap();
    assert_eq!(cells, [5; 8]);
    assert!(s.engine.register_read_range(narrow, 3, 8, &mut cells).is_err());
    s.engine.register_read_range(wide, 0, 2, &mut cells).unwrap();
    assert_eq!(cells.len(), 8 + 32);
}

#[test]
fn counters_count_packets_and_bytes() {
    let mut s = Switch::new("arrays");
    let c = s.program.counter("I.packets").unwrap();
    let length = request(4, 2, &[]).len() as u64;
    for _ in 0..3 {
        query(&mut s, 0, 4, 2);
    }
    query(&mut s, 0, 4, 10);
    assert_eq!(s.engine.counter_read(c, 2).unwrap(), CounterData { packets: 3, bytes: 3 * length });
    s.engine.counter_write(c, 2, CounterData::default()).unwrap();
    assert_eq!(s.engine.counter_read(c, 2).unwrap(), CounterData::default());
    assert!(matches!(s.engine.counter_read(c, 10), Err(ControlError::OutOfRange(_))));
}

#[test]
fn meters_of_packets_and_bytes() {
    let mut s = Switch::new("arrays");
    let m = s.program.meter("I.rate").unwrap();
    let config = MeterConfig { cir: 1, cburst: 1, pir: 2, pburst: 2 };
    assert_eq!(query(&mut s, 0, 5, 1).value, 0);
    s.engine.meter_write(0, m, 1, Some(config)).unwrap();
    assert_eq!((0..3).map(|_| query(&mut s, 0, 5, 1).value).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(query(&mut s, 0, 5, 2).value, 0, "other cells are not affected");
    assert_eq!((0..3).map(|_| query(&mut s, SECOND, 5, 1).value).collect::<Vec<_>>(), [0, 1, 2]);
    let read = s.engine.meter_read(m, 1).unwrap();
    assert_eq!(read.config, Some(config));
    assert_eq!(read.counts.map(|colour| colour.packets), [3, 2, 2], "the first packet came before the configuration");
    s.engine.meter_clear_counts(m, 1).unwrap();
    assert_eq!(s.engine.meter_read(m, 1).unwrap().counts, [CounterData::default(); 3]);
    assert!(matches!(
        s.engine.meter_write(0, m, 1, Some(MeterConfig { cir: 3, ..config })),
        Err(ControlError::InvalidArgument(_))
    ));
    s.engine.meter_write(SECOND, m, 1, None).unwrap();
    assert_eq!(query(&mut s, SECOND, 5, 1).value, 0);

    let m = s.program.meter("I.byte_rate").unwrap();
    let length = request(6, 0, &[]).len() as u64;
    s.engine
        .meter_write(0, m, 0, Some(MeterConfig { cir: length, cburst: length, pir: length, pburst: 2 * length }))
        .unwrap();
    assert_eq!((0..3).map(|_| query(&mut s, 0, 6, 0).value).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn hashes_and_random_numbers() {
    let mut s = Switch::new("arrays");
    let crc = crc::Crc::<u16>::new(&crc::CRC_16_ARC).checksum(&[0, 1, 2, 3, 7]);
    assert_eq!(query(&mut s, 0, 7, 0x0001_0203).value, 5 + u64::from(crc) % 1000);
    let draws: Vec<u64> = (0..300).map(|_| query(&mut s, 0, 8, 0).value).collect();
    assert!((10..=20).all(|v| draws.contains(&v)) && draws.iter().all(|v| (10..=20).contains(v)), "{draws:?}");
    let mut again = Switch::new("arrays");
    assert_eq!(query(&mut again, 0, 8, 0).value, draws[0], "the same seed, the same numbers");
    assert_eq!(query(&mut s, 5_999_999, 11, 0).value, 5_999, "microseconds");
}

#[test]
fn digests() {
    let mut s = Switch::new("arrays");
    let d = s.program.digest("learnt_t").unwrap();
    let widths: Vec<u32> = s.program.digest_info(d).fields.iter().map(|f| f.width).collect();
    assert_eq!(widths, [32, 9]);
    query(&mut s, 0, 9, 5);
    assert!(s.engine.take_digests().is_empty(), "the digest is not configured");
    s.engine.digest_configure(d, Some(DigestConfig { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 0 }));
    query(&mut s, 7, 9, 6);
    let messages = s.engine.take_digests();
    assert_eq!(messages.len(), 1);
    assert_eq!(
        (messages[0].digest, messages[0].time, &messages[0].fields[..]),
        (d, 7, &[vec![0, 0, 0, 6], vec![0, 1]][..])
    );
    assert!(s.engine.take_digests().is_empty());
}

#[test]
fn checksums_with_a_variable_length_field() {
    let mut s = Switch::new("arrays");
    for n in [0, 1, 4, 5, 8] {
        let options = &[9, 8, 7, 6, 5, 4, 3, 2][..n];
        let frame = request(0, 0, options);
        let out = s.one(0, &frame);
        assert_eq!(answer(&out, n).flags, 0, "{n}");
        assert_eq!(&out[..6 + n + 6], &frame[..6 + n + 6], "the updated checksum is the right one");
        let mut wrong = frame.clone();
        wrong[6 + n] ^= 1;
        let out = s.one(0, &wrong);
        assert_eq!(answer(&out, n).flags, 2, "checksum_error");
        assert_eq!(&out[..6 + n + 6], &frame[..6 + n + 6], "updating repairs it");
    }
}

#[test]
fn value_sets() {
    let mut s = Switch::new("arrays");
    let set = s.program.value_set("P.wanted").unwrap();
    assert_eq!((s.program.value_set_info(set).width, s.program.value_set_info(set).size), (8, 4));
    assert_eq!(query(&mut s, 0, 0x31, 0).flags, 0);
    s.engine.value_set_write(set, &[(vec![0x31], vec![]), (vec![0x40], vec![0xf0])]).unwrap();
    assert_eq!([0x31, 0x32, 0x4f].map(|what| query(&mut s, 0, what, 0).flags), [4, 0, 4]);
    assert_eq!(s.engine.value_set_read(set), [(vec![0x31], vec![0xff]), (vec![0x40], vec![0xf0])]);
    assert!(matches!(s.engine.value_set_write(set, &[(vec![1, 0], vec![])]), Err(ControlError::InvalidArgument(_))));
    assert!(matches!(
        s.engine.value_set_write(set, &vec![(vec![1], vec![]); 5]),
        Err(ControlError::ResourceExhausted(_))
    ));
}

#[test]
fn parser_errors_still_enter_ingress() {
    let mut s = Switch::new("arrays");
    // The `verify` in the parser fails. Only the request was parsed, and the bytes after it are payload.
    let out = s.one(0, &[0, 0, 0, 0, 0, 9, 1, 2, 3]);
    assert_eq!(out, [&[0, 0, 0, 0, 0, 9][..], &[0; 24], &[1], &[1, 2, 3]].concat());
    // The frame is too short for a request. It is sent unchanged after the answer.
    let out = s.one(0, &[7, 7]);
    assert_eq!(out, [&[0; 25][..], &[7, 7]].concat());
}

#[test]
fn a_failed_assertion_drops_the_packet() {
    let mut s = Switch::new("arrays");
    assert_eq!(s.send(0, 1, &request(10, 2, &[])).len(), 1);
    assert!(s.send(0, 1, &request(10, 3, &[])).is_empty());
    assert_eq!(s.engine.drops().assertions, 1);
}

#[test]
fn the_trace_names_digest_messages_and_assertions_that_are_lost() {
    let program = Switch::new("arrays").program;
    let engine = Engine::new(program.clone(), Options { max_digests: 1, ..Options::default() });
    let mut s = Switch { program, engine };
    let d = s.program.digest("learnt_t").unwrap();
    s.engine.digest_configure(d, Some(DigestConfig { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 0 }));
    s.engine.set_trace(true);
    let mut reasons = |what, index| -> Vec<String> {
        s.send(0, 1, &request(what, index, &[]));
        let reason = |event| if let TraceEvent::Drop(reason) = event { Some(reason) } else { None };
        s.engine.take_trace().into_iter().filter_map(reason).collect()
    };
    assert_eq!(reasons(9, 1), [""; 0]);
    assert_eq!(reasons(9, 2), ["digest message: 1 wait already"]);
    assert_eq!(reasons(10, 3), ["assert or assume failed"]);
}

#[test]
fn the_trace_covers_the_whole_way() {
    let mut s = Switch::new("arrays");
    s.engine.set_trace(true);
    s.one(0, &request(4, 2, &[]));
    let events: Vec<String> = s.engine.take_trace().iter().map(|e| format!("{e:?}")).collect();
    let has = |text: &str| assert!(events.iter().any(|e| e.contains(text)), "{text} is not in {events:#?}");
    for text in [
        "Ingress { port: 1",
        "ParserState(\"start\")",
        "Extract(\"request\")",
        "Condition { condition: \"hdr.request.what == 4\", value: true }",
        "Emit { port: 1",
    ] {
        has(text);
    }
    assert!(s.engine.take_trace().is_empty());
}
