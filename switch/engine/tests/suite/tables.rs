//! Tests match kinds, priorities, constant entries, and the direct counters and meters of entries.

use crate::common::{MS, SECOND, Switch, exact, lpm, range, ternary};
use sluice_engine::{ControlError, CounterData, EntryAction, KeyField, MatchKind, MeterConfig, Of};

/// The fields of a request to `tables.p4`. The program's answer consists of a table's result (or [`MISS`]) and of the
/// meter's colour.
#[derive(Default, Clone, Copy)]
struct Key {
    kind: u8,
    exact: u8,
    prefix: u32,
    ternary: u16,
    optional: u8,
    range: u16,
    wide: u128,
    number: i8,
}

fn request(s: &mut Switch, now: u64, k: Key) -> (u16, u8) {
    let mut f = vec![k.kind, k.exact];
    f.extend(k.prefix.to_be_bytes());
    f.extend((k.ternary << 4 | u16::from(k.optional)).to_be_bytes());
    f.extend(k.range.to_be_bytes());
    f.extend(k.wide.to_be_bytes());
    f.push(k.number as u8);
    let out = s.one(now, &f);
    (u16::from_be_bytes([out[0], out[1]]), out[2])
}

fn wide(v: u128) -> KeyField {
    KeyField::Exact(v.to_be_bytes().to_vec())
}

const MISS: u16 = 0xffff;

#[test]
fn a_program_describes_its_tables() {
    let s = Switch::new("tables");
    let info = s.program.table_info(s.table("ternary_t"));
    let keys: Vec<_> = info.keys.iter().map(|k| (k.name.as_str(), k.kind, k.width)).collect();
    // In BMv2's JSON, optional fields are written as ternary fields.
    let kind = MatchKind::Ternary;
    assert_eq!(keys, [("hdr.key.ternary", kind, 12), ("hdr.key.optional", kind, 4), ("hdr.key.number", kind, 8)]);
    assert!(info.needs_priority && !info.const_default && info.size == 20_000);
    let info = s.program.table_info(s.table("exact_t"));
    assert!(info.direct_counter && info.direct_meter.is_some() && info.support_timeout && !info.needs_priority);
    assert!(s.program.table_info(s.table("const_t")).const_entries);
}

#[test]
fn exact_entries_and_their_life() {
    let mut s = Switch::new("tables");
    let t = s.table("exact_t");
    let big = 1u128 << 127 | 1;
    let ask_wide = |s: &mut Switch, exact, wide| request(s, MS, Key { kind: 1, exact, wide, ..Key::default() }).0;
    assert_eq!(ask_wide(&mut s, 1, big), MISS);
    s.insert("exact_t", vec![exact(1), wide(big)], 0, "counted", &[5]);
    assert_eq!(ask_wide(&mut s, 1, big), 5);
    assert_eq!(ask_wide(&mut s, 1, 1), MISS);
    assert_eq!(ask_wide(&mut s, 2, big), MISS);

    let again = s.entry("exact_t", vec![exact(1), wide(big)], 0, "counted", &[6]);
    assert!(matches!(s.engine.table_insert(0, t, &again), Err(ControlError::AlreadyExists(_))));
    s.engine.table_modify(0, t, &again).unwrap();
    assert_eq!(ask_wide(&mut s, 1, big), 6);

    let view = s.engine.table_get(t, &again.key, 0).unwrap();
    assert_eq!(view.counter, Some(CounterData { packets: 2, bytes: 2 * 27 }));
    assert_eq!(view.entry.key, [KeyField::Exact(vec![1]), wide(big)]);
    let EntryAction::Call(call) = &view.entry.action else { panic!("{view:?}") };
    assert_eq!(call.params, [vec![0, 6]]);
    assert_eq!((view.entry.metadata.as_slice(), view.entry.cookie), (&b"m"[..], 7));

    for i in 2..5 {
        s.insert("exact_t", vec![exact(i), exact(0)], 0, "counted", &[i]);
    }
    let full = s.entry("exact_t", vec![exact(9), exact(0)], 0, "counted", &[9]);
    assert!(matches!(s.engine.table_insert(0, t, &full), Err(ControlError::ResourceExhausted(_))));
    s.engine.table_delete(t, &again.key, 0).unwrap();
    assert_eq!(ask_wide(&mut s, 1, big), MISS);
    assert!(matches!(s.engine.table_delete(t, &again.key, 0), Err(ControlError::NotFound(_))));
    assert_eq!(s.engine.table_entries(t).len(), 3);

    let default = EntryAction::Call(s.call(t, "counted", &[77]));
    s.engine.table_set_default(t, Some(&default)).unwrap();
    assert_eq!(ask_wide(&mut s, 1, big), 77);
    s.engine.table_set_default(t, None).unwrap();
    assert_eq!(ask_wide(&mut s, 1, big), MISS);
}

#[test]
fn wrong_requests_change_nothing_and_state_the_reason() {
    let mut s = Switch::new("tables");
    let t = s.table("exact_t");
    let insert = |s: &mut Switch, key, action: &str, params: &[u64]| {
        let e = s.entry("exact_t", key, 0, action, params);
        s.engine.table_insert(0, t, &e).unwrap_err().to_string()
    };
    assert_eq!(
        insert(&mut s, vec![exact(256), exact(0)], "counted", &[1]),
        "invalid argument: key field 'hdr.key.exact': the value needs 9 bits, there are 8; give one that fits"
    );
    assert_eq!(
        insert(&mut s, vec![exact(1)], "counted", &[1]),
        "invalid argument: the key of table I.exact_t has 2 fields, 1 are given; give one of each"
    );
    assert_eq!(
        insert(&mut s, vec![exact(1), exact(0)], "counted", &[65_536]),
        "invalid argument: parameter 'value' of action 'I.counted': the value needs 17 bits, there are 16; give one that fits"
    );
    assert_eq!(
        insert(&mut s, vec![lpm(1, 1), exact(0)], "counted", &[1]),
        "invalid argument: key field 'hdr.key.exact': the match kind is wrong; give exact"
    );
    let foreign = s.call(s.table("lpm_t"), "answer", &[1]);
    let e = crate::common::entry(vec![exact(1), exact(0)], 0, EntryAction::Call(foreign));
    assert!(matches!(s.engine.table_insert(0, t, &e), Err(ControlError::InvalidArgument(_))));
    assert_eq!(s.engine.table_len(t), 0);
    let c = s.table("const_t");
    let e = s.entry("const_t", vec![ternary(0, 0), range(0, 1)], 1, "answer", &[1]);
    assert!(matches!(s.engine.table_insert(0, c, &e), Err(ControlError::PermissionDenied(_))));
    assert!(matches!(s.engine.table_set_default(c, None), Err(ControlError::PermissionDenied(_))));
}

#[test]
fn the_longest_prefix_wins_among_ten_thousand() {
    let mut s = Switch::new("tables");
    for i in 0..10_000u64 {
        s.insert("lpm_t", vec![exact(1), lpm(i << 16, 16)], 0, "answer", &[i & 0xff]);
    }
    s.insert("lpm_t", vec![exact(1), lpm(0, 0)], 0, "answer", &[1000]);
    s.insert("lpm_t", vec![exact(1), lpm(0x0007_0800, 24)], 0, "answer", &[2000]);
    s.insert("lpm_t", vec![exact(1), lpm(0x0007_0809, 32)], 0, "answer", &[3000]);
    let mut at = |exact, prefix| request(&mut s, 0, Key { kind: 2, exact, prefix, ..Key::default() }).0;
    assert_eq!(at(1, 0x0007_0809), 3000);
    assert_eq!(at(1, 0x0007_0808), 2000);
    assert_eq!(at(1, 0x0007_0908), 7);
    assert_eq!(at(1, 0x0fff_0000), 0xff);
    assert_eq!(at(1, 0xffff_0000), 1000);
    // The program continues at different nodes after a hit and after a miss.
    assert_eq!(at(2, 0x0007_0809), 0xfffe);
}

#[test]
fn ternary_and_optional_fields_by_priority() {
    let mut s = Switch::new("tables");
    let any = || KeyField::Optional(None);
    s.insert("ternary_t", vec![ternary(0x120, 0xff0), any(), any()], 10, "answer", &[1]);
    s.insert("ternary_t", vec![ternary(0x123, 0xfff), any(), any()], 5, "answer", &[2]);
    s.insert("ternary_t", vec![any(), KeyField::Optional(Some(vec![3])), any()], 20, "answer", &[3]);
    s.insert("ternary_t", vec![any(), any(), ternary(0xfe, 0xff)], 30, "answer", &[4]);
    // After the action 'answer', the program's `switch (t.apply().action_run)` adds 0x100 to the value.
    let mut at =
        |ternary, optional, number| request(&mut s, 0, Key { kind: 3, ternary, optional, number, ..Key::default() }).0;
    assert_eq!(at(0x123, 0, 0), 0x101);
    assert_eq!(at(0x123, 3, 0), 0x103);
    assert_eq!(at(0x123, 3, -2), 0x104);
    assert_eq!(at(0x133, 0, 0), MISS);
    let t = s.table("ternary_t");
    let views = s.engine.table_entries(t);
    assert_eq!(views[0].entry.key[1], KeyField::Optional(None));
    assert_eq!(views[2].entry.key[1], KeyField::Optional(Some(vec![3])));
    assert_eq!(views[1].entry.priority, 5);
    // An entry with the same key and another priority is a different entry.
    s.engine.table_delete(t, &views[0].entry.key, 10).unwrap();
    assert_eq!(request(&mut s, 0, Key { kind: 3, ternary: 0x123, ..Key::default() }).0, 0x102);
}

#[test]
fn ranges() {
    let mut s = Switch::new("tables");
    let low_half = KeyField::Ternary { value: vec![5], mask: u64::MAX.to_be_bytes().to_vec() };
    s.insert("range_t", vec![range(100, 200), KeyField::Optional(None)], 1, "answer", &[1]);
    s.insert("range_t", vec![range(150, 65_535), KeyField::Optional(None)], 2, "answer", &[2]);
    s.insert("range_t", vec![KeyField::Optional(None), low_half], 3, "answer", &[3]);
    let mut at = |range, wide| request(&mut s, 0, Key { kind: 4, range, wide, ..Key::default() }).0;
    assert_eq!([at(99, 0), at(100, 0), at(149, 0), at(150, 0), at(65_535, 0)], [MISS, 1, 1, 2, 2]);
    assert_eq!(at(0, 9 << 64 | 5), 3);
    let e = s.entry("range_t", vec![range(2, 1), KeyField::Optional(None)], 1, "answer", &[1]);
    assert!(s.engine.table_insert(0, s.table("range_t"), &e).is_err());
}

#[test]
fn entries_of_the_program() {
    let mut s = Switch::new("tables");
    let mut at = |ternary, range| request(&mut s, 0, Key { kind: 5, ternary, range, ..Key::default() }).0;
    assert_eq!([at(0x1ff, 10), at(0x1ff, 20), at(0x1ff, 21), at(0x1ff, 31), at(0x2ff, 15)], [1, 1, 2, 3, 3]);
    let views = s.engine.table_entries(s.table("const_t"));
    assert_eq!(views.len(), 3);
    assert!(views.iter().all(|v| v.is_const) && views[0].entry.priority > views[1].entry.priority);
    assert_eq!(views[0].entry.key[0], KeyField::Ternary { value: vec![1, 0], mask: vec![0x0f, 0] });
}

#[test]
fn direct_meters_and_idle_times() {
    let mut s = Switch::new("tables");
    let t = s.table("exact_t");
    let mut e = s.entry("exact_t", vec![exact(1), exact(0)], 0, "counted", &[1]);
    e.idle_timeout_ns = SECOND;
    s.engine.table_insert(10 * SECOND, t, &e).unwrap();
    let key = Key { kind: 1, exact: 1, ..Key::default() };
    assert_eq!(request(&mut s, 10 * SECOND, key), (1, 0));
    let config = MeterConfig { cir: 1, cburst: 1, pir: 1, pburst: 2 };
    let of = Of::Entry(&e.key, 0);
    s.engine.direct_meter_write(10 * SECOND, t, of, Some(config)).unwrap();
    let colours: Vec<u8> = (0..3).map(|_| request(&mut s, 10 * SECOND, key).1).collect();
    assert_eq!(colours, [0, 1, 2]);
    let meter = s.engine.table_get(t, &e.key, 0).unwrap().meter.unwrap();
    assert_eq!(meter.config, Some(config));
    assert_eq!(meter.counts.map(|colour| colour.packets), [2, 1, 1], "one of the green ones before the configuration");
    assert!(s.engine.direct_meter_write(0, t, of, Some(MeterConfig { pir: 0, ..config })).is_err());

    assert!(s.engine.take_idle(11 * SECOND - 1).is_empty());
    let idle = s.engine.take_idle(11 * SECOND);
    assert_eq!(idle.len(), 1);
    assert_eq!((idle[0].0, idle[0].1.last_hit), (t, 10 * SECOND));
    assert!(s.engine.take_idle(12 * SECOND - 1).is_empty(), "reported once");
    assert_eq!(s.engine.take_idle(12 * SECOND).len(), 1, "reported again after another timeout");
    request(&mut s, 20 * SECOND, key);
    assert!(s.engine.take_idle(21 * SECOND - 1).is_empty());
    assert_eq!(s.engine.take_idle(21 * SECOND).len(), 1, "and after a match");

    s.engine.direct_counter_write(t, of, CounterData { packets: 100, bytes: 1 }).unwrap();
    request(&mut s, 22 * SECOND, key);
    assert_eq!(s.engine.table_get(t, &e.key, 0).unwrap().counter, Some(CounterData { packets: 101, bytes: 28 }));
}

#[test]
fn default_entries_count_and_meter_misses() {
    let mut s = Switch::new("tables");
    let t = s.table("exact_t");
    let miss = Key { kind: 1, exact: 9, ..Key::default() };
    request(&mut s, 0, miss);
    request(&mut s, 0, miss);
    let view = s.engine.table_default(t);
    assert_eq!(view.counter.unwrap().packets, 2);
    let meter = view.meter.unwrap();
    assert_eq!((meter.config, meter.counts[0].packets), (None, 0), "without a configuration the meter does not run");

    let config = MeterConfig { cir: 1, cburst: 1, pir: 1, pburst: 2 };
    s.engine.direct_meter_write(0, t, Of::Default, Some(config)).unwrap();
    let colours: Vec<u8> = (0..3).map(|_| request(&mut s, 0, miss).1).collect();
    assert_eq!(colours, [0, 1, 2]);
    let saved = s.engine.default_save(t);
    s.engine.direct_meter_clear_counts(t, Of::Default).unwrap();
    s.engine.direct_counter_write(t, Of::Default, CounterData::default()).unwrap();
    s.engine.default_restore(saved).unwrap();
    let view = s.engine.table_default(t);
    assert_eq!(view.counter.unwrap().packets, 5);
    assert_eq!(view.meter.unwrap().counts.map(|colour| colour.packets), [1, 1, 1]);
}
