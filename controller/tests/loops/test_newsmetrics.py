"""Tests of the metrics of flash-crowd control: before the first decision, without a crowd, and in a crowd."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from sluice.addresses import from_text
from sluice.controller import Controller
from sluice.features.crowd.status import as_json as news_status
from sluice.views import status
from sluice.views.metrics import StatusCollector
from virtual import Run

WEB = "10.0.0.100"
ONSET = 60.0
OPTIONS = "{mode: production, production: {baseline_s: 20}, hosts: [{name: files, address: 10.0.2.77}]}"
PACKETS = {"forwarded": 0, "drops": {}, "punts": {}, "punts_limited": {}}


def crowd(now: float) -> dict[str, float]:
    return {WEB: 230.0 if now >= ONSET else 30.0, "10.0.2.77": 10.0}


def scraped(run: Run, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Return the samples about flash-crowd control and destinations in a scrape, by name and labels."""
    shown: dict[str, Any] = {"packets": PACKETS, "services": [], "news": news_status(run.view)}

    async def gather(controller: Controller) -> dict[str, Any]:
        return shown

    async def scrape() -> str:
        registry = CollectorRegistry()
        registry.register(StatusCollector(cast(Controller, None), asyncio.get_running_loop()))
        return (await asyncio.to_thread(generate_latest, registry)).decode()

    monkeypatch.setattr(status, "gather", gather)
    rows = (line.rpartition(" ") for line in asyncio.run(scrape()).splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows if name.startswith(("sluice_news_", "sluice_destination_"))}


def test_before_the_first_decision_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = scraped(Run(OPTIONS, crowd), monkeypatch)
    assert {name: str(value) for name, value in samples.items()} == {
        "sluice_news_alarm": "0.0",
        "sluice_news_ar_bytes_per_second": "nan",
        "sluice_news_ar_average_bytes_per_second": "nan",
        "sluice_news_flows": "0.0",
        "sluice_news_flow_share": "1.0",
        'sluice_news_cause{cause="unknown"}': "1.0",
    }


def test_a_crowd_is_in_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(OPTIONS, crowd).until(ONSET - 1)
    samples = scraped(run, monkeypatch)
    assert samples['sluice_news_cause{cause="normal"}'] == 1
    assert not [name for name in samples if name.startswith("sluice_news_limit_per_second")]

    run = Run(OPTIONS, crowd)
    run.until(ONSET + 5)
    alarmed = next(d for d in run.decisions if d.detection.alarm)
    run = Run(OPTIONS, crowd).until(alarmed.time_s + 0.5)
    assert scraped(run, monkeypatch)["sluice_news_alarm"] == 1

    run = Run(OPTIONS, crowd).until(ONSET + 30)
    last, samples = run.decisions[-1], scraped(run, monkeypatch)
    assert last.limit is not None and last.measurement.ar is not None and last.detection.ar_average is not None
    web = run.view.name(from_text(WEB).packed)
    assert samples['sluice_news_cause{cause="crowd"}'] == 1
    assert samples[f'sluice_news_limit_per_second{{destination="{web}"}}'] == pytest.approx(last.limit.rate, abs=0.001)
    assert samples["sluice_news_ar_bytes_per_second"] == pytest.approx(last.measurement.ar / 8)
    assert samples["sluice_news_ar_average_bytes_per_second"] == pytest.approx(last.detection.ar_average / 8)
    assert samples["sluice_news_flows"] == last.measurement.flows
    requests = run.view.requests[from_text(WEB).packed]
    for key in ("offered", "admitted", "refused", "returning"):
        assert samples[f'sluice_destination_{key}_total{{destination="{web}"}}'] == getattr(requests, key)
    assert requests.refused > 0
