"""The conditions of a figure's runs: form, days, commits, machine, load average, and packets that the switch lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from experiments.experiment import Record, Table
from experiments.machine import Machine
from experiments.records import set_up


def table(form: str, records: Sequence[Record], machines: Sequence[Machine]) -> Table:
    """Return a table with a row for each condition that the records contain."""
    known = {
        "form": form,
        "runs each": times(records),
        "days (UTC)": days(records),
        "commits": commits(record.program for record in records),
        "commits of the lab's runs": commits(
            record.result["lab_program"] for record in records if "lab_program" in record.result
        ),
        "machine": " and ".join(machine.sentence() for machine in machines),
        "load average": load(records),
        "packets that the switch itself lost": lost(records),
        "packets/s through the switch, at most": most_per_s(records),
    }
    return Table(["run", ""], [[name, value] for name, value in known.items() if value])


def times(records: Sequence[Record]) -> str:
    """Return the number of runs of each set-up as text, as a range if set-ups differ."""
    counts = Counter(map(set_up, records)).values()
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    return f"{most}" if least == most else f"{least} to {most}"


def days(records: Sequence[Record]) -> str:
    """Return the first and the last day of the runs (UTC), or the only day, as text."""
    made = sorted({datetime.fromtimestamp(record.began, UTC).date() for record in records})
    return " to ".join(dict.fromkeys(f"{day}" for day in (*made[:1], *made[-1:])))


def commits(programs: Iterable[str]) -> str:
    """Return the commits of the runs as text, each commit once."""
    return "; ".join(dict.fromkeys(program or "not noted" for program in programs))


def load(records: Sequence[Record]) -> str:
    """Return the range of the machine's load averages at the ends of the runs, as text; "" if no run recorded them."""
    known = [record.load for record in records if record.load is not None]
    return f"{min(known):.0f} to {max(known):.0f}{of_some(len(known), records)}" if known else ""


def lost(records: Sequence[Record]) -> str:
    """Return how many packets the switch lost in all runs that counted losses (differences between the counters of the
    interfaces and of the pipeline)."""
    passed = [record.result["switch"] for record in records if record.result.get("switch")]
    count = sum(counts["lost_before"] + counts["lost_after"] for counts in passed)
    return f"{count}{of_some(len(passed), records)}" if passed else ""


def of_some(known: int, records: Sequence[Record]) -> str:
    """Return the number of runs for which a condition is known, as text; "" if the condition is known for all runs."""
    return f", known of {known} of {len(records)} runs" if known < len(records) else ""


def most_per_s(records: Sequence[Record]) -> str:
    """Return as text the packets per second that the switch received in the run with the highest mean rate; "" if no
    run counted packets."""
    rates = [
        record.result["switch"]["received"] / record.parameters["seconds"]
        for record in records
        if record.result.get("switch") and "seconds" in record.parameters
    ]
    return f"{max(rates):,.0f}" if rates else ""
