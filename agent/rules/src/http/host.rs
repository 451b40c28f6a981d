//! Parses the authority of a request target: a host and a port.

use super::{Fault, bad};

/// Returns the host of an authority such as `name:port`, in its original letter case. The port is removed, and so is a
/// trailing dot of the host.
pub(crate) fn host(authority: &[u8]) -> Result<&[u8], Fault> {
    let (name, port) = match authority {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else { return bad("the host is no host") };
            let literal = rest[..end].iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
            if !literal || end == 0 {
                return bad("the host is no host");
            }
            authority.split_at(end + 2)
        }
        _ => authority.split_at(memchr::memchr(b':', authority).unwrap_or(authority.len())),
    };
    let is_port = port.is_empty() || port[0] == b':' && port[1..].iter().all(u8::is_ascii_digit);
    let is_name = name.starts_with(b"[") || name.iter().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(b));
    if !is_port || !is_name {
        return bad("the host is no host");
    }
    Ok(name.strip_suffix(b".").unwrap_or(name))
}

/// Splits an absolute target with the scheme http or https (`http://host/path`) into the authority and the rest, which
/// begins with `/` or `?` or is empty. None for every other target.
pub(crate) fn absolute(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let scheme = memchr::memmem::find(target, b"://")?;
    let known = target[..scheme].eq_ignore_ascii_case(b"http") || target[..scheme].eq_ignore_ascii_case(b"https");
    let rest = known.then(|| &target[scheme + 3..])?;
    Some(rest.split_at(memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len())))
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn hosts() {
        for (authority, name) in [
            ("shop.example", "shop.example"),
            ("Shop.Example:8080", "Shop.Example"),
            ("a.:", "a"),
            ("[::1]:80", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(host(authority.as_bytes()), Ok(name.as_bytes()), "{authority}");
        }
        for authority in ["a b", "user@host", "a:80:80", "a:x", "[::1", "[]", "a/b", "a,b", "\u{fc}"] {
            assert!(host(authority.as_bytes()).is_err(), "{authority}");
        }
    }
}
