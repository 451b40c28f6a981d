//! Mechanisms of SASL, which authenticate users, and the names in a response of PLAIN (RFC 4616).

/// Returns the names in a response of PLAIN: the authorization identity, if present, and then the authentication
/// identity. None if the response is malformed.
pub(crate) fn users(response: &[u8]) -> Option<Vec<Vec<u8>>> {
    let text = base64(response)?;
    let parts: Vec<&[u8]> = text.split(|&b| b == 0).collect();
    let [acts_as, user, _] = parts[..] else { return None };
    Some([acts_as, user].into_iter().filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
        .filter(|users: &Vec<_>| !users.is_empty())
}

/// Returns whether the rules can still read the dialogue after a successful authentication by this mechanism. False for
/// an unlisted mechanism, because it may negotiate a security layer (RFC 4422, section 3.7).
pub(crate) fn is_readable(mechanism: &[u8]) -> bool {
    let name = mechanism.to_ascii_uppercase();
    let known: [&[u8]; 7] = [b"PLAIN", b"LOGIN", b"CRAM-MD5", b"XOAUTH2", b"OAUTHBEARER", b"EXTERNAL", b"ANONYMOUS"];
    known.contains(&&name[..]) || name.starts_with(b"SCRAM-")
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|&&b| b == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut bit_count) = (0_u32, 0);
    for &digit in &text[..text.len() - padding] {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::users;

    #[test]
    fn names_of_a_response() {
        assert_eq!(users(b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm"), Some(vec![b"tim".to_vec()]));
        assert_eq!(users(b"YQBiAGM="), Some(vec![b"a".to_vec(), b"b".to_vec()]));
        for text in [&b"YQBi"[..], b"YQBiAGMAZA==", b"AHR", b"====", b"a=aa", b"", b"AAA="] {
            assert_eq!(users(text), None);
        }
    }
}
