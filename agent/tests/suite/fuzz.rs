//! Runs the fuzz targets of the agent on their seed inputs, and on inputs that have failed before.

#[path = "../../../fuzz/src/agent.rs"]
mod agent;
#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/guard/mod.rs"]
mod guard;
#[path = "../../../fuzz/src/orders.rs"]
mod orders;
#[path = "../../../fuzz/src/script.rs"]
mod script;

const CONVERSATIONS: u64 = 5_000;

#[test]
fn connections() {
    corpus::run("agent", agent::run);
}

#[test]
fn splice_orders() {
    corpus::run("orders", orders::run);
}

#[test]
fn guarded_conversations() {
    corpus::run("guard", guard::run);
}

/// Runs thousands of random conversations, in which no refused request may reach a server. Asserts that the
/// conversations are not trivial: servers receive requests, and connections are spliced and closed.
#[test]
fn nothing_that_rules_refuse_reaches_a_server() {
    let (mut served, mut spliced, mut closed) = (0, 0, 0);
    for seed in 0..CONVERSATIONS {
        let mut rng = crate::support::world::Rng(seed);
        let script: Vec<u8> = (0..64 + rng.below(192)).map(|_| rng.next() as u8).collect();
        let outcome = std::panic::catch_unwind(|| guard::converse(&script)).unwrap_or_else(|panic| {
            eprintln!("seed {seed}: {script:?}");
            std::panic::resume_unwind(panic)
        });
        served += outcome.served;
        spliced += u64::from(outcome.is_spliced);
        closed += u64::from(outcome.is_closed);
    }
    assert!(served as u64 > CONVERSATIONS, "{served}");
    assert!(spliced > CONVERSATIONS / 20 && closed > CONVERSATIONS / 2, "{spliced}, {closed}");
}
