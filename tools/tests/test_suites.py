"""Tests how other projects' suites are run and judged, with suites that this file creates in the same layout."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.suites import guide, onos, ptf, tutorials
from tools.suites.__main__ import main
from tools.suites.errors import SuiteError, TooLateError, UnmetError
from tools.suites.onos_basic import crc16
from tools.suites.place import Place, Program, place
from tools.suites.prompt import fields, mininet, packets
from tools.suites.report import Outcome, Result, as_json, status, summary
from tools.tests.test_bench_interrupt import processes_of
from topo.testbed.switches.embedded import BINARY as EMBEDDED

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "crates/p4runtime/tests/p4/everything.json"
P4INFO = PROGRAM.with_suffix(".p4info.txtpb")
OTHER_P4INFO = ROOT / "switch/engine/tests/p4/arrays.p4info.txtpb"
WITHIN_S = 60.0

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
built = pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return an empty folder in place of the user's clone of a suite."""
    folder = tmp_path / "suite"
    folder.mkdir()
    return folder


@pytest.fixture
def where(suite: Path) -> Iterator[Place]:
    """Yield a copy of the folder `suite`, with an environment in which the command simple_switch_grpc starts the
    embedded switch."""
    with place(suite, EMBEDDED) as made:
        yield made


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


# -- tests of the reports


PASSED = Result("a", Outcome.PASSED)
FAILED = Result("b", Outcome.FAILED, "first\nsecond", 12.34)
SKIPPED = Result("c", Outcome.SKIPPED, "why")


def test_results_are_lines_a_summary_a_status_and_json() -> None:
    assert FAILED.line().splitlines() == ["failed     12 s  b: first", "            second"]
    assert summary([PASSED, FAILED, PASSED]) == "2 passed, 1 failed, 0 skipped"
    assert status([PASSED, SKIPPED]) == 0
    assert status([PASSED, FAILED]) == 1
    assert status([SKIPPED]) == 1, "nothing has passed"
    assert status([]) == 1
    made = as_json("tutorials", "embedded", None, [FAILED])
    assert made["results"] == [{"name": "b", "outcome": "failed", "reason": "first\nsecond", "seconds": 12.34}]


PTF = f"""Using packet manipulation module: ptf.packet_scapy
demo.One ... a word that ends with ok
of a test that prints
ok
demo.Two ... FAIL
demo.Three ... ERROR
demo.Four ... skipped 'no such port'

{"=" * 70}
ERROR: demo.Three
{"-" * 70}
Traceback (most recent call last):
  File "demo.py", line 9, in runTest
KeyError: 'x'

{"=" * 70}
FAIL: demo.Two
{"-" * 70}
Traceback (most recent call last):
  File "demo.py", line 7, in runTest
AssertionError: no

{"-" * 70}
Ran 4 tests in 0.002s

FAILED (failures=1, errors=1, skipped=1)
"""


def test_ptf_says_what_became_of_each_test() -> None:
    results = {result.name: result for result in ptf.results("demo", PTF)}
    assert [result.outcome for result in results.values()] == ["passed", "failed", "failed", "skipped"]
    assert results["demo demo.Two"].reason == "AssertionError: no"
    assert results["demo demo.Three"].reason == "KeyError: 'x'"
    assert "no such port" in results["demo demo.Four"].reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "ptf ran 0 tests"),
        ("demo.p4(3): error: no\nsimple_switch_grpc: command not found\n", "command not found"),
        ("demo.One ... Killed\n", "it did not end"),
        (PTF.replace("Ran 4", "Ran 5"), "ptf ran 5 tests"),
    ],
)
def test_tests_that_ptf_does_not_finish_have_failed(said: str, reason: str) -> None:
    assert any(reason in result.reason for result in ptf.results("demo", said) if result.outcome == "failed")


# -- tests of the scripts' environment


@pytest.mark.root
@as_root
class TestPlace:
    """Tests of the copy of a suite's folder, the environment of its scripts, and the network namespaces in which the
    scripts run."""

    def test_scripts_find_the_embedded_switch_under_its_usual_names(self, where: Place) -> None:
        names = ("simple_switch_grpc", "simple_switch", "simple_switch_CLI")
        paths = run(where, "; ".join(f"readlink -f $(command -v {name})" for name in names))
        expected = [EMBEDDED.resolve(), *(ROOT / "tools/bmv2" / name for name in names[1:])]
        assert paths.split() == list(map(str, expected))

    def test_with_bmv2_they_find_what_path_has(self, suite: Path) -> None:
        with place(suite, None) as where:
            assert str(where.folder.parent) not in run(where, "command -v simple_switch_grpc || true")

    def test_sudo_keeps_path_and_takes_variables(self, where: Place) -> None:
        assert run(where, "sudo -E WORD=said sh -c 'echo $WORD $PATH'") == f"said {where.environment['PATH']}\n"

    def test_nothing_lands_in_the_users_folder(self, suite: Path, where: Place) -> None:
        run(where, "echo built > artefact")
        assert (where.folder / "artefact").is_file()
        assert not list(suite.iterdir())

    def test_the_copy_goes_unless_it_is_kept(self, suite: Path, tmp_path: Path) -> None:
        with place(suite, EMBEDDED) as temporary:
            pass
        assert not temporary.folder.exists()
        for _ in range(2):
            with place(suite, EMBEDDED, tmp_path / "kept") as permanent:
                assert permanent.folder == tmp_path / "kept/suite"
            assert permanent.folder.is_dir()
            with pytest.raises(SuiteError, match="is there already"), place(suite, EMBEDDED, tmp_path / "kept"):
                pass
            permanent.folder.rmdir()

    def test_interfaces_and_processes_are_their_own(self, where: Place) -> None:
        assert run(where, "ip -o link | wc -l; ls /sys/class/net; cat /proc/1/comm").split() == ["1", "lo", "sh"]
        assert "127.0.0.1" in run(where, "ip -o addr show lo")

    def test_the_end_ends_what_a_script_left_behind(self, where: Place, tmp_path: Path) -> None:
        mark = f"STARTED_BY={tmp_path}"
        environment = {**where.environment, "STARTED_BY": str(tmp_path)}
        leaving = "setsid sleep 600 >/dev/null 2>&1 & nohup sleep 600 >/dev/null 2>&1 & echo left; cat"
        program = Program(environment, ["sh", "-c", leaving], where.folder)
        program.until("left", WITHIN_S)
        assert len(processes_of(mark)) >= 3
        program.end()
        assert processes_of(mark) == []

    def test_what_is_missing_is_named(self, where: Place) -> None:
        where.require(["sh", "python3"], ["json"])
        with pytest.raises(SuiteError, match=r"no-such-tool is not on PATH; python3 .* no module no_such_module"):
            where.require(["no-such-tool"], ["no_such_module"])


def run(where: Place, command: str) -> str:
    """Run a shell command in the copy of the suite's folder, and return its output."""
    program = Program(where.environment, ["sh", "-c", command], where.folder)
    try:
        return program.rest(WITHIN_S)
    finally:
        program.end()


# -- tests of the suite `tutorials`

PROMPT = """run:
	@while printf 'mininet> '; read -r line; do sh -c "$$line"; done
"""


@pytest.mark.root
@as_root
class TestPrompt:
    """Tests with a shell that behaves like Mininet's prompt."""

    @pytest.fixture
    def suite(self, suite: Path) -> Path:
        (suite / "Makefile").write_text(PROMPT)
        return suite

    def test_commands_are_typed_and_answered_in_turn(self, where: Place) -> None:
        with mininet(where, where.folder) as net:
            assert net.say("echo one") == "one\n"
            assert net.say("echo two > log") == ""
            assert net.log("log") == "two\n"
            assert net.log("no-such-log") == ""

    def test_a_command_that_does_not_end_is_too_late(self, where: Place) -> None:
        with mininet(where, where.folder) as net, pytest.raises(TooLateError):
            net.say("sleep 600", 0.2)

    def test_an_end_says_the_last_words(self, where: Place) -> None:
        with mininet(where, where.folder) as net, pytest.raises(SuiteError, match="cannot bind port"):
            net.say("echo cannot bind port; kill $PPID")

    def test_a_message_is_sent_until_it_comes(self, where: Place) -> None:
        with mininet(where, where.folder) as net:
            sending = "echo x >> sent; [ $(wc -l < sent) -lt 2 ] || echo got a packet >> log"
            net.deliver(sending, "log", lambda _: True, "a message")
            assert net.log("sent") == "x\n" * 2


SHOWN = """sniffing on eth0
got a packet
###[ IP ]###
     tos       = 0x1
     ttl       = 62
     \\options   \\
      |###[ MRI ]###
      |  count     = 2
      |   |  swid      = 2
      |   |  qdepth    = 0
      |   |  swid      = 1
      |   |  qdepth    = 17
got a packet
###[ IP ]###
     tos       = 0x3
"""


def test_fields_of_packets_that_a_receiver_prints() -> None:
    first, second = packets(SHOWN)
    assert (fields(first, "swid"), fields(first, "qdepth"), fields(second, "swid")) == (["2", "1"], ["0", "17"], [])
    assert [fields(packet, "tos") for packet in (first, second)] == [["0x1"], ["0x3"]]


def test_a_solution_takes_the_place_of_what_it_solves(suite: Path) -> None:
    for name in ("a.p4", "topo/s1.json", "solution/a.p4", "solution/s1.json", "solution/new.py"):
        script(suite / name, name)
    tutorials.lay(suite, "*.p4")
    assert ((suite / "a.p4").read_text(), (suite / "topo/s1.json").read_text()) == ("solution/a.p4", "topo/s1.json")
    tutorials.lay(suite, "*")
    assert ((suite / "topo/s1.json").read_text(), (suite / "new.py").read_text()) == (
        "solution/s1.json",
        "solution/new.py",
    )


EXERCISE = f"""#!{sys.executable}
import sys
from pathlib import Path

sys.path.insert(0, "{ROOT}")
import grpc
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from topo.testbed.p4runtime import Client
from topo.testbed.entities import Entities
from topo.testbed.mininet import CLI, Mininet, Node, Switch

ADDRESS = "127.0.0.1:50051"


class P4Switch(Switch):
    def start(self, controllers):
        ports = " ".join(f"-i {{port}}@{{link.name}}" for port, link in self.intfs.items() if link.name != "lo")
        self.cmd(f"simple_switch_grpc {{ports}} --no-p4 -- --grpc-server-addr {{ADDRESS}} > switch.log 2>&1 &")

    def stop(self, deleteIntfs=True):
        self.cmd("kill %simple_switch_grpc; wait")


net = Mininet(controller=None, autoStaticArp=True)
switch = net.addSwitch("s1", cls=P4Switch, inNamespace=False)
for number in (1, 2):
    host = net.addHost(f"h{{number}}", cls=Node, ip=f"10.0.0.{{number}}/24", mac=f"02:00:00:00:00:0{{number}}")
    net.addLink(host, switch, port2=number)
net.start()
grpc.channel_ready_future(grpc.insecure_channel(ADDRESS)).result({WITHIN_S})
info = text_format.Parse(Path("{P4INFO}").read_text(), p4i.P4Info())
entities, client = Entities(info), Client.primary(ADDRESS)
client.push(info, Path("{PROGRAM}").read_bytes())
for number in map(int, sys.argv[1:]):
    entry = entities.entry("exact_t", {{"dst": 0x020000000000 + number}}, "forward", {{"port": number}})
    client.write([p4r.Update(type=p4r.Update.INSERT, entity=entry)])
CLI(net)
net.stop()
"""


@pytest.mark.root
@as_root
@built
class TestExercises:
    """Tests with a repository in the layout of p4lang/tutorials, with Mininet and a program that this file contains."""

    @pytest.fixture
    def suite(self, suite: Path) -> Path:
        script(suite / "exercises/basic/Makefile", "run:\n\tsudo PATH=$(PATH) ./run_exercise.py $$(cat hosts)\n")
        script(suite / "exercises/basic/run_exercise.py", EXERCISE)
        script(suite / "exercises/basic/hosts", "1")
        script(suite / "exercises/basic/solution/hosts", "1 2")
        script(suite / "exercises/own/Makefile", "")
        return suite

    def test_an_exercises_solution_passes_on_the_embedded_switch(
        self, where: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tutorials, "COMMANDS", ("make",))
        monkeypatch.setattr(tutorials, "MODULES", ())
        results = {result.name: result for result in tutorials.run(where, ())}
        assert results["basic"].outcome == "passed", results["basic"].reason
        assert results["own"].outcome == "skipped"

    def test_without_its_solution_it_fails(self, where: Place) -> None:
        with (
            mininet(where, where.folder / "exercises/basic") as net,
            pytest.raises(UnmetError, match="h1 -> X"),
        ):
            tutorials.basic(net)

    def test_names_that_are_not_there(self, where: Place) -> None:
        with pytest.raises(SuiteError, match="there is no exercise calc, only basic, own"):
            list(tutorials.run(where, ["basic", "calc"]))


def test_a_folder_that_is_no_such_repository(suite: Path) -> None:
    for suite_run in (tutorials.run, guide.run):
        with pytest.raises(SuiteError, match="is it a clone of"):
            list(suite_run(Place(suite, dict(os.environ)), ()))
    with pytest.raises(SuiteError, match="is it a clone of"):
        list(onos.run(suite, EMBEDDED, ()))


# -- tests of the suite `p4-guide`

RUNPTF = f"""#!/bin/sh
sudo simple_switch_grpc --log-file ss-log --log-flush -i 1@veth2 -i 2@veth4 --no-p4 &
sudo `which ptf` --pypath {ROOT} -i 1@veth3 -i 2@veth5 --test-dir ptf
sudo pkill --signal 9 --list-name simple_switch
"""
VETHS = """#!/bin/sh
for number in 2 4; do
  ip link add veth$number type veth peer name veth$((number + 1))
  for name in veth$number veth$((number + 1)); do
    sysctl -q net.ipv6.conf.$name.disable_ipv6=1  # no neighbour discovery beside the tests' packets
    ip link set $name up
  done
done
"""
TESTS = f"""
from pathlib import Path
import grpc
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from ptf import testutils
from ptf.base_tests import BaseTest
import ptf
from topo.testbed.p4runtime import Client
from topo.testbed.entities import Entities

class Forwarded(BaseTest):
    def setUp(self):
        self.dataplane = ptf.dataplane_instance
        grpc.channel_ready_future(grpc.insecure_channel("localhost:9559")).result({WITHIN_S})
        info = text_format.Parse(Path("{P4INFO}").read_text(), p4i.P4Info())
        self.entities, self.client = Entities(info), Client.primary("localhost:9559")
        self.client.push(info, Path("{PROGRAM}").read_bytes())

    def tearDown(self):
        self.client.close()

    def runTest(self):
        entry = self.entities.entry("exact_t", {{"dst": 2}}, "forward", {{"port": 2}})
        self.client.write([p4r.Update(type=p4r.Update.INSERT, entity=entry)])
        packet = testutils.simple_tcp_packet(eth_dst="00:00:00:00:00:02")
        testutils.send_packet(self, 1, packet)
        testutils.verify_packets(self, packet, [2])

class Missed(Forwarded):
    def runTest(self):
        testutils.verify_packets(self, testutils.simple_tcp_packet(), [2])
"""


@pytest.mark.root
@as_root
@built
class TestGuide:
    """Tests with a repository in the layout of jafingerhut/p4-guide, with a passing and a failing PTF test."""

    @pytest.fixture
    def suite(self, suite: Path) -> Path:
        script(suite / "demo/runptf.sh", RUNPTF)
        script(suite / "demo/ptf/demo.py", TESTS)
        script(suite / "other/runptf.sh", "run-dpdk\n")
        script(suite / "bin/veth_setup.sh", VETHS)
        return suite

    def test_each_test_of_a_script_is_reported(self, where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ptf, "COMMANDS", ("ptf", "pkill"))
        monkeypatch.setattr(guide, "MODULES", ())
        path = os.pathsep.join([where.environment["PATH"], str(Path(sys.executable).parent)])
        results = list(guide.run(Place(where.folder, {**where.environment, "PATH": path}), ()))
        assert [(result.name, result.outcome) for result in results] == [
            ("demo demo.Forwarded", "passed"),
            ("demo demo.Missed", "failed"),
        ], results
        assert results[1].reason.startswith("AssertionError: Expected packet was not received")


# -- tests of the suite `onos`


@built
class TestOnos:
    """Tests with a folder that contains compiled pipelines at the paths that ONOS uses."""

    @pytest.fixture
    def suite(self, suite: Path) -> Path:
        folder = suite / "pipelines/own/src/main/resources/p4c-out"
        for place_of_one in ("bmv2/own.json", "named/bmv2/default/bmv2.json"):
            script(folder / place_of_one, PROGRAM.read_text())
        script(folder / "bmv2/own_p4info.txt", P4INFO.read_text())
        script(folder / "named/bmv2/default/p4info.txt", OTHER_P4INFO.read_text())
        return suite

    def test_pipelines_are_loaded_and_read(self, suite: Path) -> None:
        results = {result.name: result for result in onos.run(suite, EMBEDDED, ())}
        assert results["own loads"].outcome == "passed", results["own loads"].reason
        assert results["named loads"].outcome == "failed"
        assert "SetForwardingPipelineConfig" in results["named loads"].reason, "its P4Info is that of another program"

    def test_names_that_are_not_there(self, suite: Path) -> None:
        with pytest.raises(SuiteError, match="there is no pipeline basic, only own, named"):
            list(onos.run(suite, EMBEDDED, ["basic"]))


def test_crc16_is_arc() -> None:
    assert crc16(b"123456789") == 0xBB3D


# -- tests of the command line


def test_what_cannot_run_is_said_and_ends_with_2(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["onos", str(suite / "no-such-folder")]) == 2
    assert "no-such-folder is no folder" in capsys.readouterr().err
    assert main(["onos", str(suite), "--switch", str(suite / "no-such-switch")]) == 2
    assert "no-such-switch is not there; build it" in capsys.readouterr().err


@built
def test_bmv2_is_not_the_embedded_switch_under_its_name(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(ROOT / "tools/bmv2"), prepend=os.pathsep)
    assert main(["onos", str(suite), "--bmv2"]) == 2
    assert "simple_switch_grpc is the embedded switch" in capsys.readouterr().err


@pytest.mark.root
@as_root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@built
def test_interrupted_it_leaves_nothing(suite: Path, tmp_path: Path, number: signal.Signals) -> None:
    tools = tmp_path / "tools"
    for name in ("p4c", "ptf"):
        script(tools / name, "#!/bin/sh\n")
    script(tools / "python3", "#!/bin/sh\n")
    script(
        suite / "demo/runptf.sh", f"simple_switch_grpc --no-p4 &\ntouch {shlex.quote(str(tmp_path))}/began; sleep 600"
    )
    script(suite / "bin/veth_setup.sh", "#!/bin/sh\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "STARTED_BY": str(tmp_path)}
    command = [sys.executable, "-m", "tools.suites", "p4-guide", str(suite)]
    with subprocess.Popen(
        command, cwd=ROOT, env={**environment, "TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "began").exists():
            assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 128 + number
    assert "everything it started is gone" in errors
    assert processes_of(f"STARTED_BY={tmp_path}") == []
    assert not list(temporary.iterdir())
