//! Tests the older JSON format of BMv2, which BMv2's own test data uses: tables refer to actions by name and contain
//! their action profiles.

use serde_json::{Value, json};
use sluice_engine::{EntryAction, OneShotGroup, OneShotMember, Program};

use crate::common::{self, MS, Switch, entry, exact};

fn tree(name: &str) -> Value {
    serde_json::from_slice(&common::json(name)).unwrap()
}

/// Converts the JSON of a current program to the older format.
fn older(mut program: Value) -> Value {
    for pipeline in program["pipelines"].as_array_mut().unwrap() {
        let profiles = pipeline.as_object_mut().unwrap().remove("action_profiles").unwrap_or_default();
        for table in pipeline["tables"].as_array_mut().unwrap() {
            let table = table.as_object_mut().unwrap();
            table.remove("action_ids");
            let Some(name) = table.remove("action_profile") else { continue };
            let profile = profiles.as_array().unwrap().iter().find(|profile| profile["name"] == name).unwrap();
            if let Some(selector) = profile.get("selector") {
                table.insert("selector".into(), selector.clone());
            }
            table.insert("act_prof_name".into(), name);
        }
    }
    program
}

#[test]
fn actions_are_looked_up_by_name() {
    let [mut current, _] = Switch::both_of(&tree("tables"));
    for mut switch in Switch::both_of(&older(tree("tables"))) {
        let mut emitted = 0;
        for i in 0..2_000u64 {
            let frame: Vec<u8> = (0..40).map(|at| ((i * 31 + at * 7) >> (at % 5)) as u8 & 3).collect();
            let out = switch.send(i * MS, (i % 4) as u32, &frame);
            emitted += out.len();
            assert_eq!(out, current.send(i * MS, (i % 4) as u32, &frame), "{frame:02x?}");
        }
        assert!(emitted > 0, "no packet came out");
        [current, _] = Switch::both_of(&tree("tables"));
    }
}

#[test]
fn a_table_contains_its_profile_and_selector() {
    let [mut current, _] = Switch::both_of(&tree("selector"));
    let [mut older, _] = Switch::both_of(&older(tree("selector")));
    let mut ports = std::collections::BTreeSet::new();
    for switch in [&mut current, &mut older] {
        let table = switch.table("choose");
        let member = |port: u64| OneShotMember {
            call: switch.call(table, "forward", &[port]),
            weight: port as u32,
            watch_port: None,
        };
        let group = OneShotGroup { members: (1..4).map(member).collect(), ..OneShotGroup::default() };
        let group = entry(vec![exact(1)], 0, EntryAction::OneShot(group));
        switch.engine.table_insert(0, table, &group).unwrap();
    }
    for source in 0..200u32 {
        let frame = [&[1][..], &source.to_be_bytes(), &80u16.to_be_bytes()].concat();
        let out = older.send(0, 1, &frame);
        ports.extend(out.iter().map(|sent| sent.0));
        assert_eq!(out, current.send(0, 1, &frame));
    }
    assert_eq!(ports.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_name_that_no_action_or_two_profiles_have_is_refused() {
    let refused = |program: &Value| match Program::load(&serde_json::to_vec(program).unwrap()) {
        Ok(_) => panic!("the program is loaded"),
        Err(error) => error.to_string(),
    };
    let mut program = older(tree("selector"));
    program["pipelines"][0]["tables"][1]["actions"][0] = json!("nothing");
    assert!(refused(&program).contains("/tables/1/actions/0 (table 'I.pick'): there is no action 'nothing'; "));
    let mut program = older(tree("selector"));
    program["pipelines"][0]["tables"][2]["act_prof_name"] = json!("I.plain");
    assert!(
        refused(&program).contains("/act_prof_name (table 'I.choose'): the name of this action profile is taken; ")
    );
}
