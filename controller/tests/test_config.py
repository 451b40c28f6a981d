"""Tests of configurations: accepted ones, and the exact text of every error (in golden files beside the examples)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from configs import web
from sluice.balance import Mode
from sluice.config.load import ConfigError, load, parse

GOLDEN = Path(__file__).resolve().parent / "golden"


@pytest.mark.parametrize("name", ["broken", "inconsistent", "duplicate", "torn"])
def test_complaints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected message is in the .txt file beside the configuration; edit that file to accept a new message."""
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(ConfigError) as caught:
        load(f"{name}.yaml")
    assert str(caught.value) == (GOLDEN / f"{name}.txt").read_text().rstrip("\n")


def test_defaults_are_the_papers_parameters() -> None:
    text = web().replace("  balance: {mode: paper, period_s: 0.1, window_s: 1.0}\n", "")
    balance = parse(text).services[0].balance
    assert (balance.mode, balance.period_s, balance.window_s, balance.delta) == (Mode.PRODUCTION, 10, 200, 0.1)


@pytest.mark.parametrize("cap", ["0", "-1", "many", "1.5", "10_000_000_000"])
def test_a_cap_is_a_number_of_connections(cap: str) -> None:
    with pytest.raises(ConfigError, match=r":\d+: services\[0\]\.servers\[0\]\.max_connections: must be "):
        parse(web().replace("10.0.2.2, port: 80", f"10.0.2.2, port: 80, max_connections: {cap}"))


def test_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml:0: No such file or directory; give the file with --config"):
        load("nowhere.yaml")


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda path: path.parent.name)
def test_the_examples_are_good(path: Path) -> None:
    assert parse(path.read_text()).services


def test_the_shortest_file_of_the_documentation_is_good() -> None:
    start = (ROOT / "docs/start.md").read_text()
    assert parse(start.partition("```yaml\n")[2].partition("```")[0]).services


@pytest.mark.parametrize("text", ["", "- 1", "just words", "interfaces: 3", "services: {a: b}"])
def test_nonsense_is_a_complaint_rather_than_a_crash(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


ALIASES = "a: &a [1,2,3,4,5,6,7,8]\n" + "".join(f"{c}: &{c} [{f'*{b},' * 9}]\n" for b, c in pairwise("abcdefgh"))
ROUTES = "".join(f"{{to: 11.{n // 256}.{n % 256}.0/24, via: 10.0.1.9}}, " for n in range(4097))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: \0\n", r":2: special characters are not allowed \(U\+0000\)"),
        ("a: !!int foo\n", ":1: the tag !!int is not supported; leave it out"),
        ("a: !!bool foo\n", ":1: the tag !!bool is not supported; leave it out"),
        ("a: !!timestamp foo\n", ":1: the tag !!timestamp is not supported; leave it out"),
        ("a: !!binary AQ==\n", ":1: the tag !!binary is not supported; leave it out"),
        ("a: !mine foo\n", ":1: the tag !mine is not supported; leave it out"),
        ("a: !!set {b}\n", ":1: the tag !!set is not supported; leave it out"),
        ('a: 1\nb: "\\ud800"\n', r":2: U\+D800 is half of a surrogate pair; write the whole character"),
        ("a: 1\n80: 1\n", ":2: a key is not text; write one of the known keys"),
        ("? [a]\n: 1\n", ":1: a key is not text"),
        ("a: 1\n--- \nb: 1\n", ":2: but found another document"),
        ("a: &a [*a]\n", "deeper than can be read"),
        ("[" * 3000, "deeper than can be read"),
        (
            "a: &a [1,2,3,4,5,6,7,8]\n" + "".join(f"{c}: &{c} [{f'*{b},' * 9}]\n" for b, c in pairwise("abcdefgh")),
            "more than",
        ),
        ("a: &a {x: 1}\n" + "".join(f"{c}: &{c} {{<<: [{f'*{b},' * 9}]}}\n" for b, c in pairwise("abcdefghi")), "more"),
    ],
    ids=[
        *("control character", "int", "bool", "timestamp", "binary", "tag of one's own", "set", "half a character"),
        *("number as a key", "list as a key", "two documents", "itself", "deep", "aliases", "merges"),
    ],
)
def test_values_that_are_not_what_they_seem_have_a_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(text)


MERGED = "- &s1 {name: s1, address: 10.0.2.2, port: 80}\n  - {<<: *s1, name: s2, address: 10.0.3.2"


def test_what_is_merged_counts_and_has_the_line_where_it_stands() -> None:
    plain = "- {name: s1, address: 10.0.2.2, port: 80}\n  - {name: s2, address: 10.0.3.2, port: 80"
    assert parse(web().replace(plain, MERGED)) == parse(web())
    with pytest.raises(ConfigError) as caught:
        parse(web().replace(plain, MERGED).replace("name: s1, address: 10.0.2.2, port: 80", "name: s1, port: 0"))
    assert str(caught.value).splitlines() == [
        "sluice.yaml:13: services[0].servers[0].address: is required but not given; add 'address'",
        "sluice.yaml:13: services[0].servers[0].port: must be greater than or equal to 1 (got 0)",
        "sluice.yaml:13: services[0].servers[1].port: must be greater than or equal to 1 (got 0)",
    ]
    with pytest.raises(ConfigError, match=":14: expected a mapping or list of mappings for merging"):
        parse(web().replace(plain, MERGED.replace("*s1", "3")))


@pytest.mark.parametrize("address", ["224.0.0.5", "127.0.0.1", "0.0.0.0", "255.255.255.255", "240.0.0.1", "10.0.2.255"])
def test_addresses_that_no_host_can_have(address: str) -> None:
    for text in (
        web().replace("address: 10.0.2.2,", f"address: {address},"),
        web().replace("via: 10.0.1.9", f"via: {address}"),
        web().replace("address: 10.0.0.100", f"address: {address}"),
    ):
        assert address in text
        with pytest.raises(ConfigError, match=rf"{address} is "):
            parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (web().replace("via: 10.0.1.9", "via: 10.0.0.100"), "10.0.0.100 is "),
        (web().replace("10.0.2.1/24", "127.0.0.1/24"), "127.0.0.1 is a loopback address"),
        (web(period_s=1e-300, window_s=1), r"period_s: 1e-300 s is faster than a switch is read"),
        (web(period_s=0.01, window_s=1e6), r"window_s: 1e\+06 s are more than 10000 periods of 0.01 s"),
        (web().replace("02:00:00:00:00:01", "00:00:00:00:00:00"), "no interface has the address 0"),
        (
            web().replace("routes: [", f"routes: [{ROUTES}"),
            "4101 prefixes with the interfaces'; the program holds 4096",
        ),
    ],
)
def test_what_a_switch_would_refuse_is_a_complaint(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: s1", "name: 80", r"name: must be a valid string \(got 80\); put it in quotes$"),
        ("name: s1", "name: true", r"name: must be a valid string \(got True\); put it in quotes$"),
        (
            "name: s1,",
            "name: s1, capacity: 1.0e-13,",
            r"capacity: must be greater than or equal to 0\.001 \(got 1e-13\)$",
        ),
        (
            "port: 80\n",
            "port: 80\n  protocol: udp\n",
            r"protocol: no protocol of a service, which is TCP only \(got 'udp'\)",
        ),
        ("vlan: 7", "vlan: 0", r"^[^\n]*\.vlan: not a VLAN \(got 0\); write keep, strip, or an id from 1 to 4094"),
        ("control: ", 'control: "" # ', r"control: not a path \(got ''\); name a socket, such as /run/sluice.sock"),
        (
            "control: ",
            f"control: /{'x' * 107} # ",
            r"control: too long \(.*\); the path of a Unix socket has at most 107",
        ),
        ("control: ", "news:\ncontrol: ", ":16: news: has no keys below it; write {} after the colon"),
        ("control: ", "metrics:\ncontrol: ", ":16: metrics: has no keys below it; write {} after the colon"),
    ],
    ids=["number", "boolean", "capacity", "udp", "vlan", "no control", "long control", "news", "metrics"],
)
def test_complaints_say_what_to_do(old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(web().replace(old, new, 1))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("looks: 3\n  second_look: false", r"services\[0\].looks: 3 looks, and the service has `second_look: false`"),
        ("looks: 1", r"services\[0\].looks: must be greater than or equal to 2"),
        ("looks: 5", r"services\[0\].looks: must be less than or equal to 4"),
    ],
)
def test_looks_that_cannot_be(asked: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(web().replace("  servers:", f"  {asked}\n  servers:"))


def test_two_ports_may_share_a_subnet() -> None:
    text = (
        web().replace("address: 10.0.2.1/24", "address: 10.0.1.1/24").replace("address: 10.0.2.2", "address: 10.0.1.2")
    )
    assert len(parse(text).interfaces) == 3


INFINITE = "must be a finite number (got inf); write it in digits, such as 0.5"


def complaints(news: str, services: str = "") -> str:
    """Return all error messages about a configuration with these options of flash-crowd control."""
    with pytest.raises(ConfigError) as caught:
        parse(web(more=f"{services}\nnews: {news}"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("news", "says"),
    [
        ("{limit_max: .inf}", f"news.limit_max: {INFINITE}"),
        ("{limit_min: .inf}", f"news.limit_min: {INFINITE}"),
        ("{mode: paper, period_s: .inf}", f"news.period_s: {INFINITE}"),
        ("{production: {window_s: .inf}}", f"news.production.window_s: {INFINITE}"),
        (
            "{limit_max: 2e7, bucket_s: 0.1}",
            "news.limit_max: must be less than or equal to 10000000 (got 20000000.0)",
        ),
        (
            "{production: {detection_s: 1e-6}, bucket_s: 1e-6}",
            "news.production.detection_s: 1e-06 s is faster than a switch is read; give at least 0.01",
        ),
        ("{poll_s: 1e-6}", "news.poll_s: 1e-06 s is faster than a switch is read; give at least 0.01"),
        (
            "{production: {window_s: 4.4}}",
            "news.production.window_s: 4.4 is not a multiple of detection_s (1); for example 4",
        ),
        (
            "{production: {window_s: 1000, detection_s: 0.01}, bucket_s: 0.01}",
            "news.production.window_s: 1000 s are more than 10000 periods of 0.01 s; give at most 100",
        ),
        (
            "{bucket_s: 1000}",
            "news.bucket_s: 1000 s of the limit at once are more than an interval (1 s) has; give at most 1",
        ),
        (
            "{mode: paper, period_s: 600, bucket_s: 500}",
            "news.bucket_s: 500 s of limit_max (100000) are more at once than the switch's meters take;"
            " give at most 100",
        ),
        (
            "{hosts: [{name: a, address: 224.0.0.5}]}",
            "news.hosts[0].address: 224.0.0.5 is a multicast address; name a host by its own address",
        ),
        (
            "{hosts: [{name: a, address: 127.0.0.1}]}",
            "news.hosts[0].address: 127.0.0.1 is a loopback address; name a host by its own address",
        ),
        (
            "{hosts: [{name: a, address: 255.255.255.255}]}",
            "news.hosts[0].address: 255.255.255.255 is the broadcast address; name a host by its own address",
        ),
        (
            "{hosts: [{name: a, address: 0.0.0.0}]}",
            "news.hosts[0].address: 0.0.0.0 is no host's address; name a host by its own address",
        ),
        (
            "{hosts: [{name: a, address: 10.0.2.255}]}",
            "news.hosts[0].address: 10.0.2.255 is the network or broadcast address of 10.0.2.0/24;"
            " name a host by its own address",
        ),
    ],
)
def test_flash_crowd_control_that_cannot_be(news: str, says: str) -> None:
    assert complaints(news) == f"sluice.yaml:16: {says}"


def test_balancing_takes_finite_times_only() -> None:
    with pytest.raises(ConfigError, match=r"balance\.window_s: must be a finite number \(got inf\)"):
        parse(web(window_s=float("inf")).replace("window_s: inf", "window_s: .inf"))


@pytest.mark.parametrize(
    "news",
    [
        "{mode: paper, period_s: 0.25, bucket_s: 0.25, poll_s: 0.01}",
        "{production: {detection_s: 0.1, window_s: 0.3, baseline_s: 8}, bucket_s: 0.1}",
        "{mode: static, period_s: 0.1}",
        "{limit_max: 10000000, bucket_s: 1}",
        "{production: {detection_s: 0.125, window_s: 0.5}, bucket_s: 0.03125, poll_s: 0.125}",
    ],
)
def test_flash_crowd_control_at_its_bounds(news: str) -> None:
    assert parse(web(more=f"news: {news}")).news is not None


def test_room_is_left_for_an_unlisted_hot_spot() -> None:
    def hosts(many: int) -> str:
        return (
            "{hosts: ["
            + ", ".join(f"{{name: h{i}, address: 10.9.{i // 200}.{i % 200 + 1}}}" for i in range(many))
            + "]}"
        )

    assert parse(web(more=f"news: {hosts(1020)}")).news is not None
    assert complaints(hosts(1021)) == (
        "sluice.yaml:16: news.hosts: 1022 destinations with the services'; the program watches 1021, and hot spots"
        " besides; use fewer services or hosts: a crowd at a host that is not listed is found and limited all the same"
    )
