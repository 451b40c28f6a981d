//! Runs the fuzz targets of the rules on their seed inputs, and on inputs that have failed before.

#[path = "../../../../fuzz/src/content/mod.rs"]
mod content;
#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

#[test]
fn requests() {
    corpus::run("http", content::http::run);
}

#[test]
fn json_documents() {
    corpus::run("json", content::json::run);
}

#[test]
fn xml_documents() {
    corpus::run("xml", content::xml::run);
}

#[test]
fn client_hellos() {
    corpus::run("tls", content::tls::run);
}

#[test]
fn dialogues() {
    corpus::run("mail", content::mail::run);
}

#[test]
fn rules() {
    corpus::run("rules", content::rules::run);
}
