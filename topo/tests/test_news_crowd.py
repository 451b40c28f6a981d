"""A short flash crowd from end to end: it is noticed and limited, and nothing else is harmed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from topo.load.outcomes import Ending
from topo.news.plan import TARGET
from topo.news.records import bulk_connections, read_records
from topo.news.run import Run, is_done, make_run
from topo.news.scenarios import NETWORK, PRODUCTION
from topo.news.settings import Settings
from topo.switches import switch_kind

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root")

SETTINGS = replace(
    Settings(),
    period_s=32.0,
    before=4,
    after=3,
    quiet_per_s=10.0,
    crowd_per_s=60.0,
    ramp_s=20.0,
    link_bit_per_s=1e6,
    bulk_bit_per_s=160e3,
    web_per_s=2.0,
)
"""Half the paper's rates on half its link: light enough for a machine that does something else as well."""


def test_a_crowd_is_noticed_and_limited_and_connections_stay(tmp_path: Path) -> None:
    run = Run(NETWORK, PRODUCTION, NETWORK.settle(SETTINGS))
    directory = tmp_path / "run"
    make_run(run, switch_kind(), directory, lambda left: None)
    assert is_done(run, switch_kind(), directory)
    assert not is_done(replace(run, static_per_s=1.0), switch_kind(), directory)
    records = read_records(directory)

    assert records.alarm_s() is not None
    limited = [row for row in records.rows if row.limit_per_s > 0 and row.time_s > records.onset_s]
    assert limited
    assert sum(row.refused_per_s for row in limited) > 0
    # The established connection that was there before the crowd is there after it, and carries.
    assert bulk_connections(directory) == 1
    assert sum(size for moment, size in records.bulk if moment > records.onset_s + records.period_s) > 0
    # Clients were refused, others were served, none was cut off.
    target = [one for one in records.outcomes if one.server == TARGET and one.due_s > records.onset_s]
    assert any(one.ending is Ending.FINISHED for one in target)
    assert any(one.retries for one in target)
    assert not any(one.ending in (Ending.BROKEN, Ending.REFUSED) for one in target)
