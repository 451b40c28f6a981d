"""Time charts as options of Apache ECharts, by pure functions.

Text and axes are grey, which is legible on a light and on a dark background: the page cannot determine which of the two
the browser uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .history import Point

_GREY, _FAINT = "#888", "rgba(128, 128, 128, 0.25)"
_COLOURS = (
    "#4e79a7",
    "#f28e2b",
    "#59a14f",
    "#e15759",
    "#76b7b2",
    "#edc948",
    "#b07aa1",
    "#ff9da7",
    "#9c755f",
    "#bab0ac",
)
"""Tableau's ten colours, which are distinguishable on a light and on a dark background."""
_LEGEND = 12
"""The largest number of lines for which a legend is shown. With more lines, a tooltip names the line under the
pointer."""


def lines(title: str, names: Sequence[str], points: Sequence[Point]) -> dict[str, Any]:
    """Return the options of a chart with a line for each name. Unknown values are gaps in a line."""
    axis = {"axisLabel": {"color": _GREY}, "axisLine": {"lineStyle": {"color": _FAINT}}}
    return {
        "animation": False,
        "color": list(_COLOURS),
        "title": {"text": title, "left": 0, "textStyle": {"color": _GREY, "fontSize": 13, "fontWeight": "normal"}},
        "grid": {"left": 8, "right": 28, "top": 54, "bottom": 4, "containLabel": True},
        "legend": {
            "show": len(names) <= _LEGEND,
            "type": "scroll",
            "top": 24,
            "left": 0,
            "textStyle": {"color": _GREY},
        },
        "tooltip": {"trigger": "axis" if len(names) <= _LEGEND else "item", "confine": True},
        "xAxis": {"type": "time", "splitLine": {"show": False}, **axis},
        "yAxis": {"type": "value", "min": 0, "splitLine": {"lineStyle": {"color": _FAINT}}, **axis},
        "dataset": {"source": [[round(time_s * 1000), *values] for time_s, values in points]},
        "series": [
            {
                "id": str(number),
                "name": name,
                "type": "line",
                "showSymbol": False,
                "lineStyle": {"width": 1.5},
                "encode": {"x": 0, "y": number + 1},
            }
            for number, name in enumerate(names)
        ],
    }
