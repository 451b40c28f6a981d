"""Tests of the experiments on content switching: requests, the load generator's output, the rules of the rival proxies,
and reports on known runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from matplotlib.figure import Figure
from sluice.config.load import parse

from experiments import content_agent, content_rules, content_splice, content_ttfb, contentload, contentplace
from experiments.content_ttfb import BOUND, DOCUMENT, DOCUMENTS
from experiments.contentload import Requests
from experiments.contentplace import AGENT, CHAIN, CLIENT, FIRST, HIT, KILO, LAST, MEGA, MISS, PLAIN, RULES
from experiments.contentrivals import Rules, haproxy_configuration, map_file, nginx_configuration
from experiments.experiment import Experiment, Record
from experiments.tests.small import goal_of, report_text
from topo.labs.alternatives import PROGRAMS
from topo.labs.content import AGENT as AGENT_PROGRAM
from topo.plan.content import AGENTS, GROUPS
from topo.plan.network import HostPlan, switch_config
from topo.testbed.errors import SetupError


def record(parameters: Mapping[str, Any], **result: Any) -> Record:
    return Record(f"{parameters}", parameters, result, 0.0, 1.0, 0.5)


# -- the load generator


def test_answers_are_read_with_what_failed() -> None:
    seen = contentload.read("500 900 1100\n1500 1900 1100\nfailed 1: timed out\nlate 2500\n", 1000)
    assert (seen["answered"], seen["failed"], seen["why"], seen["late_ms"]) == (2, 1, "timed out", 2.5)
    assert seen["first"] == {"mean_ms": 1.0, "p50_ms": 0.5, "p99_ms": 1.5}
    assert seen["whole"]["p99_ms"] == 1.9


def test_an_answer_without_the_whole_page_ends_the_run() -> None:
    with pytest.raises(SetupError, match="1 answers were shorter than the page of 1000 bytes: one had 90"):
        contentload.read("500 900 90\nfailed 0: none\nlate 0\n", 1000)


@pytest.mark.parametrize("output", ["", "usage: first_byte", "500 900 1100\nlate 0\n"])
def test_a_load_that_says_something_else_is_named(output: str) -> None:
    with pytest.raises(SetupError, match="something else"):
        contentload.read(output, 1000)


def example(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


def test_examples_say_what_is_missing_and_what_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(contentload, "EXAMPLES", tmp_path)
    with pytest.raises(SetupError, match="first_byte is not there: cargo build --release --examples"):
        contentload.command("10.0.0.1", 80, Requests(["/"], 1.0, 1.0))
    example(tmp_path, "first_byte", "")
    words = contentload.command("10.0.0.1", 80, Requests(["/a", "/b"], 0.0, 2.5, 1_000_000))
    assert words[1:] == ["10.0.0.1:80", "/a,/b", "1000000", "0.0", "2.5"]
    example(tmp_path, "decide", 'echo "{\\"kind\\": \\"$3\\"}"')
    assert content_rules.bench("host", 0.1) == {"lines": [{"kind": "host"}]}
    example(tmp_path, "decide", "echo no route >&2; exit 101")
    with pytest.raises(SetupError, match=r"exit code 101: no route"):
        content_rules.bench("host", 0.1)
    example(tmp_path, "handshakes", 'echo "4804 ns a connection, 208133 connections/s"')
    assert content_agent.engine_per_s() == 208_133
    example(tmp_path, "handshakes", "echo done")
    with pytest.raises(SetupError, match="exit code 0: done"):
        content_agent.engine_per_s()


# -- the lab


def test_everybodys_services_are_a_good_configuration() -> None:
    controls = {agent.name: f"unix:///run/{agent.name}.sock" for agent in AGENTS}
    listed = contentplace.services(RULES, controls)
    config = parse(yaml.safe_dump(switch_config(contentplace.POOL.hosts, listed)))
    shop, ahead = (service for service in config.services if service.content)
    assert shop.content and ahead.content and (shop.content.guess, ahead.content.guess) == (False, True)
    assert [rule.name for rule in shop.content.rules] == ["client", *(f"r{n}" for n in range(RULES)), "xml"]
    assert all(rule.to and rule.to.startswith("ahead-") for rule in ahead.content.rules)


def test_a_miss_alternates_between_groups_without_a_common_server() -> None:
    groups = dict(contentplace.prefixes(RULES))
    first, last = (groups[path.removesuffix(KILO)] for path in (FIRST, LAST))
    assert not set(GROUPS[first]) & set(GROUPS[last])
    assert content_ttfb.paths(MISS, KILO) == [FIRST, LAST] and content_ttfb.paths(HIT, KILO) == [LAST]
    assert content_ttfb.paths(MISS, KILO, DOCUMENT) == [FIRST, f"/{KILO}"], "which takes a document to another group"
    assert dict(contentplace.prefixes(RULES))["/shop/0/"] != "fast"


def test_rivals_have_the_same_rules_in_the_same_order() -> None:
    host, (server, *_) = HostPlan("p1", 9, 31), GROUPS["fast"]
    rules = Rules(contentplace.prefixes(3), "all", GROUPS, 8081)
    haproxy = haproxy_configuration(host, rules, Path("/run/table"))
    chain = [line.split() for line in haproxy.splitlines() if "path_beg" in line]
    assert [(line[-2], line[1]) for line in chain] == rules.prefixes
    assert "default_backend all" in haproxy and "map_beg(/run/table,all)" in haproxy
    assert f"backend fast\n  server {server.name} {server.address}:8081" in haproxy
    assert [tuple(line.split()) for line in map_file(rules).splitlines()] == rules.prefixes
    nginx = nginx_configuration(host, rules, Path("/run"))
    locations = [line.split() for line in nginx.splitlines() if "location" in line]
    assert [(line[2], line[5].removeprefix("http://").rstrip(";")) for line in locations] == [
        *rules.prefixes,
        ("/", "all"),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root")
@pytest.mark.skipif(not AGENT_PROGRAM.exists(), reason="sluice-agent is not built: make setup")
@pytest.mark.skipif(
    not all(Path(program).exists() for program in PROGRAMS.values()), reason="make experiments installs rivals"
)
@pytest.mark.skipif(not (contentload.EXAMPLES / "first_byte").exists(), reason="make experiments builds the load")
def test_everybody_answers_in_one_place() -> None:
    with contentplace.ContentPlace(RULES, print) as place:
        for series in (*content_ttfb.MEASURED, *content_ttfb.POSTED):
            for body in (0, 3000):
                seen = place.run(series, Requests([LAST], 40.0, 0.5, body))
                assert seen["answered"] > 0 and seen["failed"] == 0, seen["why"]
                assert set(seen["cpu_us"]) == {name for name in ("switch", series.process) if name}
                assert (seen["switch"]["lost_before"], seen["switch"]["lost_after"]) == (0, 0)
        result = content_splice.transfer(place, AGENT.name)
        assert result["agent_before"] > 0 and result["agent_after"] == 0


# -- the time to the first byte


def page(series: contentplace.Series, size: str, p50_ms: float, us: float) -> Record:
    times = {"mean_ms": p50_ms, "p50_ms": p50_ms, "p99_ms": 10 * p50_ms}
    cpu = {"switch": 100.0, **({series.process: us} if series.process else {})}
    return record(
        {"series": series.name, "page": size, "load": 0.3, "seconds": 10.0},
        **{"first": times, "whole": times, "cpu_us": cpu, "answered": 100, "failed": 0, "rate_per_s": 300.0},
    )


def document(
    series: contentplace.Series, size: int, p50_ms: float, by: str = DOCUMENT, *, failed: int = 0, number: int = 0
) -> Record:
    times = {"mean_ms": p50_ms, "p50_ms": p50_ms, "p99_ms": 10 * p50_ms}
    lone_record = record(
        {"series": series.name, "document": size, "by": by, "rate_per_s": 40.0, "seconds": 3.0},
        **{"first": times, "whole": times, "cpu_us": {"switch": 100.0}, "answered": 100 - failed, "failed": failed},
    )
    return replace(lone_record, key=f"{lone_record.key} #{number}")


PAGES = [
    *(
        page(series, KILO, ms, us)
        for series, ms, us in ((PLAIN, 0.4, 0), (AGENT, 0.6, 50), (CLIENT, 0.41, 1), (CHAIN, 0.5, 99))
    ),
    *(page(series, MEGA, 9.0, us) for series, us in ((AGENT, 60), (CHAIN, 900))),
]


def test_first_bytes_and_cpu_are_held_against_haproxy() -> None:
    report = content_ttfb.report(PAGES)
    assert goal_of(report, "agent pass, p50").seen == "1.20 times: 0.60 ms against 0.50 ms"
    assert goal_of(report, "agent pass, p50").reached and goal_of(report, "agent pass, p99").reached
    assert goal_of(report, "`sticky: client`, p50: plain").reached
    assert goal_of(report, "1 KB page").reached is False, "50 of 99 us are more than half"
    assert goal_of(report, "1 MB page").reached is True
    assert goal_of(report, "every request").seen == "600 of 600"
    assert report.tables[0].rows[1][0] == "agent pass" and report.tables[0].rows[1][-2:] == ["50", "150"]
    assert report.tables[0].rows[0][-2:] == ["-", "100"], "nobody is in the way of plain service"


def test_hits_that_were_not_measured_are_not_reported() -> None:
    report = content_ttfb.report(PAGES)
    assert goal_of(report, "pre-allocated, hit, p50").reached is None
    assert goal_of(report, "within one agent pass").seen == "not measured"
    content_ttfb.EXPERIMENT.draw(PAGES, Figure())


def test_a_hit_is_held_against_one_agent_pass_at_every_size_by_pairs_of_a_round() -> None:
    def goal(*hits_ms: float) -> tuple[bool | None, str]:
        records = [
            document(series, size, ms + number + size / 1e5, number=number)
            for number, hit_ms in enumerate(hits_ms)
            for size in DOCUMENTS
            for series, ms in ((AGENT, 1.5), (HIT, hit_ms))
        ]
        goal = goal_of(content_ttfb.report(records), "within one agent pass")
        return goal.reached, goal.seen.split(";", maxsplit=1)[0]

    assert goal(1.4) == (True, "less an agent pass, 1,000 B: -0.10 ms")
    assert goal(1.6)[0] is False
    assert goal(1.6, 1.61, 1.6) == (False, "less an agent pass, 1,000 B: +0.10 ± 0.01 ms")
    assert goal(1.4, 1.9, 1.4)[0], "no more apart than chance"


def test_the_shapes_of_figure_7_are_reported_with_all_four_series() -> None:
    grow = {PLAIN: (1.0, 1.5), AGENT: (1.5, 3.0), HIT: (1.2, 1.6), MISS: (2.0, 9.0)}
    records = [
        document(series, size, ms)
        for series, both in grow.items()
        for size, ms in zip((min(DOCUMENTS), max(DOCUMENTS)), both, strict=True)
    ]
    records += [document(AGENT, max(DOCUMENTS), 2.9, BOUND)]
    findings = {finding.what: finding for finding in content_ttfb.shapes(records)}
    assert all(finding.agrees for finding in findings.values())
    assert findings["a miss, largest beside smallest"].here == "4.50 times"
    assert findings["no guess beside a hit"].here == "1.88 times"
    assert "plain service beside a single server" not in findings, "nobody measured the server alone"
    assert "| pre-allocated, miss, by the document | 2.00 | - | - | 9.00 |" in report_text(
        content_ttfb.EXPERIMENT, records
    )


def test_a_failed_request_is_reported() -> None:
    report = content_ttfb.report([document(AGENT, 1_000_000, 2.0, failed=18)])
    assert goal_of(report, "every request").reached is False
    assert goal_of(report, "every request").seen == "82 of 100"


# -- the spliced transfer


def transfer(series: contentplace.Series, pair: int, mb_per_s: float, after: int = 0) -> Record:
    parameters = {"series": series.name, "pair": pair}
    us = 1000 / mb_per_s
    return record(parameters, mb_per_s=mb_per_s, agent_before=9, agent_after=after, switch_us_per_packet=us)


def test_a_splice_is_held_against_its_own_pair() -> None:
    pairs = [(100.0, 95.0), (50.0, 48.0), (100.0, 40.0)]
    records = [
        transfer(series, number, rate)
        for number, rates in enumerate(pairs)
        for series, rate in zip((PLAIN, AGENT), rates, strict=True)
    ]
    report = content_splice.report(records)
    rate, cpu, packets = report.goals
    assert rate.reached and rate.seen == "0.95 (pairs: 0.40 to 0.96)"
    assert cpu.reached and packets.seen == "0 in 3 transfers" and packets.reached
    content_splice.EXPERIMENT.draw(records, Figure())
    late = content_splice.report([*records, transfer(AGENT, 3, 90.0, after=2)])
    assert late.goals[2].reached is False and late.tables[0].rows[1][-1] == "0 to 2"
    assert content_splice.report(records[:1]).goals[0].reached is None


def test_pairs_take_turns_in_beginning() -> None:
    names = [point.parameters["series"] for point in content_splice.points(True)]
    assert len(names) == 20 and names[:4] == [PLAIN.name, AGENT.name, AGENT.name, PLAIN.name]


# -- the cost of decisions


def decisions(kind: str, *times_ns: tuple[int, float, float, float]) -> Record:
    names = ("rules", "first_ns", "last_ns", "none_ns")
    lines = [{"kind": kind, **dict(zip(names, times, strict=True))} for times in times_ns]
    return record({"kind": kind, "each_s": 0.1}, lines=lines)


def body(kind: str, *lines: tuple[int, str, float]) -> Record:
    shown = [{"body": kind, "bytes": n, "place": w, "ns": ns, "mb_per_s": 1e3 * n / ns} for n, w, ns in lines]
    return record({"kind": kind, "each_s": 0.1}, lines=shown)


def asked(series: contentplace.Series, rules: int, us: float) -> Record:
    parameters = {"series": series.name, "rules": rules, "place": "last", "rate_per_s": 100.0, "seconds": 3.0}
    return record(parameters, cpu_us={"switch": 400.0, series.process: us})


def test_decisions_are_flat_or_linear() -> None:
    flat = decisions("prefix", (1, 600.0, 700.0, 500.0), (10_000, 900.0, 1000.0, 900.0))
    scan = decisions("regex without a literal", *((n, 9.0, 300.0 * n, 400.0 * n) for n in (1, 10, 100)))
    report = content_rules.report([flat, scan])
    assert goal_of(report, "prefix: flat").reached and goal_of(report, "prefix: flat").seen == "1.80 times, 1.00 us"
    assert goal_of(report, "exact: flat").reached is None
    assert goal_of(report, "linear up to 100").seen == "10.0 times the time for 10 times the rules"
    assert goal_of(report, "linear up to 100").reached
    slow = decisions("prefix", (1, 3000.0, 3000.0, 3000.0), (10_000, 3000.0, 3000.0, 5500.0))
    assert goal_of(content_rules.report([slow]), "prefix: flat").reached is False, "above 5 us"
    grown = decisions("prefix", (1, 100.0, 100.0, 100.0), (10_000, 300.0, 100.0, 100.0))
    assert goal_of(content_rules.report([grown]), "prefix: flat").reached is False, "three times as long"


def test_bodies_are_held_to_their_slowest_size() -> None:
    xml = body(
        "xml",
        *((size, where, size * 5.0) for size in (1050, 1_000_100) for where in ("late", "absent")),
        *((size, "early", 900.0) for size in (1050, 1_000_100)),
    )
    report = content_rules.report([xml])
    assert goal_of(report, "XML: at least").seen == "200 MB/s at 1,000 bytes"
    assert goal_of(report, "XML: ends").reached and goal_of(report, "XML: ends").seen == "0.0%"
    assert goal_of(report, "JSON: at least").reached is None
    json = body("json", *((1000, where, 20_000.0) for where in ("early", "late", "absent")))
    report = content_rules.report([json])
    assert goal_of(report, "JSON: at least").reached is False and goal_of(report, "JSON: ends").reached is False


def test_the_shapes_of_figures_6a_and_6c_are_reported() -> None:
    flat = decisions("prefix", (1, 600.0, 700.0, 500.0), (10_000, 900.0, 1000.0, 900.0))
    scan = decisions("regex without a literal", *((n, 9.0, 300.0 * n, 400.0 * n) for n in (1, 10, 100)))
    xml = body("xml", *((size, w, size * 5.0) for size in (1000, 10_000) for w in ("early", "late", "absent")))
    findings = [(finding.figure, finding.here, finding.agrees) for finding in content_rules.shapes([flat, scan, xml])]
    assert findings == [
        ("Fig. 6a", "1.43 times", False),
        ("Fig. 6a", "100.00 times", True),
        ("Fig. 6c", "10.00 times", False),
    ]


def test_the_chain_stands_beside_the_agent() -> None:
    records = [asked(AGENT, 10_000, 60.0), asked(CHAIN, 1, 200.0), asked(CHAIN, 10_000, 5000.0)]
    text = report_text(content_rules.EXPERIMENT, records)
    assert "| agent pass | last | - | 60 |" in text and "| HAProxy, chain | last | 200 | 5,000 |" in text


@pytest.mark.parametrize("experiment", [content_rules.EXPERIMENT, content_ttfb.EXPERIMENT, content_agent.EXPERIMENT])
def test_a_picture_is_drawn_of_whatever_there_is(experiment: Experiment, tmp_path: Path) -> None:
    figure = Figure()
    experiment.draw([], figure)
    figure.savefig(tmp_path / "nothing.svg")


# -- connections per second


def test_the_engine_is_held_to_100_000_a_second() -> None:
    engine = [record({}, per_s=rate) for rate in (90_000.0, 120_000.0)]
    lab = record({"series": AGENT.name, "seconds": 5.0}, per_s=1239.4, cpu_us={"switch": 292.0, "agent": 54.0})
    report = content_agent.report([*engine, lab])
    assert report.goals[0].reached and report.goals[0].seen.startswith("105,000")
    assert report.tables[0].rows[1] == ["agent pass", "1,239", "54", "292"]
    assert content_agent.report([engine[0]]).goals[0].reached is False
    content_agent.EXPERIMENT.draw([*engine, lab], Figure())


@pytest.mark.parametrize("module", [content_ttfb, content_splice, content_rules, content_agent])
def test_the_quick_form_of_each_takes_less_than_ten_minutes(module: Any) -> None:
    assert sum(point.seconds for point in module.points(True)) < 600
