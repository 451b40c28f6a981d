"""Tests of the defaults and bounds of flash-crowd control's parameters."""

import pytest
from pydantic import TypeAdapter, ValidationError
from sluice.news import NewsMode, NewsOptions, NewsProductionOptions, OptionsError


def test_the_papers_values_are_the_defaults() -> None:
    options = NewsOptions(mode=NewsMode.PAPER)
    assert (options.period_s, options.fast_share, options.gain_quiet, options.gain_alarm) == (64, 0.1, 0.125, 0.875)
    assert options.interval_s == 64
    assert options.window_intervals == 1


def test_what_the_paper_leaves_open_is_as_documented() -> None:
    """The paper leaves delta, step, N and the bucket open; docs/reference/crowds.md explains the step of a fifth."""
    options = NewsOptions()
    assert (options.tolerance, options.step, options.table_size, options.bucket_s) == (0.1, 0.2, 64, 0.25)
    assert (options.limit_min, options.limit_max) == (1, 100_000)


def test_production_has_its_own_period_and_window() -> None:
    options = NewsOptions()
    assert options.interval_s == 1
    assert options.window_intervals == 4


def test_contradictions_are_named() -> None:
    with pytest.raises(OptionsError, match="limit_min 10 is above limit_max 5"):
        NewsOptions(limit_min=10, limit_max=5)
    with pytest.raises(OptionsError, match="window_s"):
        NewsOptions(production=NewsProductionOptions(window_s=0.5))
    with pytest.raises(OptionsError, match="probe_min"):
        NewsOptions(production=NewsProductionOptions(probe_min=0.5))


@pytest.mark.parametrize(
    "wrong",
    [{"tolerence": 0.1}, {"tolerance": 1.0}, {"fast_share": 0}, {"production": {"noise": -1}}, {"limit_min": 0}],
)
def test_configuration_refuses_unknown_keys_and_values_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(NewsOptions).validate_python(wrong)
    assert TypeAdapter(NewsOptions).validate_python({"mode": "paper", "tolerance": 0.2}).mode is NewsMode.PAPER
