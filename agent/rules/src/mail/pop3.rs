//! The agent's side of a POP3 dialogue (RFC 1939, RFC 5034), up to the user's name.

use super::evaluator::{Evaluator, SentFields};
use super::line::{Line, word};
use super::line_action::LineAction;
use super::replay::{ExpectedReply, ReplayCommand};
use super::sasl;

/// The state of the dialogue: an AUTH command to which the client has not sent its response yet.
#[derive(Debug, Default)]
pub(super) struct Pop3 {
    auth: Option<Vec<u8>>,
}

fn answer(text: &str) -> LineAction {
    LineAction::Reply(format!("{text}\r\n").into_bytes())
}

impl Pop3 {
    pub(super) fn take(&mut self, evaluator: &Evaluator, line: Line) -> LineAction {
        if let Some(command) = self.auth.take() {
            let Some(users) = sasl::users(line.text) else { return malformed() };
            return forward(
                evaluator,
                &users,
                vec![ReplayCommand { line: command, expected: ExpectedReply::Continue }],
                line.start,
            );
        }
        let (command, rest) = line.word();
        match &command.to_ascii_uppercase()[..] {
            b"USER" if rest.is_empty() => answer("-ERR a name is missing"),
            b"USER" => forward(evaluator, &[rest.to_vec()], Vec::new(), line.start),
            b"AUTH" => self.auth(evaluator, line, rest),
            // A server would reject an APOP digest: the client computes it from the greeting, but has received the
            // agent's greeting (RFC 1939, section 7).
            b"APOP" => answer("-ERR APOP is not offered"),
            b"STLS" if evaluator.offers("STLS") => {
                opaque(evaluator, line).unwrap_or_else(|| answer("-ERR TLS is not available"))
            }
            b"STLS" => answer("-ERR STLS is not offered"),
            b"CAPA" => {
                let offers: String = evaluator.rules.offer.iter().map(|offer| format!("{offer}\r\n")).collect();
                answer(&format!("+OK\r\nUSER\r\n{offers}."))
            }
            b"QUIT" => LineAction::Quit("+OK Bye\r\n"),
            _ => answer("-ERR log in first"),
        }
    }

    fn auth(&mut self, evaluator: &Evaluator, line: Line, rest: &[u8]) -> LineAction {
        let (mechanism, response) = word(rest);
        if !offers(evaluator, mechanism) {
            return answer("-ERR the mechanism is not offered");
        }
        if !mechanism.eq_ignore_ascii_case(b"PLAIN") {
            let hidden = || answer("-ERR rules ask about the user, whom this mechanism hides");
            return opaque(evaluator, line).unwrap_or_else(hidden);
        }
        if response.is_empty() {
            self.auth = Some(line.stream[line.start..line.end].to_vec());
            return LineAction::Reply(b"+ \r\n".to_vec());
        }
        sasl::users(response).map_or_else(malformed, |users| forward(evaluator, &users, Vec::new(), line.start))
    }
}

/// Returns the answer to a response of AUTH that is malformed, or that is `*`, which cancels AUTH (RFC 5034, section
/// 4).
fn malformed() -> LineAction {
    answer("-ERR the command is cancelled, or its response malformed")
}

/// Returns whether the offer `SASL` lists a mechanism (RFC 5034, section 3).
fn offers(evaluator: &Evaluator, mechanism: &[u8]) -> bool {
    let mut lists = evaluator.rules.offer.iter().filter_map(|offer| offer.split_once(' '));
    let is_in = |list: &str| list.split(' ').any(|offer| offer.as_bytes().eq_ignore_ascii_case(mechanism));
    lists.any(|(word, list)| word.eq_ignore_ascii_case("SASL") && is_in(list))
}

/// Processes a command that hides the user, so that the rules decide without a name. Returns none if a rule on the user
/// may refuse.
fn opaque(evaluator: &Evaluator, line: Line) -> Option<LineAction> {
    Some(LineAction::Forward(evaluator.give_up(&SentFields::default())?, Vec::new(), line.start))
}

fn forward(evaluator: &Evaluator, users: &[Vec<u8>], steps: Vec<ReplayCommand>, from: usize) -> LineAction {
    LineAction::Forward(evaluator.conclude_users(users), steps, from)
}
