"""Tests that every drop reason and every punt reason (why the controller receives a packet) is tested."""

from __future__ import annotations

import ast
from pathlib import Path

from harness.base import StageTest
from sluice.names import DropReason, PuntReason

UNREACHABLE = {
    DropReason.CPU_HEADER: "P4Runtime itself completes or refuses a packet-out without its header; "
    "intake.NoCpuHeader tests what can be tested from outside",
}
STATED = ("drops", "answers", "punts", "reports_sender", "assertLimited", "refuses")
"""Methods whose calls state the effects of a packet, with its drop or punt reason."""


def stated(enum: str) -> set[str]:
    """Return the members of an enum that the tests name in calls of the methods in STATED."""
    members: set[str] = set()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in STATED:
                values = [*call.args, *(keyword.value for keyword in call.keywords)]
                for node in (node for value in values for node in ast.walk(value)):
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == enum:
                        members.add(node.attr)
    return members


class EveryDropReason(StageTest):
    """Every drop reason is asserted by a test, except for unreachable reasons, each with an explanation."""

    def runTest(self) -> None:
        tested = stated("DropReason")
        for reason in DropReason:
            if reason is not DropReason.NONE and reason not in UNREACHABLE:
                self.assertIn(reason.name, tested, f"no test drops a packet for {reason.name}")
        for reason in UNREACHABLE:
            self.assertNotIn(reason.name, tested, f"{reason.name} is reached after all")


class EveryPuntReason(StageTest):
    """Every punt reason is asserted by a test."""

    def runTest(self) -> None:
        tested = stated("PuntReason")
        for reason in PuntReason:
            if reason is not PuntReason.NONE:
                self.assertIn(reason.name, tested, f"no test punts a packet for {reason.name}")
