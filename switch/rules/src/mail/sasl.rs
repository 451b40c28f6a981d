//! The user in a response of SASL's PLAIN mechanism (RFC 4616).

/// The authentication identity: the second of three parts.
pub(crate) fn user(response: &[u8]) -> Option<Vec<u8>> {
    let text = base64(response)?;
    let mut parts = text.split(|&b| b == 0);
    let user = parts.nth(1)?.to_vec();
    (parts.next().is_some() && parts.next().is_none()).then_some(user)
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|&&b| b == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
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
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::user;

    #[test]
    fn users() {
        assert_eq!(user(b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm").as_deref(), Some(&b"tim"[..]));
        assert_eq!(user(b"YQBiAGM=").as_deref(), Some(&b"b"[..]));
        for text in [&b"YQBi"[..], b"YQBiAGMAZA==", b"AHR", b"====", b"a=aa", b""] {
            assert_eq!(user(text), None);
        }
    }
}
