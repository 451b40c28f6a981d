//! Divides character sets into classes. The class says which characters of a text the parsers understand.

/// Which characters of a body the parsers understand. If several names of character sets contradict each other, the
/// greatest class counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Charset {
    /// UTF-8, or its subset US-ASCII.
    Utf8,
    /// A superset of ASCII with one byte per character. Rules compare UTF-8, so the parsers understand only the ASCII
    /// characters.
    SingleByte,
    /// Any other character set, such as UTF-16, UTF-7 and EBCDIC, in which bytes have other meanings. Names that
    /// servers may not recognize belong to this class as well.
    Other,
}

impl Charset {
    /// Returns the class of the character set with this name (IANA registry), in any letter case.
    pub(crate) fn named(name: &[u8]) -> Charset {
        let name = name.to_ascii_lowercase();
        let is_numbered = |series: &[u8]| {
            let number = name.strip_prefix(series);
            number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
        };
        match &name[..] {
            b"utf-8" | b"utf8" | b"us-ascii" => Charset::Utf8,
            _ if is_numbered(b"iso-8859-") || is_numbered(b"windows-125") => Charset::SingleByte,
            _ => Charset::Other,
        }
    }

    /// Returns the class of the character set in the parameter `charset` of a media type; UTF-8 if the parameter is
    /// missing. The parameter may be spelled `charset*` (RFC 2231), because some servers accept this spelling.
    pub(crate) fn of(parameters: &[u8]) -> Charset {
        let named = parameters.split(|&byte| byte == b';').filter_map(|parameter| {
            let equals = memchr::memchr(b'=', parameter)?;
            let (name, value) =
                (parameter[..equals].trim_ascii().to_ascii_lowercase(), parameter[equals + 1..].trim_ascii());
            let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            (name == b"charset" || name.starts_with(b"charset*")).then(|| Charset::named(value))
        });
        named.max().unwrap_or(Charset::Utf8)
    }
}
