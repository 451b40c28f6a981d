//! JSON: any bytes as a document. What `serde_json` reads, a rule finds; what it takes for malformed is refused.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{DEPTH, Found, look, step};

/// One input: which value, the size of pieces, the document.
pub fn run(data: &[u8]) {
    let [which, size, document @ ..] = data else { return };
    let size = usize::from(*size) + 1;
    if document.is_empty() {
        return;
    }
    let absent = look("json", "absent.anyhow", json!("x"), document, size);
    if absent == Found::Yes {
        return; // there it is after all, and reading has ended with it
    }
    if serde_json::from_slice::<IgnoredAny>(document).is_err() {
        assert_eq!(absent, Found::Malformed, "malformed JSON");
    }
    let Ok(value) = serde_json::from_slice::<Value>(document) else { return };
    if depth(&value) > DEPTH {
        return assert_eq!(absent, Found::Malformed, "deep JSON");
    }
    assert_ne!(absent, Found::Malformed, "well-formed JSON");
    let mut leaves = Vec::new();
    collect(&value, "", &mut leaves);
    if let Some((path, form)) = leaves.get(usize::from(*which) % leaves.len().max(1)) {
        assert_eq!(look("json", path, form.clone(), document, size), Found::Yes, "{path} {form}");
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// All values with the forms that they satisfy. A number beyond 64 bits is only there: `serde_json` rounds it otherwise.
fn collect(value: &Value, path: &str, leaves: &mut Vec<(String, Value)>) {
    let below = |name: &str| Some(format!("{path}{}{}", if path.is_empty() { "" } else { "." }, step(name)?));
    let form = match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &below(&index.to_string()).unwrap_or_default(), leaves);
            }
            return;
        }
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(path) = below(name) {
                    collect(member, &path, leaves);
                }
            }
            return;
        }
        Value::Null => json!("null"),
        Value::Bool(is) => json!(is.to_string()),
        Value::Number(number) if number.is_f64() => json!({"present": true}),
        Value::Number(number) => json!(format!("= {number}")),
        Value::String(text) => json!({"exact": text}),
    };
    if !path.is_empty() {
        leaves.push((path.to_owned(), form));
    }
}
