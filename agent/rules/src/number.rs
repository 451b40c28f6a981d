//! Numbers in requests and rules. They are decimal, and are compared as 64-bit floating point.

/// A comparison of a value with the number in a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    Unequal,
}

impl Compare {
    pub(crate) fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Compare::Above => value > bound,
            Compare::AtLeast => value >= bound,
            Compare::Below => value < bound,
            Compare::AtMost => value <= bound,
            Compare::Equal => value == bound,
            Compare::Unequal => value != bound,
        }
    }

    /// Splits a text into the operator at its start and the remaining text; none if the text starts with no operator.
    pub(crate) fn split(text: &str) -> Option<(Compare, &str)> {
        let operators = [
            (">=", Compare::AtLeast),
            ("<=", Compare::AtMost),
            ("!=", Compare::Unequal),
            (">", Compare::Above),
            ("<", Compare::Below),
            ("=", Compare::Equal),
        ];
        operators.into_iter().find_map(|(sign, compare)| Some((compare, text.strip_prefix(sign)?)))
    }
}

/// Parses a decimal number, ignoring white space around it; none for any other text.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii();
    let unsigned = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    if !unsigned.first()?.is_ascii_digit() || !text.last()?.is_ascii_digit() {
        return None;
    }
    let decimal = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
    let value: f64 = text.iter().all(decimal).then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()?;
    value.is_finite().then_some(value + 0.0)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn decimal_numbers() {
        for (text, value) in
            [("5000", 5000.0), (" 5.50\n", 5.5), ("-3", -3.0), ("+7", 7.0), ("1e3", 1000.0), ("-0", 0.0)]
        {
            assert_eq!(number(text.as_bytes()).map(f64::to_bits), Some(f64::to_bits(value)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in ["", " ", "-", "5.", ".5", "0x10", "NaN", "inf", "1e999", "5 000", "5,0", "1e", "--1", "1-1"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
