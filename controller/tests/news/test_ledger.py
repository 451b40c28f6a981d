"""A sliding window over the counters of all servers equals a separate window for each server."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sluice.balance.counts import CELL_BITS, CounterReset, Counts
from sluice.balance.window import Window
from sluice.news.ledger import LedgerWindow

SERVERS = (3, 1, 7, 12)
CELLS = st.tuples(*[st.integers(0, 2000)] * 5)


class Each:
    """Reference implementation: a separate window of `intervals` intervals for each server."""

    def __init__(self, intervals: int) -> None:
        self.intervals = intervals
        self.windows: dict[int, Window] = {}
        self.readings: dict[int, Counts] = {}

    def push(self, reading: dict[int, Counts]) -> None:
        self.windows = {server: self.windows.get(server) or Window(self.intervals) for server in reading}
        for server, counts in reading.items():
            try:
                difference = counts.since(self.readings.get(server, counts))
            except CounterReset:
                difference = counts
            self.windows[server].push(difference)
        self.readings = dict(reading)


@given(
    st.integers(1, 4),
    st.lists(
        st.one_of(
            st.dictionaries(st.sampled_from(SERVERS), CELLS),
            st.sampled_from(["rebase", "restart"]),
        ),
        max_size=12,
    ),
)
def test_all_servers_at_once_are_each_by_itself(
    intervals: int, steps: list[dict[int, tuple[int, int, int, int, int]] | str]
) -> None:
    window, each = LedgerWindow(intervals), Each(intervals)
    # The counters start close to their maximum, so that they wrap during the test.
    counters = {server: [(1 << CELL_BITS) - 3000] * 5 for server in SERVERS}
    for step in steps:
        if step == "rebase":
            window.rebase()
            each.readings.clear()
        elif isinstance(step, str):
            counters = {server: [0] * 5 for server in SERVERS}
        else:
            for server, more in step.items():
                counters[server] = [(a + b) % (1 << CELL_BITS) for a, b in zip(counters[server], more, strict=True)]
            reading = {server: Counts(*counters[server]) for server in step}
            window.push(reading)
            each.push(reading)
            assert window.sums == {server: window.total for server, window in each.windows.items()}


def test_a_shorter_window_keeps_the_newest() -> None:
    window = LedgerWindow(3)
    for total in (0, 1, 11, 111):
        window.push({5: Counts(syn=total)})
    assert window.sums == {5: Counts(syn=111)}
    window.resize(2)
    assert window.sums == {5: Counts(syn=110)}
