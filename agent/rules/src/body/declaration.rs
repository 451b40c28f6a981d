//! The XML declaration (XML 1.0, section 2.8 and production 80): the only processing instruction that changes how
//! parsers decode a document.

use super::xml::is_white;
use crate::charset::Charset;

/// Returns the character set that a processing instruction declares; UTF-8 if it declares none. `instruction` is its
/// text without angle brackets and question marks, such as `xml version="1.0" encoding="..."`. For a malformed
/// declaration, or a version other than 1.0, returns `Charset::Other`: XML 1.1 has other line ends (section 2.11 of XML
/// 1.1), which change names and values.
pub(super) fn declared(instruction: &[u8]) -> Charset {
    let Some((target, rest)) = instruction.split_at_checked(3) else { return Charset::Utf8 };
    if !target.eq_ignore_ascii_case(b"xml") || rest.first().is_some_and(|&byte| !is_white(byte)) {
        return Charset::Utf8;
    }
    charset(rest).unwrap_or(Charset::Other)
}

/// Returns the character set that is declared in `rest` (the declaration without `xml`), UTF-8 by default. `None` if
/// the declaration is malformed or has a version other than 1.0.
fn charset(mut rest: &[u8]) -> Option<Charset> {
    let mut declared_charset = None;
    loop {
        rest = behind_white(rest);
        if rest.is_empty() {
            return Some(declared_charset.unwrap_or(Charset::Utf8));
        }
        let end = rest.iter().position(|&byte| byte == b'=' || is_white(byte))?;
        let name = &rest[..end];
        let (&quote, value) = behind_white(behind_white(&rest[end..]).strip_prefix(b"=")?).split_first()?;
        let length = memchr::memchr(quote, value).filter(|_| matches!(quote, b'"' | b'\''))?;
        match (name, &value[..length]) {
            (b"encoding", value) if declared_charset.is_none() => declared_charset = Some(Charset::named(value)),
            (b"version", b"1.0") | (b"standalone", b"yes" | b"no") => {}
            _ => return None,
        }
        rest = &value[length + 1..];
    }
}

fn behind_white(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|&byte| !is_white(byte)).unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_sets_of_declarations() {
        for (instruction, expected) in [
            ("xml version=\"1.0\"", Charset::Utf8),
            ("xml version='1.0' encoding='UTF-8' standalone='yes' ", Charset::Utf8),
            ("xml version = \"1.0\"\n\tencoding =\r\"utf-8\"", Charset::Utf8),
            ("xml", Charset::Utf8),
            ("xml-stylesheet encoding=\"utf-16\"", Charset::Utf8),
            ("x encoding=\"utf-16\"", Charset::Utf8),
            ("xml version=\"1.0\" encoding=\"ISO-8859-15\"", Charset::SingleByte),
            ("xml version=\"1.0\" encoding=\"UTF-16\"", Charset::Other),
            ("XML version=\"1.0\" encoding=\"UTF-7\"", Charset::Other),
            ("xml encoding=\"cp037\"", Charset::Other),
            ("xml encoding=\"\"", Charset::Other),
            ("xml version=\"1.1\"", Charset::Other),
            ("xml version=\"1.0\" encoding=\"utf-8\" encoding=\"utf-16\"", Charset::Other),
            ("xml version=\"1.0\" ENCODING=\"utf-16\"", Charset::Other),
            ("xml version=\"1.0\" encoding=utf-16", Charset::Other),
            ("xml version=\"1.0\" encoding=\"utf-16", Charset::Other),
            ("xml version=\"1.0\" encoding", Charset::Other),
            ("xml version=\"1.0\" encoding=", Charset::Other),
        ] {
            assert_eq!(declared(instruction.as_bytes()), expected, "{instruction}");
        }
    }
}
