//! SMTP: a model of a server that randomly accepts or refuses each command.

use super::Script;
use super::server::Server;

pub const CONTENT: &str = r#"{"protocol": "smtp", "default": {"to": "a"}, "offer": ["PIPELINING", "CHUNKING", "AUTH PLAIN LOGIN"], "rules": [
    {"name": "spam", "match": {"helo": "spam"}, "refuse": 550},
    {"name": "from", "match": {"mail_from": "mallory@b"}, "refuse": 550},
    {"name": "trap", "match": {"rcpt_to": "trap@b"}, "refuse": 550},
    {"name": "c", "match": {"rcpt_to": "c@d"}, "to": "c"}]}"#;

pub const MESSAGES: &[&str] = &[
    "RSET\r\n",
    "EHLO a\r\n",
    "EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n",
    "HELO b\r\nMAIL FROM:<>\r\nRCPT TO:<e@f>\r\n",
    "MAIL FROM:<a@b>\r\n",
    "EHLO spam\r\n",
    "MAIL FROM:<mallory@b>\r\n",
    "mail from: <@x:\"mallory\"@B>\r\n",
    "RCPT TO:<c@d>\r\n",
    "RCPT TO:<trap@b>\r\n",
    "RCPT TO:<\"trap\"@B.>\r\n",
    "DATA\r\n",
    "Subject: x\r\n\r\nx\r\n.\r\n",
    "x\n.\n",
    "\r\n.\n",
    ".\r\n",
    "BDAT 16\r\n",
    "BDAT 18 LAST\r\nRCPT TO:<trap@b>\r\n",
    "BDAT 0 LAST\r\n",
    "BDAT x\r\n",
    "NOOP\r\n",
    "NOOP\n",
    "QUIT\r\n",
    "AUTH LOGIN\r\n",
    "AUTH PLAIN AGEAYg==\r\n",
    "AUTH GSSAPI\r\n",
    "*\r\n",
    "STARTTLS\r\n",
    "XEXCH50 18 2\r\n",
    "\r\n",
];

struct Smtp {
    received: Vec<u8>,
    state: State,
    /// Whether the server accepts lines that end with LF alone.
    is_lenient: bool,
    served: usize,
}

enum State {
    Command,
    Text,
    Chunk(usize),
    Response,
    Over,
}

pub fn new(script: &mut Script<'_>) -> Box<dyn Server> {
    let is_lenient = script.byte() & 1 != 0;
    Box::new(Smtp { received: Vec::new(), state: State::Command, is_lenient, served: 0 })
}

impl Smtp {
    fn command(&mut self, line: &str, script: &mut Script<'_>) -> &'static str {
        let plain = line.to_ascii_lowercase().replace(['"', ' '], "");
        let refused =
            ["ehlospam", "mailfrom:<mallory@b>", "mailfrom:<@x:mallory@b>", "rcptto:<trap@b>", "rcptto:<trap@b.>"];
        assert!(!refused.contains(&&*plain), "a refused command is answered: {line}");
        self.served += 1;
        let takes = !script.byte().is_multiple_of(4);
        let word = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        self.state = match &*word {
            "DATA" if takes => State::Text,
            "BDAT" => State::Chunk(line.split(' ').nth(1).and_then(|size| size.parse().ok()).expect("a size")),
            "AUTH" if takes => State::Response,
            "QUIT" => State::Over,
            "STARTTLS" | "XEXCH50" => panic!("what hides the rest is answered: {line}"),
            _ => State::Command,
        };
        match self.state {
            State::Text => "354 go on\r\n",
            State::Response => "334 \r\n",
            State::Chunk(_) => "",
            _ if takes => "250-yes\r\n250 yes\r\n",
            _ => "550 no\r\n",
        }
    }
}

impl Server for Smtp {
    fn greeting(&self) -> &'static str {
        "220 b\r\n"
    }

    fn take(&mut self, bytes: &[u8], script: &mut Script<'_>) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut replies = Vec::new();
        loop {
            match &mut self.state {
                State::Over => return replies,
                State::Chunk(remaining) => {
                    let consumed = self.received.len().min(*remaining);
                    self.received.drain(..consumed);
                    *remaining -= consumed;
                    if *remaining > 0 {
                        return replies;
                    }
                    replies.extend(if script.byte() & 1 == 0 { &b"250 ok\r\n"[..] } else { b"503 no\r\n" });
                    self.state = State::Command;
                }
                _ => {
                    let Some(end) = self.received.iter().position(|&b| b == b'\n') else { return replies };
                    if !self.is_lenient && (end == 0 || self.received[end - 1] != b'\r') {
                        // This server requires CR LF, so LF alone does not end a line and becomes part of the text.
                        self.received[end] = b'?';
                        continue;
                    }
                    let line: Vec<u8> = self.received.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
                    match self.state {
                        State::Text if line == "." => {
                            self.state = State::Command;
                            replies.extend(b"250 queued\r\n");
                        }
                        State::Text => {}
                        State::Response => {
                            self.state = if script.byte() & 1 == 0 { State::Command } else { State::Response };
                            let is_over = matches!(self.state, State::Command);
                            replies.extend(if is_over { &b"235 in\r\n"[..] } else { b"334 \r\n" });
                        }
                        _ => replies.extend(self.command(&line, script).as_bytes()),
                    }
                }
            }
        }
    }

    fn is_open(&self) -> bool {
        false
    }

    fn served(&self) -> usize {
        self.served
    }
}
