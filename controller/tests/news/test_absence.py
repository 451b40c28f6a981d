"""Test of ADR 0139: after an absence of up to an hour, a controller's last baseline predicts the request rate better
than the mean of the same hour on earlier days does."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sluice.features.crowd.baseline import LIFE_S

Floats = NDArray[np.float64]
DAYS, DAY, WEEK = 28, 1440, 7
"""Simulated days, minutes in a day, and the number of days over which the mean of an hour of the day is taken."""


def load(seed: int, *, days: float, minutes: float) -> Floats:
    """Return simulated requests/s for each minute: four times as many by day as by night, fewer at weekends.

    `days` is the standard deviation of the logarithm of a random factor for each day; `minutes` is that of a second
    factor, which drifts within about an hour.
    """
    random = np.random.default_rng(seed)
    minute = np.arange(DAYS * DAY)
    of_day = 40 * np.exp(0.5 * np.log(4) * np.sin(2 * np.pi * minute / DAY))
    of_week = np.where(minute // DAY % WEEK >= 5, 0.8, 1.0)
    wandering = np.zeros(minute.size)
    for i, step in enumerate(random.standard_normal(minute.size - 1), start=1):
        wandering[i] = wandering[i - 1] * np.exp(-1 / 60) + step * np.sqrt(1 - np.exp(-2 / 60))
    differing = np.exp(days * random.standard_normal(DAYS))[minute // DAY]
    rate = of_day * of_week * differing * np.exp(minutes * wandering)
    return random.poisson(rate * 60) / 60


def errors(rate: Floats, absent: int) -> tuple[float, float]:
    """Return the median of abs(ln(predicted / actual)) of two predictions of a rate after `absent` minutes of absence.

    The first prediction is the rate of the last minute before the absence, the second the mean rate of the same hour on
    the WEEK days before.
    """
    now = np.arange(2 * WEEK * DAY, rate.size, 7)
    hours = rate.reshape(-1, 60).mean(axis=1)
    of_other_days = np.mean([hours[now // 60 - 24 * back] for back in range(1, WEEK + 1)], axis=0)
    last, by_hour = (float(np.median(np.abs(np.log(x / rate[now])))) for x in (rate[now - absent], of_other_days))
    return last, by_hour


@pytest.mark.parametrize("days, minutes", [(0.15, 0.1), (0.3, 0.2)])
def test_the_last_value_predicts_better_than_the_hour_of_day_until_it_is_stale(days: float, minutes: float) -> None:
    rate = load(1, days=days, minutes=minutes)
    for absent in (1, 10, round(LIFE_S / 60)):
        last, by_hour = errors(rate, absent)
        assert last < by_hour, f"after {absent} minutes"
    last, by_hour = errors(rate, 3 * round(LIFE_S / 60))
    assert last > by_hour
