//! Runs packets and table changes on programs other than sluice's: on the programs of the tests, and on the JSON files
//! in the folder that the environment variable SLUICE_FUZZ_PROGRAMS names.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use sluice_engine::Program;
use sluice_fuzz::{Script, play};

static PROGRAMS: LazyLock<Vec<Arc<Program>>> = LazyLock::new(|| {
    let own = [
        &include_bytes!("../../switch/engine/tests/p4/tables.json")[..],
        include_bytes!("../../switch/engine/tests/p4/selector.json"),
        include_bytes!("../../switch/engine/tests/p4/arrays.json"),
        include_bytes!("../../switch/engine/tests/p4/paths.json"),
        include_bytes!("../../crates/p4runtime/tests/p4/everything.json"),
    ];
    let mut programs: Vec<_> = own.iter().map(|json| Program::load(json).expect("a test's program loads")).collect();
    if let Some(folder) = std::env::var_os("SLUICE_FUZZ_PROGRAMS") {
        let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        programs.extend(paths.iter().filter_map(|path| Program::load(&std::fs::read(path).ok()?).ok()));
    }
    programs.into_iter().map(Arc::new).collect()
});

fuzz_target!(|data: &[u8]| {
    let mut script = Script(data);
    let program = script.below(PROGRAMS.len());
    play(&PROGRAMS[program], script);
});
