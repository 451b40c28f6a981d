//! The deparser: the headers that it writes, and what it does before.

use super::expr::Scope;
use super::json::{J, Result};
use super::primitive::Context;
use crate::code::Op;
use crate::codegen::Gen;
use crate::layout::Layout;

/// What p4c makes of a deparser's calls, and what a deparser can do without touching the headers, whose place BMv2 has set aside by then.
const PRIMITIVES: [&str; 6] =
    ["assert", "assume", "log_msg", "modify_field_rng_uniform", "modify_field_with_hash_based_offset", "truncate"];

fn find<'j>(root: &J<'j>) -> Result<J<'j>> {
    root.named("deparsers", "deparser").map(|found| found.1)
}

/// The headers, in their order.
pub fn order(root: &J, layout: &Layout) -> Result<Vec<u16>> {
    let scope = Scope { layout, params: &[] };
    find(root)?.list("order")?.iter().map(|j| scope.header(j).map(|h| h as u16)).collect()
}

/// The primitives, which run when the checksums are updated and the headers are still to be written.
pub fn primitives<'j>(root: &J<'j>, g: &mut Gen<'_, 'j>, context: &Context) -> Result<()> {
    let primitives = find(root)?.list("primitives")?;
    let start = g.pc();
    for j in &primitives {
        let op = j.get("op")?;
        match op.as_str()? {
            // digests are made at the end of ingress: one that is asked for here is lost, as on BMv2
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
