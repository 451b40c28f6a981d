//! POP3 (RFC 1939, RFC 5034) up to the user's name.

use super::replay::{Answer, Step};
use super::{Act, Asker, Line, Told, sasl, word};

/// A command that the agent has asked the client to go on with.
#[derive(Debug, Default)]
pub(super) struct Pop3 {
    auth: Option<Vec<u8>>,
}

fn answer(text: &str) -> Act {
    Act::Answer(format!("{text}\r\n").into_bytes())
}

impl Pop3 {
    pub(super) fn take(&mut self, asker: &Asker, line: Line) -> Act {
        if let Some(command) = self.auth.take() {
            let steps = vec![Step { say: command, answer: Answer::Continue }];
            return hand_on(asker, sasl::user(line.text).as_deref(), steps, line.start);
        }
        let (command, rest) = line.word();
        match &command.to_ascii_uppercase()[..] {
            b"USER" if rest.is_empty() => answer("-ERR a name is missing"),
            b"USER" => hand_on(asker, Some(rest), Vec::new(), line.start),
            b"AUTH" => self.auth(asker, line, rest),
            b"APOP" => hand_on(asker, Some(word(rest).0), Vec::new(), line.start),
            b"STLS" => hand_on(asker, None, Vec::new(), line.start),
            b"CAPA" => {
                let offers: String = asker.rules.offer.iter().map(|offer| format!("{offer}\r\n")).collect();
                answer(&format!("+OK\r\nUSER\r\n{offers}."))
            }
            b"QUIT" => Act::Quit("+OK Bye\r\n"),
            _ => answer("-ERR log in first"),
        }
    }

    fn auth(&mut self, asker: &Asker, line: Line, rest: &[u8]) -> Act {
        let (mechanism, response) = word(rest);
        if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
            return hand_on(asker, None, Vec::new(), line.start);
        }
        if response.is_empty() {
            self.auth = Some(line.stream[line.start..line.end].to_vec());
            return Act::Answer(b"+ \r\n".to_vec());
        }
        hand_on(asker, sasl::user(response).as_deref(), Vec::new(), line.start)
    }
}

fn hand_on(asker: &Asker, user: Option<&[u8]>, steps: Vec<Step>, from: usize) -> Act {
    let values = user.map(|user| (asker.rules.lookup.user, user)).into_iter().collect();
    Act::HandOn(asker.conclude(Told { values, all: false }), steps, from)
}
