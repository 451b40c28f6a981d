//! A cursor over the JSON that records the path to its current value, so that every error can report this path.

use num_bigint::{BigInt, Sign};
use serde_json::Value;

use crate::error::LoadError;

/// The remedy for JSON that is incomplete or contains a contradiction.
pub const RECOMPILE: &str = "p4c-bm2-ss does not write this: compile the program again";
/// The remedy for a field, parameter or cell that is too wide.
pub const NARROWER: &str = "give it 1 to 65,536 bits in the program";
/// The remedy for a feature that does not belong to v1model.
const V1MODEL: &str = "this is not of v1model: write the program for v1model and compile it with p4c-bm2-ss";

pub type Result<T> = std::result::Result<T, LoadError>;

/// The maximum nesting of arrays and objects, which is also BMv2's limit. Each operation within an expression adds two
/// levels.
const MAX_NESTING: usize = 1000;

/// Parses the program's JSON, which must contain a single value.
pub fn parse(bytes: &[u8]) -> Result<Value> {
    let document = J::root(&Value::Null);
    if nesting(bytes) > MAX_NESTING {
        let text = format!("arrays and objects are nested more than {MAX_NESTING} deep");
        return Err(document.refused(text, "assign parts of long expressions to variables first"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let values: Vec<Value> = reader
        .into_iter()
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| document.error(format!("this is not JSON: {e}")))?;
    let single = <[Value; 1]>::try_from(values);
    single
        .map(|[value]| value)
        .map_err(|values| document.error(format!("these are {} JSON values instead of one", values.len())))
}

/// Returns the depth to which arrays and objects are nested.
fn nesting(bytes: &[u8]) -> usize {
    let (mut depth, mut most) = (0usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// A JSON value, with the path from the document's root to this value.
#[derive(Clone)]
pub struct J<'a> {
    pub value: &'a Value,
    path: String,
    object: Option<(&'static str, &'a str)>,
    source: Option<&'a Value>,
}

impl<'a> J<'a> {
    pub fn root(value: &'a Value) -> Self {
        J { value, path: String::new(), object: None, source: None }
    }

    fn child(&self, value: &'a Value, key: &str) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        let source = value.get("source_info").filter(|s| s.is_object()).or(self.source);
        let list = self.path.rsplit('/').next().and_then(kind);
        let object = list.zip(value.get("name").and_then(Value::as_str)).or(self.object);
        J { value, path: format!("{}/{key}", self.path), object, source }
    }

    /// Returns an error at this place, for a value that contradicts another value or has the wrong form.
    pub fn error(&self, reason: impl Into<String>) -> LoadError {
        self.refused(reason, RECOMPILE)
    }

    /// Returns an error at this place, for a feature that neither v1model nor this switch has.
    pub fn unknown(&self, reason: impl Into<String>) -> LoadError {
        self.refused(reason, V1MODEL)
    }

    /// Returns an error at this place, with a reason and a remedy.
    pub fn refused(&self, reason: impl Into<String>, remedy: &'static str) -> LoadError {
        LoadError {
            path: if self.path.is_empty() { "/".into() } else { self.path.clone() },
            object: self.object.map(|(kind, name)| format!("{kind} '{name}'")),
            reason: reason.into(),
            remedy,
            source_info: self.source.map(source_text),
        }
    }

    /// Returns the P4 source text of the closest enclosing object for which the JSON contains the source text; `None`
    /// if there is no such object.
    pub fn source_fragment(&self) -> Option<String> {
        Some(self.source?.get("source_fragment")?.as_str()?.to_string())
    }

    /// Returns the member `key`; returns `None` if the member is missing or null.
    pub fn opt(&self, key: &str) -> Option<J<'a>> {
        self.value.get(key).filter(|v| !v.is_null()).map(|v| self.child(v, key))
    }

    pub fn get(&self, key: &str) -> Result<J<'a>> {
        self.value.get(key).map(|v| self.child(v, key)).ok_or_else(|| self.error(format!("'{key}' is missing")))
    }

    pub fn at(&self, index: usize) -> Result<J<'a>> {
        self.value
            .get(index)
            .map(|v| self.child(v, &index.to_string()))
            .ok_or_else(|| self.error(format!("the array has no element {index}")))
    }

    /// Returns the elements of the array in the member `key`; returns no elements if the member is missing or null.
    pub fn list(&self, key: &str) -> Result<Vec<J<'a>>> {
        self.opt(key).map_or(Ok(Vec::new()), |j| j.items())
    }

    pub fn items(&self) -> Result<Vec<J<'a>>> {
        let array = self.value.as_array().ok_or_else(|| self.error("an array is expected"))?;
        Ok(array.iter().enumerate().map(|(i, v)| self.child(v, &i.to_string())).collect())
    }

    /// Returns the element called `name` of the array in the member `list`, with the element's index.
    pub fn named(&self, list: &str, name: &str) -> Result<(usize, J<'a>)> {
        let (at, kind) = (self.get(list)?, kind(list).unwrap_or("element"));
        let mut items = at.items()?.into_iter().enumerate();
        let element = items.find(|(_, j)| j.value.get("name").and_then(Value::as_str) == Some(name));
        element.ok_or_else(|| at.error(format!("there is no {kind} '{name}'")))
    }

    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    pub fn as_str(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.error("a string is expected"))
    }

    /// Returns the string in quotation marks, for an error message.
    pub fn quoted(&self) -> String {
        format!("'{}'", self.value.as_str().unwrap_or_default())
    }

    pub fn as_u64(&self) -> Result<u64> {
        self.value.as_u64().ok_or_else(|| self.error("a non-negative integer is expected"))
    }

    pub fn as_u32(&self) -> Result<u32> {
        u32::try_from(self.as_u64()?).map_err(|_| self.error("the number is too large"))
    }

    pub fn as_bool(&self) -> Result<bool> {
        match self.value {
            Value::Bool(b) => Ok(*b),
            Value::Number(n) if n.as_u64() == Some(0) => Ok(false),
            Value::Number(n) if n.as_u64() == Some(1) => Ok(true),
            _ => Err(self.error("a boolean is expected")),
        }
    }

    pub fn str(&self, key: &str) -> Result<&'a str> {
        self.get(key)?.as_str()
    }

    pub fn u32(&self, key: &str) -> Result<u32> {
        self.get(key)?.as_u32()
    }

    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool> {
        self.opt(key).map_or(Ok(default), |j| j.as_bool())
    }

    /// Reads a hexadecimal string. The prefix `0x` and a minus sign before it are optional.
    pub fn as_hex(&self) -> Result<BigInt> {
        let text = self.as_str()?;
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        let n = BigInt::parse_bytes(digits.as_bytes(), 16)
            .filter(|n| n.sign() != Sign::Minus && !digits.starts_with('+'))
            .ok_or_else(|| self.error("a hexadecimal string is expected"))?;
        Ok(if negative { -n } else { n })
    }

    pub fn hex(&self, key: &str) -> Result<BigInt> {
        self.get(key)?.as_hex()
    }

    /// Reads a pair of strings, such as a field reference.
    pub fn as_pair(&self) -> Result<(&'a str, &'a str)> {
        match self.value.as_array().map(Vec::as_slice) {
            Some([Value::String(a), Value::String(b)]) => Ok((a, b)),
            _ => Err(self.error("a pair of names is expected")),
        }
    }
}

/// Returns the word by which error messages call the elements of a list in p4c's JSON; `None` if there is no word for
/// this list.
fn kind(list: &str) -> Option<&'static str> {
    Some(match list {
        "action_calls" => "action call",
        "action_profiles" => "action profile",
        "actions" => "action",
        "calculations" => "calculation",
        "checksums" => "checksum",
        "conditionals" => "condition",
        "counter_arrays" => "counter",
        "deparsers" => "deparser",
        "extern_instances" => "extern instance",
        "header_stacks" => "header stack",
        "header_types" => "header type",
        "header_union_stacks" => "header union stack",
        "header_union_types" => "header union type",
        "header_unions" => "header union",
        "headers" => "header",
        "learn_lists" => "digest",
        "meter_arrays" => "meter",
        "parse_states" => "parser state",
        "parse_vsets" => "value set",
        "parsers" => "parser",
        "pipelines" => "pipeline",
        "register_arrays" => "register",
        "tables" => "table",
        _ => return None,
    })
}

fn source_text(source: &Value) -> String {
    let text = |key| source.get(key).and_then(Value::as_str).unwrap_or("");
    let line = source.get("line").and_then(Value::as_u64).unwrap_or(0);
    let fragment = text("source_fragment");
    if fragment.is_empty() {
        format!("{}({line})", text("filename"))
    } else {
        format!("{}({line}): {fragment}", text("filename"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_names_its_place_and_source() {
        let v =
            json!({"a": [{"source_info": {"filename": "x.p4", "line": 3, "source_fragment": "f()"}, "b/c": {"d": 1}}]});
        let e = J::root(&v).get("a").unwrap().at(0).unwrap().get("b/c").unwrap().str("d").unwrap_err();
        assert_eq!(e.to_string(), format!("/a/0/b~1c/d: a string is expected; {RECOMPILE} [x.p4(3): f()]"));
    }

    #[test]
    fn an_error_names_the_object_around_its_place() {
        let v = json!({"pipelines": [{"name": "ingress", "tables": [{"name": "I.t", "key": [{"name": "k"}]}]}]});
        let pipelines = J::root(&v).get("pipelines").unwrap();
        let key = pipelines.at(0).unwrap().get("tables").unwrap().at(0).unwrap().get("key").unwrap();
        let e = key.at(0).unwrap().str("match_type").unwrap_err();
        assert_eq!((e.path.as_str(), e.object.as_deref()), ("/pipelines/0/tables/0/key/0", Some("table 'I.t'")));
        assert_eq!(pipelines.at(0).unwrap().error("").object.as_deref(), Some("pipeline 'ingress'"));
        assert_eq!(pipelines.error("").object, None);
    }

    #[test]
    fn hexadecimal_strings() {
        for (text, value) in [("0x0a", 10), ("ff", 255), ("-0x01", -1)] {
            let v = json!(text);
            assert_eq!(J::root(&v).as_hex().unwrap(), BigInt::from(value));
        }
        for text in ["", "0x", "xyz", "--1", "+1", "0x-1"] {
            let v = json!(text);
            assert!(J::root(&v).as_hex().is_err(), "{text}");
        }
    }
}
