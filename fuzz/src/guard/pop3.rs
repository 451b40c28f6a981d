//! POP3: a model of a server that randomly accepts or refuses each login.

use super::Script;
use super::server::Server;

pub const CONTENT: &str = r#"{"protocol": "pop3", "default": {"to": "a"}, "offer": ["SASL PLAIN"], "rules": [
    {"name": "mallory", "match": {"user": "mallory"}, "refuse": true},
    {"name": "bob", "match": {"user": "bob"}, "to": "b"}]}"#;

pub const MESSAGES: &[&str] = &[
    "USER alice\r\n",
    "USER bob\r\n",
    "PASS pw\r\n",
    "CAPA\r\n",
    "USER mallory\r\n",
    "user Mallory\r\n",
    "AUTH PLAIN\r\n",
    "AUTH PLAIN AGFsaWNlAHB3\r\n",
    "AUTH PLAIN AG1hbGxvcnkAcHc=\r\n",
    "AGFsaWNlAHB3\r\n",
    "AG1hbGxvcnkAcHc=\r\n",
    "*\r\n",
    "STLS\r\n",
    "APOP mallory 0123\r\n",
    "UTF8\r\n",
    "NOOP\n",
    "QUIT\r\n",
];

struct Pop3 {
    received: Vec<u8>,
    state: State,
    served: usize,
}

#[derive(PartialEq, Eq)]
enum State {
    Command,
    Response,
    LoggedIn,
    Over,
}

pub fn new(_: &mut Script<'_>) -> Box<dyn Server> {
    Box::new(Pop3 { received: Vec::new(), state: State::Command, served: 0 })
}

impl Pop3 {
    fn line(&mut self, line: &str, script: &mut Script<'_>) -> &'static str {
        let upper = line.to_ascii_uppercase();
        assert!(
            !upper.contains("MALLORY") && !line.contains("AG1hbGxvcnkAcHc="),
            "a refused login is answered: {line}"
        );
        self.served += 1;
        let takes = script.byte() % 4;
        let is_response = self.state == State::Response;
        self.state = State::Command;
        match upper.split(' ').next().unwrap_or_default() {
            "STLS" | "APOP" => panic!("what hides the rest is answered: {line}"),
            "QUIT" if !is_response => self.state = State::Over,
            "CAPA" if !is_response && takes != 0 => return "+OK\r\nUSER\r\n.\r\n",
            "AUTH" if !is_response && takes != 0 && line.split(' ').count() == 2 => {
                self.state = State::Response;
                return "+ \r\n";
            }
            "PASS" | "AUTH" if !is_response && takes == 1 => self.state = State::LoggedIn,
            "PASS" | "AUTH" => return "-ERR wrong\r\n",
            _ if is_response && takes == 1 && line != "*" => self.state = State::LoggedIn,
            _ if is_response => return "-ERR wrong\r\n",
            _ if takes == 0 => return "-ERR no\r\n",
            _ => {}
        }
        "+OK yes\r\n"
    }
}

impl Server for Pop3 {
    fn greeting(&self) -> &'static str {
        "+OK b\r\n"
    }

    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut replies = Vec::new();
        while !matches!(self.state, State::LoggedIn | State::Over) {
            let Some(end) = self.received.iter().position(|&b| b == b'\n') else { break };
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            replies.extend(self.line(&line, script).as_bytes());
        }
        replies
    }

    fn is_open(&self) -> bool {
        self.state == State::LoggedIn
    }

    fn served(&self) -> usize {
        self.served
    }
}
