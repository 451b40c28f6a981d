//! SMTP, IMAP and POP3: the fuzzer's bytes contain a client's bytes and, after a byte 0xff, a server's bytes. The
//! client's commands are replayed to the server. The result must not depend on the size of the pieces in which the
//! bytes arrive.

use std::sync::LazyLock;

use super::{Rules, outcome, rules};
use sluice_rules::{Decision, Forwarding, Replay, ReplayStatus, Route};

static RULES: LazyLock<[Rules; 3]> = LazyLock::new(|| {
    let smtp = r#"[
        {"name": "a", "match": {"helo": "a", "mail_from": "b@c"}, "refuse": true},
        {"name": "b", "match": {"rcpt_to": {"suffix": "@d"}}, "to": "d"}
    ]"#;
    let user = r#"[{"name": "a", "match": {"user": {"prefix": "a"}}, "to": "a"}]"#;
    [rules("smtp", smtp), rules("imap", user), rules("pop3", user)]
});

/// Replays the client's commands to the server. Returns the commands sent, and the status of the replay.
fn replay(mut replay: Replay, server: &[u8], step: usize) -> (Vec<u8>, ReplayStatus) {
    let mut commands = Vec::new();
    for end in (0..server.len()).step_by(step).chain([server.len()]) {
        loop {
            match replay.feed(&server[..end]) {
                ReplayStatus::Send(reply) => commands.extend(reply),
                ReplayStatus::Wait => break,
                end => return (commands, end),
            }
        }
    }
    (commands, ReplayStatus::Wait)
}

/// Removes the replies from a decision. A decision contains only the part of a reply that was not sent before, and this
/// part depends on the size of the pieces.
fn without_replies(decision: Option<Decision>) -> Option<Decision> {
    match decision {
        Some(Decision::Route(mut route)) => {
            if let Forwarding::Mail { reply, .. } = &mut route.forwarding {
                reply.clear();
            }
            Some(Decision::Route(route))
        }
        Some(Decision::Refuse(mut refusal)) => {
            refusal.reply.clear();
            Some(Decision::Refuse(refusal))
        }
        other => other,
    }
}

/// Runs one input: a byte that selects the protocol, a byte for the size of the pieces, then the bytes.
pub fn run(data: &[u8]) {
    let [kind, step, bytes @ ..] = data else { return };
    let (rules, step) = (&RULES[usize::from(kind % 3)], usize::from(*step) + 1);
    let (client, server) =
        bytes.iter().position(|&b| b == 0xff).map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + 1..]));
    let at_once = without_replies(outcome(rules, client, client.len().max(1)));
    assert_eq!(at_once, without_replies(outcome(rules, client, step)), "dialogue in pieces");
    if let Some(Decision::Route(Route { forwarding: Forwarding::Mail { replay: again, from, .. }, .. })) = at_once {
        assert!(from <= client.len());
        assert_eq!(replay(again.clone(), server, server.len().max(1)), replay(again, server, step), "server in pieces");
    }
}
