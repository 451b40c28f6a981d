//! XML: the fuzzer's bytes are a document. A rule about any element that quick-xml parses must match. Rules must
//! refuse a document whose tags do not nest.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use serde_json::json;

use super::{DEPTH, MatchResult, match_value, step};

/// Runs one input: a byte that selects an element of the document, a byte for the size of the pieces, then the
/// document.
pub fn run(data: &[u8]) {
    let [which, size, document @ ..] = data else { return };
    let size = usize::from(*size) + 1;
    if document.is_empty() {
        return;
    }
    let absent = match_value("xml", "absent.anyhow", json!("x"), document, size);
    let Some(text) = std::str::from_utf8(document).ok() else { return };
    let mut elements = Vec::new();
    match collect(text, &mut elements) {
        Document::WellFormed => assert_ne!(absent, MatchResult::Malformed, "well-formed XML"),
        Document::DoesNotNest => return assert_eq!(absent, MatchResult::Malformed, "XML that does not nest"),
        Document::Other => return,
    }
    if let Some((path, value)) = elements.get(usize::from(*which) % elements.len().max(1)) {
        let form = if value.is_empty() { json!({"present": true}) } else { json!({"exact": value}) };
        assert_eq!(match_value("xml", path, form, document, size), MatchResult::Yes, "{path} {value:?}");
    }
}

/// Classifies a document by the result that both parsers (quick-xml and the parser of the rules) must give.
enum Document {
    WellFormed,
    DoesNotNest,
    /// One parser may accept the document while the other refuses it.
    Other,
}

/// Collects the elements of a document, each with its path and the text directly in it, and returns the document's
/// class.
fn collect(text: &str, elements: &mut Vec<(String, String)>) -> Document {
    if text.starts_with('\u{feff}') || text.contains('\0') {
        return Document::Other;
    }
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_unmatched_ends = false;
    let mut open: Vec<(String, String)> = Vec::new();
    loop {
        let event = match reader.read_event() {
            Err(quick_xml::Error::IllFormed(
                quick_xml::errors::IllFormedError::MismatchedEndTag { .. }
                | quick_xml::errors::IllFormedError::UnmatchedEndTag(_),
            )) => return Document::DoesNotNest,
            Err(_) => return Document::Other,
            Ok(event) => event,
        };
        let added = match event {
            Event::Eof if open.is_empty() => return Document::WellFormed,
            Event::Eof => return Document::DoesNotNest,
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                if open.len() >= DEPTH || tag.contains('<') || tag.ends_with('/') {
                    return Document::Other;
                }
                let Some(name) = name(tag.name().0) else { return Document::Other };
                let path = open.last().map_or(name.clone(), |(path, _)| format!("{path}.{name}"));
                open.push((path, String::new()));
                if let Event::Empty(_) = event {
                    elements.extend(open.pop());
                }
                continue;
            }
            Event::End(_) => {
                let Some((path, text)) = open.pop() else { return Document::DoesNotNest };
                elements.push((path, text.trim_matches([' ', '\t', '\r', '\n']).to_owned()));
                continue;
            }
            Event::Text(text) => text.to_string(),
            Event::CData(text) if !open.is_empty() => text.to_string(),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => character.to_string(),
                Ok(None) => match resolve_predefined_entity(&reference) {
                    Some(text) => text.to_owned(),
                    None => return Document::Other,
                },
                Err(_) => return Document::Other,
            },
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => continue,
            Event::CData(_) | Event::DocType(_) => return Document::Other,
        };
        match open.last_mut() {
            Some((_, text)) => text.push_str(&added),
            None if added.bytes().all(|byte| b" \t\r\n".contains(&byte)) => {}
            None => return Document::Other,
        }
    }
}

/// Returns the path step for an element's name; returns `None` if the name is empty, or if the two parsers may read it
/// differently: if it has characters outside of ASCII's names, or an end like `:0`, which a path reads as an index.
fn name(name: &str) -> Option<String> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    let indexed = name.rsplit_once(':').is_some_and(|(_, index)| index.bytes().all(|byte| byte.is_ascii_digit()));
    step(name).filter(|_| plain && !indexed)
}
