//! Walking the JSON while remembering where one is, so that every error names its place.

use num_bigint::{BigInt, Sign};
use serde_json::Value;

use crate::error::LoadError;

pub type Result<T> = std::result::Result<T, LoadError>;

/// A value and the way to it.
#[derive(Clone)]
pub struct J<'a> {
    pub value: &'a Value,
    path: String,
    source: Option<&'a Value>,
}

impl<'a> J<'a> {
    pub fn root(value: &'a Value) -> Self {
        J { value, path: String::new(), source: None }
    }

    fn child(&self, value: &'a Value, key: &str) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        let source = value.get("source_info").filter(|s| s.is_object()).or(self.source);
        J { value, path: format!("{}/{key}", self.path), source }
    }

    /// An error at this place.
    pub fn error(&self, reason: impl Into<String>) -> LoadError {
        LoadError {
            path: if self.path.is_empty() { "/".into() } else { self.path.clone() },
            reason: reason.into(),
            source_info: self.source.map(source_text),
        }
    }

    /// The enclosing source fragment, if the JSON carries one.
    pub fn source_fragment(&self) -> Option<String> {
        Some(self.source?.get("source_fragment")?.as_str()?.to_string())
    }

    /// A member that may be missing or null.
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
            .ok_or_else(|| self.error(format!("element {index} is missing")))
    }

    /// The elements of an array; a missing or null member is an empty one.
    pub fn list(&self, key: &str) -> Result<Vec<J<'a>>> {
        self.opt(key).map_or(Ok(Vec::new()), |j| j.items())
    }

    pub fn items(&self) -> Result<Vec<J<'a>>> {
        let array = self.value.as_array().ok_or_else(|| self.error("an array is expected"))?;
        Ok(array.iter().enumerate().map(|(i, v)| self.child(v, &i.to_string())).collect())
    }

    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    pub fn as_str(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.error("a string is expected"))
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

    /// A hexadecimal string, `0x` and a leading minus allowed.
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

    /// A pair of strings, such as a field reference.
    pub fn as_pair(&self) -> Result<(&'a str, &'a str)> {
        match self.value.as_array().map(Vec::as_slice) {
            Some([Value::String(a), Value::String(b)]) => Ok((a, b)),
            _ => Err(self.error("a pair of names is expected")),
        }
    }
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
        assert_eq!(e.to_string(), "/a/0/b~1c/d: a string is expected [x.p4(3): f()]");
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
