//! IMAP: a model of a server that randomly accepts or refuses each login and each literal.

use super::Script;
use super::server::Server;

pub const CONTENT: &str = r#"{"protocol": "imap", "default": {"to": "a"}, "offer": ["AUTH=PLAIN", "LITERAL+"], "rules": [
    {"name": "mallory", "match": {"user": "mallory"}, "refuse": true},
    {"name": "bob", "match": {"user": "bob"}, "to": "b"}]}"#;

pub const MESSAGES: &[&str] = &[
    "a LOGIN alice pw\r\n",
    "b LOGIN bob pw\r\n",
    "o NOOP\r\n",
    "e LOGIN {5}\r\nalice pw\r\n",
    "c LOGIN mallory pw\r\n",
    "d login \"MALLO\\RY\" pw\r\n",
    "f LOGIN {7}\r\nmallory pw\r\n",
    "g LOGIN {7+}\r\nmallory {2+}\r\npw\r\n",
    "h LOGIN alice {2}\r\npw\r\n",
    "i ID (\"n\" {20+}\r\nc LOGIN mallory pw\r\n)\r\n",
    "j ID (\"n\" {20}\r\nc LOGIN mallory pw\r\n)\r\n",
    "k SELECT {20+}\r\nc LOGIN mallory pw\r\n\r\n",
    "l AUTHENTICATE PLAIN\r\n",
    "m AUTHENTICATE PLAIN AGFsaWNlAHB3\r\n",
    "n AUTHENTICATE PLAIN AG1hbGxvcnkAcHc=\r\n",
    "AGFsaWNlAHB3\r\n",
    "AG1hbGxvcnkAcHc=\r\n",
    "bWFsbG9yeQBhbGljZQBwdw==\r\n",
    "*\r\n",
    "p CAPABILITY\r\n",
    "q STARTTLS\r\n",
    "r LOGOUT\r\n",
    "s AUTHENTICATE GSSAPI\r\n",
    "t NOOP\n",
    "\r\n",
];

struct Imap {
    received: Vec<u8>,
    /// The bytes of the current command received so far, including its literals.
    command: Vec<u8>,
    state: State,
    served: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Line,
    Literal(usize),
    Response,
    LoggedIn,
    Over,
}

pub fn new(_: &mut Script<'_>) -> Box<dyn Server> {
    Box::new(Imap { received: Vec::new(), command: Vec::new(), state: State::Line, served: 0 })
}

/// Parses the announcement of a literal at the end of a line. Returns the literal's length, and whether the literal is
/// non-synchronizing; `None` if the line announces no literal.
fn literal(line: &str) -> Option<(usize, bool)> {
    let (_, size) = line.strip_suffix('}')?.rsplit_once('{')?;
    let unasked = size.ends_with('+');
    Some((size.trim_end_matches('+').parse().ok()?, unasked))
}

impl Imap {
    fn tag(&self) -> String {
        String::from_utf8_lossy(&self.command).split(' ').next().unwrap_or_default().trim().to_owned()
    }

    /// Answers a command whose last line has arrived.
    fn complete(&mut self, script: &mut Script<'_>) -> String {
        self.served += 1;
        let (tag, text) = (self.tag(), String::from_utf8_lossy(&self.command).to_ascii_uppercase());
        let word = text.split([' ', '\r']).nth(1).unwrap_or_default();
        let answer = match (word, script.byte() % 4) {
            ("LOGIN", kind) => {
                let user = text.replace('\\', "");
                assert!(!user.contains("MALLORY"), "a refused login is answered: {text}");
                self.state = if kind == 0 { State::LoggedIn } else { State::Line };
                if kind == 0 { "OK in" } else { "NO wrong" }
            }
            ("AUTHENTICATE", 1..) if text.trim_end().ends_with("PLAIN") => {
                self.state = State::Response;
                return "+ \r\n".to_owned();
            }
            ("AUTHENTICATE", _) => {
                assert!(!text.contains("AG1HBGXVCNKACHC="), "a refused login is answered: {text}");
                assert!(!text.contains("GSSAPI"), "what hides the user is answered");
                "NO wrong"
            }
            ("STARTTLS", _) => panic!("what hides the rest is answered"),
            ("LOGOUT", _) => {
                self.state = State::Over;
                "OK bye"
            }
            (_, 0) => "BAD what",
            _ => "OK done",
        };
        self.command.clear();
        format!("* 1 word\r\n{tag} {answer}\r\n")
    }

    fn respond(&mut self, line: &str, script: &mut Script<'_>) -> String {
        let refused = ["AG1hbGxvcnkAcHc=", "bWFsbG9yeQBhbGljZQBwdw=="];
        assert!(!refused.contains(&line), "a refused login is answered: {line}");
        let takes = line != "*" && script.byte().is_multiple_of(4);
        self.state = if takes { State::LoggedIn } else { State::Line };
        let tag = self.tag();
        self.command.clear();
        if takes { format!("{tag} OK in\r\n") } else { format!("{tag} NO wrong\r\n") }
    }
}

impl Server for Imap {
    fn greeting(&self) -> &'static str {
        "* OK b\r\n"
    }

    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut replies = Vec::new();
        loop {
            if let State::Literal(remaining) = self.state {
                let consumed = self.received.len().min(remaining);
                self.command.extend(self.received.drain(..consumed));
                if consumed < remaining {
                    self.state = State::Literal(remaining - consumed);
                    return replies;
                }
                self.state = State::Line;
            }
            if matches!(self.state, State::LoggedIn | State::Over) {
                return replies;
            }
            let Some(end) = self.received.iter().position(|&b| b == b'\n') else { return replies };
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            if self.state == State::Response {
                replies.extend(self.respond(&text, script).as_bytes());
                continue;
            }
            self.command.extend(line);
            match literal(&text) {
                Some((size, true)) => self.state = State::Literal(size),
                Some((size, false)) if !script.byte().is_multiple_of(4) => {
                    replies.extend(b"+ go on\r\n");
                    self.state = State::Literal(size);
                }
                Some(_) => {
                    replies.extend(format!("{} NO too large\r\n", self.tag()).as_bytes());
                    self.command.clear();
                }
                None => replies.extend(self.complete(script).as_bytes()),
            }
        }
    }

    fn is_open(&self) -> bool {
        self.state == State::LoggedIn
    }

    fn served(&self) -> usize {
        self.served
    }
}
