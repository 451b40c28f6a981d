//! Runs packets and table changes on sluice's own P4 program.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use sluice_engine::Program;
use sluice_fuzz::{Script, play};

static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
    Arc::new(Program::load(include_bytes!("../../p4src/build/sluice.json")).expect("sluice's program loads"))
});

fuzz_target!(|data: &[u8]| play(&PROGRAM, Script(data)));
