//! Runs a target on its seeds, which include inputs that failed earlier, and on mutations of each seed. The run shows
//! that the target works, but does not search for new failures.

use std::path::Path;

const CHANGES: u64 = 60;

/// Runs a target on all of its seeds and on `CHANGES` mutations of each seed.
pub fn run(target: &str, run: fn(&[u8])) {
    // The search starts at the crate's folder, because crates at different depths of the repository include this file.
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|ancestor| ancestor.join("fuzz/seeds"));
    let folder = above.find(|seeds| seeds.is_dir()).expect("the folder of seeds").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).expect("seeds").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no seed", folder.display());
    for path in paths {
        let seed = std::fs::read(&path).expect("a seed");
        for change in 0..=CHANGES {
            let input = if change == 0 { seed.clone() } else { changed(&seed, change) };
            if let Err(panic) = std::panic::catch_unwind(|| run(&input)) {
                eprintln!("{target}, change {change} of {}: {input:?}", path.display());
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Mutates a seed: truncates it, or replaces, repeats or removes some bytes. Equal values of `number` give equal
/// mutations.
fn changed(seed: &[u8], number: u64) -> Vec<u8> {
    let mut state = number;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound.max(1)
    };
    let mut input = seed.to_vec();
    for _ in 0..1 + below(3) {
        let (at, length) = (below(input.len()), 1 + below(4));
        let end = (at + length).min(input.len());
        match below(4) {
            0 => input.truncate(at),
            1 => input[at..end].iter_mut().for_each(|byte| *byte = below(256) as u8),
            2 => input.extend_from_within(at..end),
            _ => drop(input.drain(at..end)),
        }
    }
    input
}
