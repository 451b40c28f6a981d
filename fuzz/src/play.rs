//! Applies packets and table changes from a script to both the compiled and the interpreted form of a program.

use std::fmt::Debug;
use std::sync::Arc;

use sluice_engine::{
    ActionCall, ActionId, CloneSession, Engine, Entry, EntryAction, Group, GroupMember, KeyField, KeyInfo, MatchKind,
    Member, MeterConfig, Of, OneShotMember, Options, Program, Replica, TableId,
};

use crate::Script;

/// A run fails if one packet produces this many frames, more than any program of the fuzz targets may produce.
const MOST_FRAMES: usize = 1 << 16;

/// Two engines of one program: the first runs machine code, the second interprets the program.
struct Both([Engine; 2]);

impl Both {
    fn new(program: &Arc<Program>) -> Both {
        let engine = |interpret| Engine::new(Arc::clone(program), Options { interpret, ..Options::default() });
        Both([engine(false), engine(true)])
    }

    fn program(&self) -> &Arc<Program> {
        self.0[0].program()
    }

    /// Applies an action to both engines, and asserts that the results are equal.
    fn both<T: PartialEq + Debug>(&mut self, mut act: impl FnMut(&mut Engine) -> T) -> T {
        let [compiled, interpreted] = &mut self.0;
        let (result, other) = (act(compiled), act(interpreted));
        assert_eq!(result, other, "compiled, interpreted");
        result
    }
}

/// Runs a script on a program: packets, and changes of all state that a controller may change.
pub fn play(program: &Arc<Program>, mut script: Script) {
    let mut engines = Both::new(program);
    engines.0[1].set_trace(script.byte() == 1);
    let tables: Vec<TableId> = program.tables().map(|(table, _)| table).collect();
    let mut now = 0;
    while !script.is_over() {
        now += 1_000 * script.below(1 << 16) as u64;
        match script.byte() % 16 {
            0..8 => {
                let port = script.below(600) as u32;
                let length = script.below(1 << 11);
                let frame = script.bytes(length);
                let frames = engines.both(|engine| {
                    let mut frames = Vec::new();
                    engine.receive(now, port, frame, &mut frames);
                    frames
                });
                assert!(frames.len() < MOST_FRAMES, "one packet became many");
                engines.0[1].take_trace();
                engines.both(Engine::take_digests);
            }
            8..12 if !tables.is_empty() => {
                let table = tables[script.below(tables.len())];
                change_table(&mut engines, &mut script, now, table);
            }
            12 => {
                let (group, replicas) = (script.below(8) as u32, replicas(&mut script));
                let _ = engines.both(|engine| engine.multicast_set(group, Some(&replicas)));
            }
            13 => {
                let (id, replicas) = (script.below(8) as u32, replicas(&mut script));
                let session = CloneSession { replicas, class_of_service: 0, packet_length_bytes: script.byte().into() };
                let _ = engines.both(|engine| engine.clone_session_set(id, Some(&session)));
            }
            14 => change_profile(&mut engines, &mut script),
            _ => {
                let (port, up) = (script.below(8) as u32, script.byte() % 2 == 0);
                engines.both(|engine| engine.set_port(port, up));
                engines.both(|engine| engine.take_idle(now));
            }
        }
    }
    engines.both(|engine| engine.drops());
    for table in tables {
        engines.both(|engine| engine.table_entries(table));
    }
}

fn replicas(script: &mut Script) -> Vec<Replica> {
    let count = script.below(4);
    (0..count).map(|_| Replica { port: script.below(520) as u32, instance: script.byte().into() }).collect()
}

fn change_table(engines: &mut Both, script: &mut Script, now: u64, table: TableId) {
    let info = engines.program().table_info(table).clone();
    let key: Vec<KeyField> = info.keys.iter().map(|key| key_field(script, key)).collect();
    let Some(call) = call(engines.program(), script, &info.actions) else { return };
    let action = match script.byte() % 4 {
        0 => EntryAction::OneShot(one_shot(script, &call).into()),
        1 => EntryAction::Group(script.below(4) as u32),
        _ => EntryAction::Call(call),
    };
    let priority = script.byte().into();
    let idle_timeout_ns = 1_000_000 * u64::from(script.byte());
    let entry = Entry { key, priority, action, metadata: Vec::new(), idle_timeout_ns, cookie: 0 };
    let kind = script.byte() % 5;
    let of = Of::Entry(&entry.key, priority);
    let (cir, pir) = (script.byte().into(), script.byte().into());
    let config = MeterConfig { cir, cburst: script.byte().into(), pir, pburst: script.byte().into() };
    let _ = engines.both(|engine| match kind {
        0 => engine.table_delete(table, &entry.key, priority),
        1 => engine.table_modify(now, table, &entry),
        2 => engine.table_set_default(table, Some(&entry.action)),
        3 => engine.direct_meter_write(now, table, of, Some(config)),
        _ => engine.table_insert(now, table, &entry),
    });
}

fn one_shot(script: &mut Script, call: &ActionCall) -> Vec<OneShotMember> {
    let member = |script: &mut Script| OneShotMember {
        call: call.clone(),
        weight: script.byte().into(),
        watch_port: watch_port(script),
    };
    (0..1 + script.below(3)).map(|_| member(script)).collect()
}

fn watch_port(script: &mut Script) -> Option<u32> {
    (script.byte() % 2 == 0).then(|| script.below(8) as u32)
}

fn change_profile(engines: &mut Both, script: &mut Script) {
    let program = Arc::clone(engines.program());
    let profiles: Vec<_> = program.tables().filter_map(|(table, info)| Some((table, info.profile?))).collect();
    let Some(&(table, profile)) = profiles.get(script.below(profiles.len())) else { return };
    let id = script.below(4) as u32;
    let kind = script.byte() % 3;
    if script.byte().is_multiple_of(2) {
        let Some(call) = call(&program, script, &program.table_info(table).actions) else { return };
        let member = Member { id, call };
        let _ = engines.both(|engine| match kind {
            0 => engine.member_delete(profile, id),
            1 => engine.member_modify(profile, &member),
            _ => engine.member_insert(profile, &member),
        });
        return;
    }
    let count = script.below(4);
    let member = |script: &mut Script| GroupMember {
        member: script.below(4) as u32,
        weight: script.byte().into(),
        watch_port: watch_port(script),
    };
    let members = (0..count).map(|_| member(script)).collect();
    let group = Group { id, max_size: script.byte().into(), members };
    let _ = engines.both(|engine| match kind {
        0 => engine.group_delete(profile, id),
        1 => engine.group_modify(profile, &group),
        _ => engine.group_insert(profile, &group),
    });
}

fn call(program: &Program, script: &mut Script, actions: &[ActionId]) -> Option<ActionCall> {
    let action = *actions.get(script.below(actions.len()))?;
    let params = program.action_info(action).params.iter();
    let params = params.map(|param| script.bytes(param.width.div_ceil(8) as usize % 20).to_vec()).collect();
    Some(ActionCall { action, params })
}

fn key_field(script: &mut Script, key: &KeyInfo) -> KeyField {
    let mut value = || script.bytes(key.width.div_ceil(8) as usize % 20).to_vec();
    match key.kind {
        MatchKind::Exact => KeyField::Exact(value()),
        MatchKind::Lpm => KeyField::Lpm { value: value(), prefix_len: u32::from(script.byte()) },
        MatchKind::Ternary => KeyField::Ternary { value: value(), mask: value() },
        MatchKind::Range => KeyField::Range { low: value(), high: value() },
        MatchKind::Optional => KeyField::Optional(script.byte().is_multiple_of(2).then(|| script.bytes(2).to_vec())),
    }
}
