"""Tests of the runs of `make news`, and of the checks, tables and summary of their figures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml
from sluice.config import load
from sluice.news.limit import bucket
from sluice.switch.bucket import Bucket

from topo.labs.crowds import series
from topo.labs.crowds.__main__ import Results, chosen_settings, parse_options
from topo.labs.crowds.programme import COMPRESSION, compressed, one_run, programme
from topo.labs.crowds.summary import Result, checks, entry, summary, table
from topo.plan.crowd.configuration import controller_config
from topo.plan.crowd.measures import Figures
from topo.plan.crowd.network import FAST, SLOW, TARGET
from topo.plan.crowd.scenarios import (
    BULK,
    HOT_SPOT,
    NETWORK,
    NONE,
    PRODUCTION,
    RISING_LOAD,
    SERVER,
    STATIC,
    STATIC_SAME,
    VARIANTS,
    WEB,
    Further,
    Scenario,
    Settings,
)
from topo.plan.crowd.traffic import crowds_requests
from topo.testbed.errors import SetupError

ZERO = Figures(**{field.name: 0 for field in fields(Figures)})
QUIET = replace(ZERO, bystander_latency_median_ms=20.0, bystander_goodput_kbps=100.0)
GOOD = replace(
    QUIET,
    detected_after_intervals=1.2,
    response_loss=0.02,
    ar_kbps=95.0,
    bystander_latency_median_ms=30.0,
    bystander_goodput_kbps=95.0,
    bottleneck_used=0.9,
)
NO_CONTROL = replace(GOOD, detected_after_intervals=math.nan, response_loss=0.4)


def result(figures: Figures) -> Result:
    return Result(8.0, 8.0, figures, QUIET)


RESULTS = {
    NETWORK.name: {
        NONE.name: result(NO_CONTROL),
        HOT_SPOT.name: result(GOOD),
        STATIC_SAME.name: result(replace(GOOD, ar_kbps=100.0)),
        PRODUCTION.name: result(replace(GOOD, detected_after_intervals=0.5)),
    },
    RISING_LOAD.name: {HOT_SPOT.name: result(ZERO)},
}


def test_the_programme_is_within_its_time() -> None:
    full, quick = programme(Settings(), quick=False), programme(Settings(), quick=True)
    assert sum(planned.seconds for planned in full) < 45 * 60
    assert sum(planned.seconds for planned in quick) < 10 * 60
    assert len(quick) == 3
    names = [planned.name for planned in full]
    assert len(set(names)) == len(names)
    for run in full:
        if run.variant.static_from:
            assert names.index(f"{run.scenario.name}/{run.variant.static_from}") < names.index(run.name)


def test_bmv2_has_half_the_load_and_a_quarter_of_it_where_the_link_fills() -> None:
    runs = programme(Settings(), quick=False)
    factors = {run.name: compressed(run, "bmv2").settings.k for run in runs}
    assert factors.pop(f"{NETWORK.name}/{NONE.name}") == 2
    assert set(factors.values()) == {4}
    assert [compressed(run, "embedded") for run in runs] == runs


def test_in_production_mode_the_link_fills_in_the_same_seconds_on_both_switches() -> None:
    crowd = next(planned for planned in programme(Settings(), quick=False) if planned.variant is PRODUCTION)
    ramps = {kind: compressed(crowd, kind).settings for kind in COMPRESSION}
    assert {ramp.ramp_s / ramp.k for ramp in ramps.values()} == {7.5}


def test_the_table_marks_a_run_at_another_compression() -> None:
    network = RESULTS[NETWORK.name] | {NONE.name: replace(RESULTS[NETWORK.name][NONE.name], k=2.0)}
    marked = [line for line in table({NETWORK.name: network}).splitlines() if "(k" in line]
    assert len(marked) == 1
    assert marked[0].startswith("  no control (k = 2) ")
    assert "(k" not in table(RESULTS)


def test_the_table_marks_a_crowd_that_rises_faster() -> None:
    network = RESULTS[NETWORK.name] | {PRODUCTION.name: replace(RESULTS[NETWORK.name][PRODUCTION.name], ramp_s=30.0)}
    marked = [line for line in table({NETWORK.name: network}).splitlines() if "ramp" in line]
    assert len(marked) == 1
    assert marked[0].startswith("  NEWS, production (ramp of 30 s) ")
    assert "ramp" not in table(RESULTS)


def test_the_table_states_the_means_of_delay_once() -> None:
    under = {name: replace(entry, conditions="distance: netem") for name, entry in RESULTS[NETWORK.name].items()}
    assert table({NETWORK.name: under}).splitlines()[-1] == "  distance: netem"
    assert table({NETWORK.name: under}).count("netem") == 1


def test_a_run_of_an_hour_is_one() -> None:
    hour = one_run(RISING_LOAD, PRODUCTION, Settings(), hour=True).settings
    assert 3600 <= hour.seconds < 3800
    assert one_run(NETWORK, PRODUCTION, Settings(), hour=False).settings == Settings()


def test_the_summary_has_the_figures_of_every_variant() -> None:
    by_scenario = summary(RESULTS)
    network = by_scenario[NETWORK.name]
    assert isinstance(network, dict)
    assert list(network) == [NONE.name, HOT_SPOT.name, STATIC_SAME.name, PRODUCTION.name]
    assert network[HOT_SPOT.name] == {
        "detected_after_intervals": 1.2,
        "false_alarms": 0,
        "rejected_share": 0,
        "response_loss": 0.02,
        "ar_kbps": 95.0,
        "admitted_per_s": 0,
        "offered_per_s": 0,
        "bystander_latency_ms": {"mean": 0, "median": 30.0},
        "bystander_refused": 0,
        "bystander_goodput_kbps": 95.0,
    }
    assert network[NONE.name]["detected_after_intervals"] is None
    together = replace(RESULTS[NETWORK.name][HOT_SPOT.name].crowd, bystander_refused=math.nan)
    assert entry(together)["bystander_refused"] is None


def test_every_check_holds_when_all_is_well() -> None:
    reached = checks(RESULTS)
    assert reached and all(reached.values())


@pytest.mark.parametrize(
    ("variant", "worse", "says"),
    [
        (HOT_SPOT.name, {"detected_after_intervals": 1.5}, "alarm within 1.4 intervals"),
        (HOT_SPOT.name, {"detected_after_intervals": math.nan}, "alarm within 1.4 intervals"),
        (PRODUCTION.name, {"detected_after_intervals": 0.7}, "alarm within 5 s of the clock"),
        (HOT_SPOT.name, {"false_alarms": 1}, "no alarm before the onset"),
        (HOT_SPOT.name, {"response_loss": 0.04}, "response loss at most 3 %"),
        (NONE.name, {"response_loss": 0.1}, "response loss without control"),
        (HOT_SPOT.name, {"ar_kbps": 90.0}, "static limiter's at NEWS's own mean"),
        (STATIC_SAME.name, {"ar_kbps": 120.0}, "best static limiter's"),
        (PRODUCTION.name, {"bottleneck_used": 0.8}, "bottleneck at least 85 % used"),
        (HOT_SPOT.name, {"bystander_latency_median_ms": 40.0}, "bystander's median latency"),
        (HOT_SPOT.name, {"bystander_refused": 1}, "no bystander refused"),
        (HOT_SPOT.name, {"bystander_goodput_kbps": 80.0}, "bulk keeps at least 90 %"),
    ],
)
def test_a_check_fails_by_itself(variant: str, worse: dict[str, float], says: str) -> None:
    result = RESULTS[NETWORK.name][variant]
    network = {**RESULTS[NETWORK.name], variant: replace(result, crowd=replace(result.crowd, **worse))}
    failed = [name for name, holds in checks({NETWORK.name: network}).items() if not holds]
    assert any(says in name for name in failed)


@pytest.mark.parametrize(
    ("scenario", "absent", "worse", "says"),
    [
        (BULK, {"bystander_latency_median_ms": math.nan}, {"bystander_goodput_kbps": 80.0}, "bulk keeps"),
        (WEB, {"bystander_goodput_kbps": 0.0}, {"bystander_latency_median_ms": 40.0}, "median latency"),
        (WEB, {"bystander_goodput_kbps": 0.0}, {"bystander_refused": 1}, "no bystander refused"),
    ],
)
def test_a_single_bystander_is_checked_and_an_absent_one_is_not(
    scenario: Scenario, absent: dict[str, float], worse: dict[str, float], says: str
) -> None:
    result = replace(
        RESULTS[NETWORK.name][HOT_SPOT.name], crowd=replace(GOOD, **absent), quiet=replace(QUIET, **absent)
    )
    assert all(checks({scenario.name: {HOT_SPOT.name: result}}).values())
    harmed = replace(result, crowd=replace(result.crowd, **worse))
    (failed,) = [name for name, holds in checks({scenario.name: {HOT_SPOT.name: harmed}}).items() if not holds]
    assert failed.startswith(f"{scenario.name}: ") and says in failed


def test_a_planned_run_that_is_missing_fails() -> None:
    names = [f"{NETWORK.name}/{name}" for name in RESULTS[NETWORK.name]]
    network = {name: entry for name, entry in RESULTS[NETWORK.name].items() if name != STATIC_SAME.name}
    reached = checks({NETWORK.name: network}, names)
    assert [name for name, holds in reached.items() if not holds] == ["network-limited/static-news: has been run"]
    assert all(checks({NETWORK.name: RESULTS[NETWORK.name]}, names).values())


def test_the_whole_programme_has_what_the_shares_of_ar_are_of() -> None:
    names = {planned.name for planned in programme(Settings(), quick=False)}
    assert {
        f"{scenario.name}/{of.name}" for scenario in (NETWORK, SERVER) for of in (HOT_SPOT, STATIC_SAME, *STATIC)
    } <= names


def test_an_alarm_without_a_crowd_is_a_false_one() -> None:
    (name,) = [
        name
        for name, holds in checks({RISING_LOAD.name: {HOT_SPOT.name: result(replace(ZERO, false_alarms=1))}}).items()
        if not holds
    ]
    assert name == "false-alarm-rising-load: no alarm (news-hsi)"


def test_the_table_is_in_the_papers_scale() -> None:
    text = table({NETWORK.name: {NONE.name: result(replace(NO_CONTROL, ar_kbps=800.0))}})
    row = next(line for line in text.splitlines() if "no control" in line)
    assert " 100 " in row and "40.0%" in row and " 240 " in row


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: variant.name)
def test_the_controller_takes_every_variants_configuration(tmp_path: Path, variant: object) -> None:
    assert isinstance(variant, type(NONE))
    content = controller_config(
        FAST,
        thrift=True,
        settings=Settings(),
        static_per_s=variant.static_per_s,
        news=variant.news(SERVER.settle(Settings())),
    )
    (tmp_path / "sluice.yaml").write_text(yaml.safe_dump(content))
    load.load(tmp_path / "sluice.yaml")


def test_a_further_service_has_an_address_and_a_server_program(tmp_path: Path) -> None:
    content = controller_config(FAST, settings=Settings(), further=[Further(3, SLOW, 2.0, 30.0)])
    service = load.parse(yaml.safe_dump(content)).services[-1]
    assert (service.name, str(service.address), service.port) == ("further-3", "10.0.0.104", 80)
    assert [(str(server.address), server.port) for server in service.servers] == [("10.0.12.1", 8083)]


def test_crowds_begin_and_end_when_they_are_to() -> None:
    settings = replace(Settings(), before=2, after=4, ramp_s=0.0)
    further = Further(1, SLOW, quiet_per_s=2.0, crowd_per_s=30.0, begins_s=100.0, lasts_s=50.0)
    scenario = replace(NETWORK, lasts_s=80.0, further=(further,))
    requests = list(crowds_requests(scenario, settings))

    def per_s(service: str, begin_s: float, end_s: float) -> float:
        """Return the mean rate between two times after the onset."""
        begin, end = settings.onset_s + begin_s, settings.onset_s + end_s
        return sum(request.server == service and begin <= request.time_s < end for request in requests) / (
            end_s - begin_s
        )

    spans = [(-100, 0), (0, 80), (80, 200)], [(-100, 100), (100, 150), (150, 250)]
    rates = [per_s(name, *span) for name, own in zip((TARGET, further.name), spans, strict=True) for span in own]
    assert rates == pytest.approx([20, 110, 20, 2, 30, 2], rel=0.25)


@pytest.mark.parametrize("k", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("per_s", [2.0, 30.0, 33.7, 60.0])
def test_a_static_limit_has_the_bucket_that_news_would_have(tmp_path: Path, k: float, per_s: float) -> None:
    settings = Settings(k=k)
    content = controller_config(
        FAST,
        thrift=True,
        settings=settings,
        static_per_s=per_s,
        news=HOT_SPOT.news(settings),
    )
    config = load.parse(yaml.safe_dump(content))
    admission = config.services[0].admission
    assert admission is not None and config.news is not None
    own = bucket(per_s * k, config.news)
    assert Bucket(admission.rate_per_s, admission.burst) == Bucket.rounded(own.rate, own.burst)
    assert admission.burst == max(1, round(per_s / 4))


def test_the_command_line_lists_its_choices() -> None:
    options = parse_options(["--scenario", "bystander-web"])
    assert (options.scenario, options.variant, options.quick) == ("bystander-web", "production", False)
    with pytest.raises(SystemExit):
        parse_options(["--scenario", "nothing"])


@pytest.mark.parametrize("k", ["8.5", "0", "-1", "nan", "inf", "much"])
def test_time_is_compressed_by_at_most_eight(k: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_options(["--k", "8"]).k == 8.0
    with pytest.raises(SystemExit):
        parse_options([f"--k={k}"])
    assert f"'{k}': time is compressed by a number above 0 and at most 8" in capsys.readouterr().err


def test_loss_is_a_percentage_of_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--scenario", "network-limited"]
    assert chosen_settings(parse_options([*arguments, "--loss", "2.5", "--k", "4"])) == Settings(k=4.0, loss=0.025)
    assert (
        chosen_settings(parse_options(arguments))
        == chosen_settings(parse_options([*arguments, "--loss", "0"]))
        == Settings()
    )
    with pytest.raises(SystemExit):
        parse_options(["--loss", "1"])
    assert "--loss is for one run: give a --scenario, too" in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["100", "-1", "nan", "inf", "2%", "much"])
def test_a_loss_that_is_none_is_refused(loss: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--scenario", "network-limited", f"--loss={loss}"])
    assert f"'{loss}': of the packets, a percentage of at least 0 and below 100 is lost" in capsys.readouterr().err


def test_a_limit_that_needs_another_run_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    alone = one_run(NETWORK, STATIC_SAME, Settings(), hour=False)
    with pytest.raises(SetupError, match=r"a run of news-hsi .* `make news` makes both; or .* static-30, static-40"):
        Results(tmp_path, "embedded", print).make([alone])


def test_a_series_is_a_table_and_json_without_what_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWITCH", raising=False)
    monkeypatch.setattr(series, "switch_kind", lambda: "embedded")

    def measure(chosen: series.Series, output: Path, kind: str) -> list[series.Row]:
        assert (output, kind) == (tmp_path, "embedded")
        return [{"phase": 0.5, "first_limit_per_s": math.nan}]

    monkeypatch.setattr(series, "measure", measure)

    def table(rows: Sequence[series.Row]) -> str:
        return f"{len(rows)} row"

    phases = replace(series.SERIES["phases"], table=table)
    monkeypatch.setitem(series.SERIES, "phases", phases)
    assert series.main(["phases", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 row\n"
    assert json.loads((tmp_path / "phases.json").read_text()) == [{"phase": 0.5, "first_limit_per_s": None}]
