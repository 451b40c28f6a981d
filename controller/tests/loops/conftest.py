"""Fixtures of the tests of running controllers: a function that writes a configuration for the fake switch."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import web
from fakeswitch import FakeSwitch
from live import WriteConfig


@pytest.fixture
def write_config(switch: FakeSwitch, tmp_path: Path, pipeline_dir: Path) -> WriteConfig:
    """Return a function that writes a configuration for the fake switch; its keywords are those of `configs.web`."""

    def write(name: str = "sluice.yaml", **options: object) -> Path:
        path = tmp_path / name
        control = str(options.pop("control", tmp_path / f"{path.stem}.sock"))
        path.write_text(web(switch.address, str(pipeline_dir), control=control, **options))  # type: ignore[arg-type]
        return path

    return write
