//! TLS: the fuzzer's bytes are a ClientHello. The result must not depend on the size of the pieces in which they
//! arrive.

use std::sync::LazyLock;

use super::{Rules, outcome, rules};

static RULES: LazyLock<Rules> =
    LazyLock::new(|| rules("tls", r#"[{"name": "a", "match": {"sni": "*.example", "alpn": "h2"}, "to": "a"}]"#));

/// Runs one input: a byte for the size of the pieces, then the stream.
pub fn run(data: &[u8]) {
    let [step, stream @ ..] = data else { return };
    let at_once = outcome(&RULES, stream, stream.len().max(1));
    assert_eq!(at_once, outcome(&RULES, stream, usize::from(*step) + 1));
}
