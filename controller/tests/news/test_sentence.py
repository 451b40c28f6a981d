"""Tests of the sentence that users read, for each cause: destination, limit, and whether weights are frozen."""

import numpy as np
import pytest
from sluice.addresses import Packed, from_text
from sluice.balance import Counts
from sluice.news import Cause, Limit, News, NewsMode, NewsOptions, Observation, Requests, Verdict
from sluice.news.sentence import sentence
from sluice.news.window import Measurement

WEB = from_text("10.0.0.100").packed

CROWDED = "Flash crowd at web: limit 40.0/s, 39.0/s admitted, 60.0/s refused"
UNANSWERED = "connection requests unanswered; there is no crowd"


@pytest.mark.parametrize(
    ("verdict", "limited", "says"),
    [
        (Verdict(Cause.NORMAL), False, "Normal: 50.0 requests/s, fast responses at 100.0 kbit/s."),
        (
            Verdict(Cause.NORMAL),
            True,
            "Normal: 50.0 requests/s, fast responses at 100.0 kbit/s; limit 40.0/s kept at web.",
        ),
        (Verdict(Cause.CROWD), False, "Flash crowd at web: not limited yet, 39.0/s admitted."),
        (Verdict(Cause.CROWD), True, f"{CROWDED}."),
        (Verdict(Cause.CROWD, freeze=True), True, f"{CROWDED}; the weights are frozen."),
        (Verdict(Cause.CROWD, (3,)), True, f"{CROWDED}; s3 answers worse than the others."),
        (Verdict(Cause.CROWD, (2, 3)), True, f"{CROWDED}; s2 and s3 answer worse than the others."),
        (Verdict(Cause.SICK, (3,)), False, f"Sick server: s3 leaves {UNANSWERED}."),
        (Verdict(Cause.SICK, (1, 2, 3)), False, f"Sick servers: s1, s2 and s3 leave {UNANSWERED}."),
        (
            Verdict(Cause.SICK, (1, 2), freeze=True),
            False,
            f"Sick servers: s1 and s2 leave {UNANSWERED}; the weights are frozen.",
        ),
        (Verdict(Cause.FLOOD), False, "Flood of connection requests, 110.0/s."),
        (Verdict(Cause.FLOOD, freeze=True), False, "Flood of connection requests, 110.0/s; the weights are frozen."),
        (
            Verdict(Cause.FLOOD, freeze=True),
            True,
            "Flood of connection requests, 110.0/s (web: limit 40.0/s, 39.0/s admitted, 60.0/s refused);"
            " the weights are frozen.",
        ),
    ],
)
def test_every_cause_is_one_sentence(verdict: Verdict, limited: bool, says: str) -> None:
    measured = Measurement(ar=100_000.0, flows=20, fastest=2, offered=110.0, admitted=50.0, refused=60.0)
    limit = Limit(40.0, 10.0) if limited else None
    said = sentence(
        verdict,
        measured,
        limit,
        WEB,
        (39.0, 60.0),
        everyone=False,
        name={WEB: "web"}.__getitem__,
        server_name="s{}".format,
    )
    assert said == says


def test_static_mode_never_promises_a_limit_and_figures_of_all_are_said_to_be() -> None:
    measured = Measurement(ar=100_000.0, flows=20, fastest=2, offered=110.0, admitted=50.0, refused=60.0)

    def said(hot_spot: Packed | None, *, overall: bool, static: bool) -> str:
        return sentence(
            Verdict(Cause.CROWD),
            measured,
            None,
            hot_spot,
            (39.0, 60.0),
            everyone=False,
            overall=overall,
            static=static,
            name={WEB: "web"}.__getitem__,
            server_name="s{}".format,
        )

    assert said(WEB, overall=False, static=True) == "Flash crowd at web: limited as configured only, 39.0/s admitted."
    unknown = "Flash crowd at an unknown destination"
    assert said(None, overall=True, static=False) == f"{unknown}: not limited yet, 39.0/s admitted in all."
    assert said(None, overall=True, static=True) == f"{unknown}: limited as configured only, 39.0/s admitted in all."


FINE = Counts(syn=100, synack=100, completed=99)
DROWNED = Counts(syn=300, synack=60, completed=58)
SPOOFED = Counts(syn=500, synack=490, completed=100)


@pytest.mark.parametrize("mode", list(NewsMode))
@pytest.mark.parametrize(
    ("counts", "ar", "cause"),
    [(FINE, 20_000.0, Cause.CROWD), (SPOOFED, 100_000.0, Cause.FLOOD), (DROWNED, 100_000.0, Cause.FLOOD)],
)
def test_weights_are_called_frozen_where_they_are(mode: NewsMode, counts: Counts, ar: float, cause: Cause) -> None:
    """Only production mode freezes the weights, and only its sentence mentions frozen weights."""
    news = News(NewsOptions(mode=mode, period_s=1))
    decision, requests, ledger = None, Requests(), Counts()
    for time in range(18):
        trouble = time >= 10
        requests += Requests(200, 200) if trouble and cause is Cause.CROWD else Requests(40, 40)
        ledger += counts if trouble else FINE
        rates = np.full(20, ar if trouble else 100_000.0)
        decision = news.observe(Observation(float(time), rates, {WEB: requests}, {1: ledger, 2: ledger}))
    assert decision is not None
    assert decision.verdict.cause is cause
    assert decision.freeze == (mode is NewsMode.PRODUCTION)
    assert ("the weights are frozen" in decision.sentence) == decision.freeze
