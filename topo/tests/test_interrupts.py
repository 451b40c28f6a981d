"""Test that an interrupt is delayed while a process is being started, and is not lost."""

import signal

import pytest

from topo.testbed.interrupts import Interrupted, held_back, interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_begun_is_done_before_an_interrupt(number: signal.Signals) -> None:
    done: list[str] = []
    with interruptible():
        with pytest.raises(Interrupted) as interrupted, held_back():
            signal.raise_signal(number)
            done.append("started")
        assert done == ["started"]
        assert interrupted.value.number == number


def test_without_an_interrupt_handlers_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible():
        inside = signal.getsignal(signal.SIGTERM)
        with held_back():
            assert signal.getsignal(signal.SIGTERM) is not inside
        assert signal.getsignal(signal.SIGTERM) is inside
    assert signal.getsignal(signal.SIGTERM) is before


def test_who_ignores_signals_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with held_back():
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
