//! POP3 (RFC 1939, RFC 5034), up to the user's name.

use super::act::Act;
use super::asker::{Asker, SentFields};
use super::line::{Line, word};
use super::replay::{Answer, Step};
use super::sasl;

/// The state of the agent's side: an AUTH command whose response is awaited.
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
            let Some(users) = sasl::users(line.text) else { return malformed() };
            return hand_on(asker, &users, vec![Step { say: command, answer: Answer::Continue }], line.start);
        }
        let (command, rest) = line.word();
        match &command.to_ascii_uppercase()[..] {
            b"USER" if rest.is_empty() => answer("-ERR a name is missing"),
            b"USER" => hand_on(asker, &[rest.to_vec()], Vec::new(), line.start),
            b"AUTH" => self.auth(asker, line, rest),
            // An APOP digest covers the server's greeting, which the client has not received (RFC 1939, section 7).
            b"APOP" => answer("-ERR APOP is not offered"),
            b"STLS" if asker.offers("STLS") => {
                opaque(asker, line).unwrap_or_else(|| answer("-ERR TLS is not available"))
            }
            b"STLS" => answer("-ERR STLS is not offered"),
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
        if !offers(asker, mechanism) {
            return answer("-ERR the mechanism is not offered");
        }
        if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
            let hidden = || answer("-ERR rules ask about the user, whom this mechanism hides");
            return opaque(asker, line).unwrap_or_else(hidden);
        }
        if response.is_empty() {
            self.auth = Some(line.stream[line.start..line.end].to_vec());
            return Act::Answer(b"+ \r\n".to_vec());
        }
        sasl::users(response).map_or_else(malformed, |users| hand_on(asker, &users, Vec::new(), line.start))
    }
}

/// Answers a malformed response; `*` cancels the command (RFC 5034, section 4).
fn malformed() -> Act {
    answer("-ERR the command is cancelled, or its response malformed")
}

/// Whether the offer `SASL` lists a mechanism (RFC 5034, section 3).
fn offers(asker: &Asker, mechanism: &[u8]) -> bool {
    let mut lists = asker.rules.offer.iter().filter_map(|offer| offer.split_once(' '));
    let is_in = |list: &str| list.split(' ').any(|offer| offer.as_bytes().eq_ignore_ascii_case(mechanism));
    lists.any(|(word, list)| word.eq_ignore_ascii_case("SASL") && is_in(list))
}

/// Handles a command that hides the user: the rules decide without a name.
fn opaque(asker: &Asker, line: Line) -> Option<Act> {
    Some(Act::HandOn(asker.give_up(&SentFields::default())?, Vec::new(), line.start))
}

fn hand_on(asker: &Asker, users: &[Vec<u8>], steps: Vec<Step>, from: usize) -> Act {
    Act::HandOn(asker.conclude_users(users), steps, from)
}
