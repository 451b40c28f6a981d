"""Report on runs, simulated or in the lab, that are labelled with their true cause: right and wrong verdicts, and
actions for a wrong cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sluice.news import Cause

from experiments.experiment import Figure, Goal, Record, Report, Table, Values
from experiments.records import matching
from topo.plan.causes import CAUSES, CROWDS, FAILING, SICK_NAME, Judged, Label

RIGHT = 0.95


def values(run: Judged) -> Values:
    """Return the figures of a run as values that JSON can represent."""
    return {
        "cause": run.cause,
        "held": run.causes[run.cause],
        "named": sorted(run.named),
        "limited": run.limited,
        "moved": run.moved,
    }


def right(record: Record) -> bool:
    """Return whether the run's most frequent verdict is the true cause of the run's label, and the controller named as
    sick only the failing server, or no server if the label has no failing server."""
    label, result = Label(record.parameters["label"]), record.result
    names = [SICK_NAME] if label in FAILING else []
    return result["cause"] == CAUSES[label] and result["named"] == names


def wronged(record: Record) -> list[str]:
    """Return the controller's actions that the true cause does not justify."""
    label, result = Label(record.parameters["label"]), record.result
    limit = ["a limit"] if result["limited"] and label not in CROWDS else []
    return limit + (["weights"] if result["moved"] and label not in FAILING else [])


def report(records: Sequence[Record]) -> Report:
    """Report the confusion matrix, whether nearly all verdicts are right, and whether no action had a wrong cause."""
    causes, rows, shares = list(Cause), list[list[str]](), list[tuple[float, str]]()
    for label in Label:
        runs = matching(records, label=label)
        if not runs:
            continue
        said = Counter(record.result["cause"] for record in runs)
        share = sum(map(right, runs)) / len(runs)
        shares.append((share, label))
        wrong = Counter(word for record in runs for word in wronged(record))
        rows.append(
            [
                label,
                *(str(said[cause] or "") for cause in causes),
                f"{100 * share:.0f} %",
                f"{100 * sum(record.result['held'] for record in runs) / len(runs):.0f} %",
                ", ".join(f"{word}: {count}" for word, count in wrong.items()),
            ]
        )
    heading = ["what goes wrong", *(str(cause) for cause in causes), "right", "of the time", "wrongly moved"]
    moved = [record.key for record in records if wronged(record)]
    least, worst = min(shares, default=(1.0, "none"))
    return Report(
        tables=[Table(heading, rows)],
        goals=[
            Goal(
                "the verdict, and the server it names, are right in at least 95 % of the runs of each label",
                least >= RIGHT,
                f"{100 * least:.0f} % at least ({worst})",
            ),
            Goal(
                "no limit and no weight is moved by the wrong cause",
                not moved,
                f"in {len(moved)} of {len(records)} runs" + (f" ({', '.join(moved[:3])})" if moved else ""),
            ),
        ],
        summary={label: share for share, label in shares},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw for each label a box plot over runs: the share of the time for which a run's most frequent verdict held."""
    axes = figure.subplots()
    labels = [label for label in Label if any(record.parameters["label"] == label for record in records)]
    shares = [[record.result["held"] for record in records if record.parameters["label"] == label] for label in labels]
    axes.boxplot(shares, orientation="horizontal", tick_labels=list(labels))
    axes.set_xlabel("part of the time that the verdict held, from 10 s after the onset on")
