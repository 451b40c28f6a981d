//! SMTP, IMAP and POP3: any bytes of a client, and of the server to which they are replayed; a byte of 0xff separates
//! the two. The result must not depend on the size of the pieces.

use std::sync::LazyLock;

use super::{Rules, outcome, rules};
use sluice_rules::{Decision, HandOn, Replay, Replayed, Route};

static RULES: LazyLock<[Rules; 3]> = LazyLock::new(|| {
    let smtp = r#"[
        {"name": "a", "match": {"helo": "a", "mail_from": "b@c"}, "refuse": true},
        {"name": "b", "match": {"rcpt_to": {"suffix": "@d"}}, "to": "d"}
    ]"#;
    let user = r#"[{"name": "a", "match": {"user": {"prefix": "a"}}, "to": "a"}]"#;
    [rules("smtp", smtp), rules("imap", user), rules("pop3", user)]
});

/// Returns the commands sent to the server, and the result.
fn replay(mut replay: Replay, server: &[u8], step: usize) -> (Vec<u8>, Replayed) {
    let mut said = Vec::new();
    for end in (0..server.len()).step_by(step).chain([server.len()]) {
        loop {
            match replay.feed(&server[..end]) {
                Replayed::Say(say) => said.extend(say),
                Replayed::Wait => break,
                end => return (said, end),
            }
        }
    }
    (said, Replayed::Wait)
}

/// Removes the replies, whose distribution depends on the pieces.
fn silent(decision: Option<Decision>) -> Option<Decision> {
    match decision {
        Some(Decision::Route(mut route)) => {
            if let HandOn::Mail { say, .. } = &mut route.hand_on {
                say.clear();
            }
            Some(Decision::Route(route))
        }
        Some(Decision::Refuse(mut refusal)) => {
            refusal.say.clear();
            Some(Decision::Refuse(refusal))
        }
        other => other,
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let [kind, step, bytes @ ..] = data else { return };
    let (rules, step) = (&RULES[usize::from(kind % 3)], usize::from(*step) + 1);
    let (client, server) =
        bytes.iter().position(|&b| b == 0xff).map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + 1..]));
    let whole = silent(outcome(rules, client, client.len().max(1)));
    assert_eq!(whole, silent(outcome(rules, client, step)), "dialogue in pieces");
    if let Some(Decision::Route(Route { hand_on: HandOn::Mail { replay: again, from, .. }, .. })) = whole {
        assert!(from <= client.len());
        assert_eq!(replay(again.clone(), server, server.len().max(1)), replay(again, server, step), "server in pieces");
    }
}
