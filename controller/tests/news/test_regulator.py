"""Tests of the scoreboard and of Chen & Heidemann's rules for the limit."""

from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from sluice.news import NewsOptions
from sluice.news.limit import bucket
from sluice.news.regulator import PaperRegulator
from sluice.news.scoreboard import Direction, Scoreboard

OPTIONS = NewsOptions(step=0.1, limit_min=5, limit_max=1000)


def test_the_papers_example() -> None:
    """Section 5.2: with scores 5 and 3 the limit is raised; the score becomes 6 if the alarm resets, 4 otherwise."""
    helped, useless = Scoreboard(up=5, down=3), Scoreboard(up=5, down=3)
    assert helped.choose() is Direction.UP
    helped.judge(alarm=False)
    assert (helped.up, helped.down) == (6, 3)
    useless.choose()
    useless.judge(alarm=True)
    assert (useless.up, useless.down) == (4, 3)


def test_equal_scores_decrease_and_a_verdict_needs_a_move() -> None:
    board = Scoreboard()
    board.judge(alarm=False)
    assert (board.up, board.down) == (0, 0)
    assert board.choose() is Direction.DOWN
    board.judge(alarm=False)
    board.judge(alarm=False)
    assert (board.up, board.down) == (0, 1)


def test_transitions() -> None:
    regulator = PaperRegulator(OPTIONS)
    regulator.adjust()
    assert regulator.rate is None  # no limit before the first alarm
    regulator.start(100)  # alarm 0 -> 1
    assert regulator.rate == 100
    regulator.adjust()  # alarm 1 -> 1: the scores are equal, so the limit is reduced
    assert regulator.rate == approx(90)
    regulator.adjust()  # alarm 1 -> 1: the reduction was penalised, so the limit is raised
    assert regulator.rate == approx(99)
    assert (regulator.scores.up, regulator.scores.down) == (0, -1)
    regulator.release()  # alarm 1 -> 0: the raise is credited, the limit stays
    assert regulator.rate == approx(99)
    assert (regulator.scores.up, regulator.scores.down) == (1, -1)
    regulator.start(60)  # the next crowd starts from the rate admitted then; the scores remain
    regulator.adjust()
    assert regulator.rate == approx(66)


def test_an_alarm_that_never_resets_makes_the_published_scoreboard_alternate() -> None:
    """A move that does not help is penalised, so raises and reductions alternate: two intervals reduce by step^2."""
    regulator = PaperRegulator(OPTIONS)
    regulator.start(100)
    for _ in range(10):
        regulator.adjust()
    assert regulator.rate == approx(100 * 0.99**5)


def test_bucket_is_a_quarter_second_and_at_least_one_connection() -> None:
    assert bucket(56, OPTIONS).burst == 14
    assert bucket(5, NewsOptions(bucket_s=0.1)).burst == 1


@given(st.lists(st.one_of(st.none(), st.booleans(), st.floats(0, 1e9)), max_size=100))
def test_the_limit_never_leaves_its_bounds(moves: list[float | bool | None]) -> None:
    regulator = PaperRegulator(OPTIONS)
    for move in moves:
        if move is None:
            regulator.release()
        elif isinstance(move, bool):
            regulator.adjust()
        else:
            regulator.start(move)
        if regulator.rate is not None:
            assert OPTIONS.limit_min <= regulator.rate <= OPTIONS.limit_max
