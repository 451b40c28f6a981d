"""Tests of the clients' delays on a kernel with netem, on a kernel without netem, and if netem fails for one
interface."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from topo.labs.crowds import links
from topo.labs.crowds.run import META, conditions
from topo.plan.crowd.network import CLIENTS, ROUTER
from topo.plan.crowd.scenarios import Settings
from topo.testbed.network import Network

INTERFACES = {client.name: f"r1-eth{client.number}" for client in CLIENTS}


class Kernel:
    """A kernel without TUN devices, whose fake `tc` logs its calls and refuses netem on the interface `refuses`."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, refuses: str) -> None:
        self._log = directory / "asked"
        commands = {
            "tc": f'echo "$@" >> {self._log}\ncase "$*" in *add*{refuses}*) exit 2;; esac\n',
            "mnexec": 'shift 2\nexec "$@"\n',
            "setpriv": 'shift 2\nexec "$@"\n',
        }
        for name, text in commands.items():
            (directory / name).write_text(f"#!/bin/sh\n{text}")
            (directory / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        monkeypatch.setattr(links, "TUN", directory / "none")

    def set(self, settings: Settings) -> str:
        lab = SimpleNamespace(pid={ROUTER.name: 1}.get)
        return links.set_distances(cast(Network, lab), INTERFACES, settings)

    def asked(self) -> list[str]:
        return self._log.read_text().splitlines()


def test_netem_has_every_round_trip_divided_by_k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(tmp_path, monkeypatch, refuses="nothing")
    assert kernel.set(Settings(k=8.0)) == "netem"
    assert kernel.asked()[0] == "qdisc add dev r1-eth1 root netem delay 5000us limit 20000"
    assert len(kernel.asked()) == len(CLIENTS)


def test_loss_is_netems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(tmp_path, monkeypatch, refuses="nothing")
    assert kernel.set(Settings(loss=0.005)) == "netem, loss 0.50%"
    assert all(line.endswith("limit 20000 loss 0.5%") for line in kernel.asked())


def test_netem_that_fails_halfway_is_on_no_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(tmp_path, monkeypatch, refuses="r1-eth3")
    assert kernel.set(Settings()).startswith("none: the kernel has neither netem nor TUN devices")
    assert kernel.asked()[3:] == ["qdisc del dev r1-eth1 root", "qdisc del dev r1-eth2 root"]


def test_loss_without_netem_is_reported_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(tmp_path, monkeypatch, refuses="r1-eth1")
    assert kernel.set(Settings(loss=0.01)).endswith("without the loss that was asked for: that needs netem")
    assert len(kernel.asked()) == 1


def test_distance_and_tcp_are_a_line_of_the_results(tmp_path: Path) -> None:
    settings = replace(Settings(), initcwnd=3)
    (tmp_path / META).write_text(json.dumps({"distance": "netem", "settings": asdict(settings)}))
    assert conditions(tmp_path) == "distance: netem; initial window: 3 segments; congestion control: reno"
