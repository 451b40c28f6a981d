//! Computes the normal form of a path. It is only used for matching; the server receives the original bytes.
//!
//! A rule on `/admin` matches `/%61dmin`, `//admin`, `/a/../admin` and `/admin;x=1`. The request is not rewritten,
//! because the server might interpret the rewritten path differently. Escaped slashes and backslashes have no single
//! meaning, so they are refused unless `limits.encoded_slash` is `keep`.

use std::borrow::Cow;

use super::{Fault, bad};
use crate::config::EncodedSlash;

/// Returns the normal form of a path: decodes escapes, removes `;parameters`, resolves dot segments and merges slashes.
/// `path` must begin with a slash.
pub(crate) fn normal(path: &[u8], slash: EncodedSlash) -> Result<Cow<'_, [u8]>, Fault> {
    let special = |pair: &[u8]| matches!(pair, [b'/', b'/' | b'.']);
    if !path.iter().any(|b| matches!(b, b'%' | b';' | b'\\')) && !path.windows(2).any(special) {
        return Ok(Cow::Borrowed(path));
    }
    let mut normal = vec![b'/'];
    let mut segments = path[1..].split(|&b| b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let end = memchr::memchr(b';', segment).unwrap_or(segment.len());
        let start = normal.len();
        decode(&segment[..end], slash, &mut normal)?;
        match &normal[start..] {
            b"." | b".." if end < segment.len() => return bad("a dot segment has parameters"),
            b"." => normal.truncate(start),
            b".." => {
                normal.truncate(start - 1);
                let parent = memchr::memrchr(b'/', &normal).map_or(0, |slash| slash);
                normal.truncate(parent);
                normal.push(b'/');
            }
            [] => {}
            _ if !last => normal.push(b'/'),
            _ => {}
        }
    }
    Ok(Cow::Owned(normal))
}

fn decode(segment: &[u8], slash: EncodedSlash, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut bytes = segment.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && slash == EncodedSlash::Refuse {
            return bad("the path has a backslash");
        }
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match (bytes.next().and_then(hex), bytes.next().and_then(hex)) {
            (Some(0), Some(0)) => return bad("the path has an escaped NUL"),
            (Some(high), Some(low)) => match (high << 4 | low, slash) {
                (b'/' | b'\\', EncodedSlash::Refuse) => return bad("the path has an escaped slash"),
                (b'/', EncodedSlash::Keep) => out.extend_from_slice(b"%2f"),
                (b'\\', EncodedSlash::Keep) => out.extend_from_slice(b"%5c"),
                (byte, _) => out.push(byte),
            },
            _ => return bad("the path has a broken escape"),
        }
    }
    Ok(())
}

/// Returns the value of a hexadecimal digit.
pub(crate) fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// Decodes a name or value of a query or form: `+` becomes a space, and a malformed escape stays unchanged.
pub(crate) fn decode_form(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let escape = match *tail {
            [high, low, ..] if byte == b'%' => hex(high).zip(hex(low)),
            _ => None,
        };
        rest = if escape.is_some() { &tail[2..] } else { tail };
        out.push(match (escape, byte) {
            (Some((high, low)), _) => high << 4 | low,
            (None, b'+') => b' ',
            (None, byte) => byte,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Result<String, &'static str> {
        let normal = normal(path.as_bytes(), EncodedSlash::Refuse).map_err(|fault| fault.why)?;
        Ok(String::from_utf8_lossy(&normal).into_owned())
    }

    #[test]
    fn normal_forms() {
        for (path, expected) in [
            ("/", "/"),
            ("/admin", "/admin"),
            ("/%61dmin", "/admin"),
            ("//admin", "/admin"),
            ("/a/../admin", "/admin"),
            ("/admin;x=1", "/admin"),
            ("/admin;x=1/y;z", "/admin/y"),
            ("/a/b/../../c", "/c"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/./a", "/a"),
            ("/../../a", "/a"),
            ("/a//", "/a/"),
            ("/%2e%2e/a", "/a"),
            ("/a/%2E/b", "/a/b"),
            ("/.well-known/x", "/.well-known/x"),
            ("/a..b/...", "/a..b/..."),
            ("/100%25", "/100%"),
            ("/;x", "/"),
        ] {
            assert_eq!(of(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for path in ["/a%2fb", "/a%2Fb", "/%00", "/%", "/%4", "/%zz", "/a%5cb", "/a\\b", "/a/..;/b", "/.;x"] {
            assert!(of(path).is_err(), "{path}: {:?}", of(path));
        }
    }

    #[test]
    fn escaped_slashes_may_be_kept() {
        let normalized = normal(b"/a%2Fb/../%5C\\", EncodedSlash::Keep).unwrap();
        assert_eq!(&normalized[..], b"/%5c\\");
    }

    #[test]
    fn form_text() {
        let mut text = Vec::new();
        decode_form(b"a+b%20c%2", &mut text);
        assert_eq!(text, b"a b c%2");
    }
}
