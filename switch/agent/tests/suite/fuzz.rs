//! The fuzz targets' seeds, and what has once failed there.

#[path = "../../../fuzz/src/agent.rs"]
mod agent;
#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/orders.rs"]
mod orders;
#[path = "../../../fuzz/src/script.rs"]
mod script;

#[test]
fn connections() {
    corpus::run("agent", agent::run);
}

#[test]
fn splice_orders() {
    corpus::run("orders", orders::run);
}
