"""``sluice config init``: writes a commented example configuration."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluice.loops.commands import Refused

NAME = "sluice.yaml"


def init(options: argparse.Namespace) -> int:
    """Write the example to a new file. Raises Refused if the file exists, and OSError if it cannot be written."""
    text = template().read_text(encoding="utf-8")
    text = text.replace(".venv/bin/sluice", "sluice").replace(f"examples/{NAME}", str(options.config))
    try:
        with Path(options.config).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise Refused(f"{options.config} exists already; give another name with --config") from error
    print(f"{options.config}: an example; change it, then `sluice check --config {options.config}`")
    return 0


def template() -> Path:
    """Return the path of the example configuration: inside an installed package, or in ``examples`` of a checkout."""
    installed = Path(__file__).parents[1] / NAME
    return installed if installed.is_file() else Path(__file__).parents[3] / "examples" / NAME
