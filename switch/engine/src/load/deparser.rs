//! Loads the deparser: the order in which it writes headers, and the primitives that run before it writes them.

use super::expr::Scope;
use super::json::{J, Result};
use super::primitive::Context;
use crate::code::Op;
use crate::codegen::Gen;
use crate::layout::Layout;

/// The primitives that a deparser may call. p4c generates these primitives for calls in a deparser. A primitive that
/// changes a header's length is not among them, because BMv2 reserves the headers' bytes before the primitives run.
const PRIMITIVES: [&str; 6] =
    ["assert", "assume", "log_msg", "modify_field_rng_uniform", "modify_field_with_hash_based_offset", "truncate"];

fn find<'j>(root: &J<'j>) -> Result<J<'j>> {
    root.named("deparsers", "deparser").map(|(_, deparser)| deparser)
}

/// Returns the headers in the order in which the deparser writes them.
pub fn order(root: &J, layout: &Layout) -> Result<Vec<u16>> {
    let scope = Scope { layout, params: &[] };
    find(root)?.list("order")?.iter().map(|j| scope.header(j).map(|h| h as u16)).collect()
}

/// Compiles the deparser's primitives, which run after the checksums are updated and before the headers are written.
pub fn primitives<'j>(root: &J<'j>, g: &mut Gen<'_, 'j>, context: &Context) -> Result<()> {
    let primitives = find(root)?.list("primitives")?;
    let start = g.pc();
    for j in &primitives {
        let op = j.get("op")?;
        match op.as_str()? {
            // Digests are sent at the end of ingress. A digest that the deparser generates is therefore lost; BMv2
            // loses it too.
            "generate_digest" => {}
            name if PRIMITIVES.contains(&name) => {
                g.free_temps();
                context.primitive(g, j)?;
            }
            name => {
                let text = format!("'{name}' is not supported in the deparser");
                return Err(op.refused(text, "do it at the end of the egress control"));
            }
        }
    }
    if !primitives.is_empty() {
        g.emit(Op::Return);
        g.code.deparser = Some(start);
    }
    Ok(())
}
