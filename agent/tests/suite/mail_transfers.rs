//! Tests of mails between real TCP stacks, over links that lose, repeat and reorder packets: every byte arrives exactly
//! once.

use crate::support::world::{Links, Rng, World, streams};

const CONTENT: &str = r#"{"protocol": "smtp", "default": {"to": "a"}, "offer": ["PIPELINING"], "rules": [
    {"name": "b", "match": {"rcpt_to": {"suffix": "@b.example"}}, "to": "b"},
    {"name": "c", "match": {"rcpt_to": {"suffix": "@c.example"}}, "to": "c"}]}"#;
const BY_THE_AGENT: &str = "220 [10.0.0.100] ESMTP\r\n250-OK\r\n250 PIPELINING\r\n250 2.1.0 OK\r\n";

/// Returns all answers of a server to these lines. The receipt for a mail contains the mail's length.
fn smtp(lines: &[u8]) -> Vec<u8> {
    let mut answers = b"220 ready\r\n".to_vec();
    let (mut rest, mut is_data, mut length) = (lines, false, 0);
    while let Some(end) = rest.windows(2).position(|end| end == b"\r\n") {
        let line = &rest[..end];
        rest = &rest[end + 2..];
        match line {
            b"." if is_data => {
                is_data = false;
                answers.extend(format!("250 got {length}\r\n").bytes());
            }
            _ if is_data => length += line.len(),
            b"DATA" => {
                is_data = true;
                answers.extend(b"354 go on\r\n");
            }
            b"QUIT" => answers.extend(b"221 bye\r\n"),
            _ if line.starts_with(b"EHLO") => answers.extend(b"250-a server\r\n250-SIZE\r\n250 PIPELINING\r\n"),
            _ => answers.extend(b"250 fine\r\n"),
        }
    }
    answers
}

/// Transfers a mail. The client sends all parts at once, or each part after the answer to the previous one.
fn mail(seed: u64) {
    let mut rng = Rng(seed);
    let links = Links { lost: rng.below(4), repeated: rng.below(5), delayed: rng.below(10) };
    let servers = [(65_535, 1500), (100_000, 1400), (2_000_000, 1460)];
    let service = crate::support::harness::service(CONTENT);
    let mut world = World::of(service, seed, links, (30_000, 1500), &servers);
    for server in &mut world.servers {
        server.responder = Some(smtp);
    }
    let group = rng.below(3) as usize;
    let domain = (b'a' + group as u8) as char;
    let length = [10, 3000, 100_000][rng.below(3) as usize];
    let text: String = (0..length).map(|n| (b'a' + (n % 26) as u8) as char).collect();
    let parts = [
        ("EHLO client\r\n".to_owned(), 2),
        (format!("MAIL FROM:<x@y.example>\r\nRCPT TO:<z@{domain}.example>\r\nDATA\r\n"), 3),
        (format!("{text}\r\n.\r\n"), 1),
        ("QUIT\r\n".to_owned(), 1),
    ];
    let end = format!("250 fine\r\n354 go on\r\n250 got {length}\r\n221 bye\r\n");
    let expected = [BY_THE_AGENT, &end].concat().into_bytes();
    let is_pipelined = rng.percent(30);
    world.connect(Vec::new(), 100_000);
    let mut lines = 1;
    for (fragment, answers) in &parts {
        if !is_pipelined {
            world.run(|world| world.clients[0].received.iter().filter(|byte| **byte == b'\n').count() >= lines);
        }
        world.clients[0].to_send.extend(fragment.as_bytes());
        lines += answers;
    }
    world.run(|world| world.clients[0].received.len() >= expected.len() || world.clients[0].was_reset);
    let received = String::from_utf8_lossy(&world.clients[0].received).into_owned();
    assert_eq!(received.as_bytes(), expected, "seed {seed}: {received}");
    let sent: String = parts.iter().map(|(fragment, _)| fragment.as_str()).collect();
    assert!(streams(&world) == [(group, sent.into_bytes())].into(), "seed {seed}: what servers got");
}

#[test]
fn every_mail_arrives_where_it_is_meant_to() {
    (0..100).for_each(mail);
}
