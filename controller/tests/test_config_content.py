"""Tests of configurations of content services: accepted ones, and the error messages about others."""

from __future__ import annotations

import pytest
from content import content
from sluice.config.content import ContentConfig
from sluice.config.load import ConfigError, parse


def test_agents_stand_for_servers_and_groups_are_named_once() -> None:
    config = parse(content())
    shop = config.services[0]
    assert shop.content is not None
    assert shop.content.groups == ("all", "fast")
    assert [(member.name, member.port, member.capacity) for member in shop.members] == [
        ("a1", 80, 1.0),
        ("a2", 80, 3.0),
    ]
    assert {name: item.name for name, item in config.contents.items()} == {"all": "shop", "fast": "shop"}


def test_rules_reach_the_engine_as_they_are_written() -> None:
    shop = parse(content()).services[0]
    assert shop.content is not None
    assert shop.content.rule_set() == {
        "protocol": "http",
        "limits": {"head": "16KiB", "body": 65536, "wait_s": 2},
        "default": {"to": "all"},
        "rules": [
            {"name": "big", "match": {"xml": {"purchase.total": "> 5000"}}, "to": "fast", "sticky": "none"},
            {"name": "perl", "match": {"path": {"regex": "pl$"}}, "goto": "admin", "else": {"to": "all"}},
            {"name": "admin", "match": [{"path": {"prefix": "/admin"}}, {"method": "DELETE"}], "refuse": 403},
        ],
    }


def test_no_connection_is_guessed_where_a_rule_refuses() -> None:
    def guesses(text: str) -> bool:
        shop = parse(text).services[0]
        assert shop.content is not None
        return shop.content.guesses

    assert not guesses(content())
    assert not guesses(content().replace("limits: {head", "guess: false\n    limits: {head"))
    routing = content().replace("refuse: 403", "to: all")
    assert guesses(routing)
    assert guesses(routing.replace("limits: {head", "guess: true\n    limits: {head"))
    assert not guesses(routing.replace("limits: {head", "guess: false\n    limits: {head"))


X2 = "  - {name: x2, address: 10.0.2.12, port: 8000}\n  - {name: x3"
AGENT_2 = '- {name: a2, address: 10.0.4.32, control: "127.0.0.1:9471", capacity: 3}'
SECOND = """\
- name: other
  address: 10.0.0.102
  port: 81
  content:
    protocol: http
    agents: [{name: b1, address: 10.0.3.31, control: "unix:///run/a1.sock"}]
    default: {to: plain}
control: "/run/sluice.sock"
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("default: {to: all}", "default: {to: none}", r"default\.to: no service 'none'; there is: all, fast, plain$"),
        ("default: {to: all}", "default: {to: shop}", r"default\.to: shop is a content service; name one with servers"),
        (
            "else: {to: all}}",
            "else: {to: nowhere}}",
            r":22: services\[0\]\.content\.rules\[1\]\.else\.to: no service 'nowhere'",
        ),
        ("    default: {to: all}\n", "", r"content\.default: is required but not given; add 'default'"),
        ("to: all}\n    rules", "too: all}\n    rules", r"content\.default\.too: unknown key; did you mean 'to'\?"),
        ("else: {to: all}", "otherwise: {to: all}", r"rules\[1\]\.otherwise: unknown key; known keys: else, goto, ma"),
        ("to: fast, sticky: none", "sticky: none", r"rules\[0\]: states no outcome; give one of to, goto"),
        ("to: fast, sticky: none", "to: fast, refuse: 403", r"rules\[0\]: has to and refuse; give one of to, goto"),
        ("refuse: 403", "refuse: 403, sticky: none", r"rules\[2\]\.sticky: `sticky` has no effect without a group"),
        ("goto: admin", "goto: big", r"rules\[1\]\.goto: no later rule 'big'; later rules are: admin$"),
        ("name: admin", "name: big", r"rules\[2\]\.name: 'big' is already rules\[0\]; rename one"),
        ("sticky: none", "sticky: client", r"rules\[0\]\.sticky: later connections of such a client bypass the rules"),
        ("{to: all}\n", "{to: all, sticky: client}\n", r"default\.sticky: later connections of such a client"),
        (
            "limits: {head",
            "guess: true\n    limits: {head",
            r"content\.guess: a guessed connection reaches its server before rules .*; leave it out, or leave the",
        ),
        ("sticky: none", "sticky: never", r"sticky: must be 'connection', 'client' or 'none' \(got 'never'\)$"),
        ("protocol: http", "protocol: ftp", r"protocol: must be 'http', 'tls', 'smtp', 'imap' or 'pop3' \(got 'ftp'\)"),
        ("head: 16KiB", "head: 16K", r"head: not a size \(got '16K'\); write digits .* or a size such as 16KiB"),
        ("head: 16KiB", "head: 0", r"head: not a size \(got 0\)"),
        ("refuse: 403", "refuse: 9", r"refuse: not a refusal \(got 9\); write a status such as 403 without quotes"),
        ("refuse: 403", "refuse: false", r"refuse: not a refusal \(got False\)"),
        ("match: [{path: {prefix: /admin}}, {method: DELETE}]", "match: /admin", r"match: no match \(got '/admin'\)"),
        (
            "match: [{path: {prefix: /admin}}, {method: DELETE}]",
            "match: [a]",
            r"match: no match; write fields and what",
        ),
        ("unix:///run/a1.sock", "unix:run/a1.sock", r"control: not the absolute path of a Unix socket"),
        ("unix:///run/a1.sock", "http://a1:80", r"control: a URL is not supported"),
        ("127.0.0.1:9471", "unix:///run/a1.sock", r"control: unix:///run/a1\.sock is a1's already"),
        ("10.0.4.32", "10.0.3.32", r"agents\[1\]\.address: 10\.0\.3\.0/24 has 1 port, and an agent of shop on each"),
        ("10.0.3.31", "192.168.0.1", r"agents\[0\]\.address: 192\.168\.0\.1 is in no interface's subnet"),
        ("name: a2", "name: a1", r"content\.agents\[1\]\.name: 'a1' is already a server of shop"),
        (
            "  content:\n",
            "  servers: [{name: q, address: 10.0.2.77, port: 80}]\n  content:\n",
            r"has agents, and no ser",
        ),
        ("name: s1, address: 10.0.2.21, port: 80", "name: x1, address: 10.0.2.11, port: 8000", r"belongs to all/x1; a"),
        (
            X2,
            X2.replace("x2", "y2"),
            r"services\[2\]\.servers\[0\]\.name: 10\.0\.2\.12:8000 is all/x2 already; name it",
        ),
        (X2, X2.replace("port: 8000}", "port: 8000, drain: true}", 1), r"drain: differs from all/x2, the same server"),
        (X2, X2.replace("port: 8000}", "port: 8000, max_connections: 9}", 1), r"max_connections: differs from all/x2"),
        ("capacity: 3}", "capacity: 3, drain: yes}", r"agents\[1\]\.drain: must be a valid boolean"),
        (
            "    default:",
            "    without_agents: all\n    default:",
            r"services\[0\]\.content\.without_agents: such connections bypass the rules, and there are rules that "
            r"refuse; write refuse, or leave the refusing rules",
        ),
        (
            "    default:",
            "    without_agents: none\n    default:",
            r"content\.without_agents: no service 'none'; there is",
        ),
        ('control: "/run/sluice.sock"\n', SECOND.replace("to: plain", "to: all"), r"all is a group of shop already"),
        (
            'control: "/run/sluice.sock"\n',
            SECOND.replace("a1.sock", "b1.sock"),
            r"b1 and shop/a1 share one of address and control",
        ),
        (
            'control: "/run/sluice.sock"\n',
            SECOND.replace("port: 81", "port: 80"),
            r"services\[4\]\.content\.agents\[0\]: 10\.0\.3\.31:80 already belongs to shop/a1",
        ),
    ],
)
def test_complaints(old: str, new: str, says: str) -> None:
    text = content()
    assert text.count(old) >= 1
    with pytest.raises(ConfigError, match=rf"(?m){says}"):
        parse(text.replace(old, new, 1))


def test_a_group_of_its_own_takes_clients_without_agents() -> None:
    text = (
        content().replace("refuse: 403", "to: fast").replace("    default:", "    without_agents: plain\n    default:")
    )
    config = parse(text)
    assert config.services[0].content is not None
    assert config.services[0].content.groups == ("all", "fast", "plain")
    assert "without_agents" not in config.services[0].content.rule_set(), "the rule engine does not know it"


def test_an_agent_serves_two_services() -> None:
    assert len(parse(content().replace('control: "/run/sluice.sock"\n', SECOND)).services) == 5


def test_a_service_has_servers_or_content() -> None:
    without = (
        content()
        .replace("  servers:\n  - {name: s1, address: 10.0.2.21, port: 80}\n", "")
        .replace("  - {name: s2, address: 10.0.2.22, port: 80}\n", "")
    )
    with pytest.raises(ConfigError, match=r"services\[3\]\.servers: is required but not given; add 'servers', or 'con"):
        parse(without)


def test_services_are_sorted_once_however_many_rules_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    groups = ContentConfig.groups.fget
    assert groups is not None

    def counted(self: ContentConfig) -> tuple[str, ...]:
        asked.append(1)
        return groups(self)

    monkeypatch.setattr(ContentConfig, "groups", property(counted))

    def times(rules: int) -> int:
        asked.clear()
        more = "".join(f"    - {{name: r{n}, match: {{path: /{n}}}, to: fast}}\n" for n in range(rules))
        parse(content().replace("    rules:\n", f"    rules:\n{more}"))
        return len(asked)

    assert times(50) == times(1)
