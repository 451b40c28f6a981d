"""Runs p4lang/tutorials: each exercise's solution with its Makefile and Mininet scripts, and the traffic that its
README describes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ptf
from .errors import SuiteError, expect
from .place import Place
from .prompt import Mininet, fields, mininet, packets
from .report import Outcome, Result

MODULES = ("mininet", "grpc", "p4.v1.p4runtime_pb2", "p4.tmp.p4config_pb2", "scapy.all", "psutil")
"""Python modules that the scripts import; p4.tmp.p4config_pb2 comes with p4lang/PI."""
COMMANDS = ("make", "python3", "p4c-bm2-ss", "ethtool", "ifconfig", "route", "arp")
FLOW_S = 15
"""Seconds for which iperf sends, according to the READMEs of ecn and mri; the probes are sent for twice as long."""
FLOW_ENDS_S = 120.0
IPERF_S = 5
CONNECTED_S = 10
"""Seconds after which a TCP connection that is not established counts as blocked."""
COMES_S = 120.0
"""The longest wait, in seconds, for the effect of a controller or probe; scapy starts slowly on a busy machine."""
MESSAGE = "P4 is cool"


def basic(net: Mininet) -> None:
    """Check pings between all hosts."""
    _all_reached(net.say("pingall", 120))


def basic_tunnel(net: Mininet) -> None:
    """Check that packets without a tunnel header are forwarded by address, and packets with one by the tunnel's
    destination."""
    h2, h3 = net.receive("h2"), net.receive("h3")

    def plain(address: str) -> Callable[[str], bool]:
        return lambda packet: MESSAGE in packet and address in fields(packet, "dst") and "MyTunnel" not in packet

    def tunnelled(address: str) -> Callable[[str], bool]:
        return lambda packet: MESSAGE in packet and address in fields(packet, "dst") and "2" in fields(packet, "dst_id")

    net.deliver(f'h1 ./send.py 10.0.2.2 "{MESSAGE}"', h2, plain("10.0.2.2"), "a message to 10.0.2.2")
    net.deliver(f'h1 ./send.py 10.0.3.3 "{MESSAGE}"', h3, plain("10.0.3.3"), "a message to 10.0.3.3")
    for address in ("10.0.2.2", "10.0.3.3"):
        sending = f'h1 ./send.py {address} "{MESSAGE}" --dst_id 2'
        net.deliver(sending, h2, tunnelled(address), f"a message to {address} in tunnel 2")
    expect(not any(map(plain("10.0.3.3"), packets(net.log(h2)))), "h2 has the message to 10.0.3.3")
    expect("MyTunnel" not in net.log(h3), "h3 has a message of tunnel 2")


def calc(net: Mininet) -> None:
    """Check the calculator's five operations."""
    sums = {"1+1": 2, "7-3": 4, "12&10": 8, "12|10": 14, "12^10": 6}
    typed = "".join(f"{expression}\\n" for expression in sums)
    said = net.say(f"h1 printf '{typed}quit\\n' | python3 calc.py")
    numbers = [int(line) for line in re.findall(r"^(\d+)\s*$", said, re.MULTILINE)]
    expect(numbers == list(sums.values()), f"{', '.join(sums)} give {numbers}:\n{said}")


def ecn(net: Mininet) -> None:
    """Check that some probes have the `tos` 1 and others 3, by which a switch with a long queue marks congestion."""
    marks = [value for packet in _probes_beside_a_flow(net) for value in fields(packet, "tos")[:1]]
    expect("0x1" in marks, f"no packet had the tos 0x1: {marks}")
    expect("0x3" in marks, f"no packet had the tos 0x3, which congestion is marked by: {marks}")


def mri(net: Mininet) -> None:
    """Check that packets list the switches on their path with the switches' queue lengths, and that the queue
    before the bottleneck is not always empty."""
    probes = _probes_beside_a_flow(net)
    ways = {tuple(fields(packet, "swid")) for packet in probes}
    expect(ways == {("2", "1")}, f"the switches of the packets' ways are {ways}, not 2 and 1")
    expect({count for packet in probes for count in fields(packet, "count")} == {"2"}, "a packet's count is not 2")
    depths = [int(fields(packet, "qdepth")[1]) for packet in probes]
    expect(max(depths) > 0, "the queue before the bottleneck is always empty")


def _probes_beside_a_flow(net: Mininet) -> list[str]:
    """Return the probes from h1 to h2, one per second, while iperf fills the link between the switches of these
    hosts."""
    h2 = net.receive("h2")
    net.deliver(f'h1 ./send.py 10.0.2.2 "{MESSAGE}" 1', h2, lambda packet: MESSAGE in packet, "a message")
    net.say("h22 iperf -s -u > h22.log 2>&1 &")
    net.say(f'h1 ./send.py 10.0.2.2 "{MESSAGE}" {2 * FLOW_S} > h1.log 2>&1 &')
    net.say(f"h11 iperf -c 10.0.2.22 -t {FLOW_S} -u", FLOW_ENDS_S)
    net.say("h1 wait", FLOW_ENDS_S)
    return [packet for packet in packets(net.log(h2)) if MESSAGE in packet]


def firewall(net: Mininet) -> None:
    """Check that TCP connections succeed within the internal network and from it to outside, but not from outside."""
    for client, server in (("h1", "h2"), ("h1", "h3")):
        expect(_iperf(net, client, server) > 0, f"iperf from {client} to {server} does not come about")
    expect(_iperf(net, "h3", "h1") == 0, "iperf from h3 to h1 is not blocked")


def flowcache(net: Mininet) -> str | None:
    """Check that the controller forwards first packets, installs flows for later ones, and removes idle flows.

    Return a remark if the controller reads 0 from its counter of packet-outs.
    """
    _ping_with_controller(net)

    def log() -> str:
        return net.log("controller.log")

    before = log().count("Deleted flow_cache entry")
    expect(net.comes(lambda: log().count("Deleted flow_cache entry") > before, COMES_S), "no idle flow is removed")
    said = net.say("h1 ping -c 2 -W 5 10.0.2.2")
    expect("icmp_seq=1 " in said, f"the first packet of a flow is not answered:\n{said}")
    expect(_counted(net, r"egressPktInCounter \d+"), "egressPktInCounter stays 0")
    if _counted(net, r"ingressPktOutCounter \d+"):
        return None
    # The counter's index is a field of an invalid header. The embedded switch then counts at index 0, which the
    # controller does not read; BMv2 counts at the field's value in an earlier packet.
    return "but ingressPktOutCounter stays 0: its index is a field of a header that is not valid"


def link_monitor(net: Mininet) -> None:
    """Check that probes measure the rate at which iperf sends."""
    net.say("h1 ./receive.py > probes.log 2>&1 &")
    net.say("h1 ./send.py > send.log 2>&1 &")
    expect(net.comes(lambda: "Switch 1" in net.log("probes.log"), COMES_S), "no probe has come back")
    # Without a limit, iperf's rate of 100 Mbit/s or more overloads the receiver, which then misses probes.
    sent = _iperf(net, "h1", "h4", "-b 5M")
    expect(sent > 0, "iperf from h1 to h4 does not come about")

    def measured() -> float:
        rates = re.findall(r"^Switch \d+ - Port \d+: ([\d.e+-]+) Mbps", net.log("probes.log"), re.MULTILINE)
        return max(map(float, rates))

    # The receiver also parses every packet of iperf, so its measurements come late: wait until they agree.
    agrees = net.comes(lambda: 0.5 < measured() / sent < 2, COMES_S)
    expect(agrees, f"iperf sent {sent:g} Mbit/s, the probes measured {measured():g} at most")


def _iperf(net: Mininet, client: str, server: str, flags: str = "") -> float:
    """Return the throughput of TCP between two hosts in Mbit/s; 0 if no connection is established.

    Mininet's own `iperf` command cannot be used: it waits indefinitely for a line that iperf 2.1 does not print.
    """
    log = f"{client}-{server}.log"
    net.say(f"{server} iperf -s > {log} 2>&1 &")
    expect(net.comes(lambda: "listening" in net.log(log), COMES_S), f"{server}'s iperf does not start")
    said = net.say(f"{client} timeout -s KILL {CONNECTED_S + IPERF_S} iperf -c {server} -t {IPERF_S} {flags}")
    net.say(f"{server} kill %iperf")
    rates = re.findall(r"([\d.]+) ([KMG]?)bits/sec", said)
    return float(rates[-1][0]) * {"": 1e-6, "K": 1e-3, "M": 1, "G": 1e3}[rates[-1][1]] if rates else 0.0


def load_balance(net: Mininet) -> None:
    """Check that messages reach both servers."""
    for log in (net.receive("h2"), net.receive("h3")):
        net.deliver(f'h1 ./send.py 10.0.0.1 "{MESSAGE}"', log, lambda packet: MESSAGE in packet, f"a message to {log}")


def multicast(net: Mininet) -> None:
    """Check that h1, h2 and h3 answer each other's pings but not h4's: h4 is not in the multicast group that ARP
    needs."""
    said = net.say("pingall", 120)
    for line in ("h1 -> h2 h3 X", "h2 -> h1 h3 X", "h3 -> h1 h2 X"):
        expect(line in said, f"pingall says:\n{said}")


def multicast_of_all(net: Mininet) -> None:
    """Check pings between all hosts, with the solution's multicast group."""
    _all_reached(net.say("pingall", 120))


def p4runtime(net: Mininet) -> None:
    """Check that the controller installs tunnels and reads their counters."""
    _ping_with_controller(net)
    for switch, kind, tunnel in (("s1", "in", 100), ("s2", "e", 100), ("s2", "in", 200), ("s1", "e", 200)):
        counter = f"{switch} MyIngress.{kind}gressTunnelCounter {tunnel}"
        expect(net.comes(lambda counter=counter: _counted(net, counter), COMES_S), f"{counter} stays 0")


def _ping_with_controller(net: Mininet) -> None:
    """Check that h2 does not answer pings; start the controller in the background; check that h2 then answers."""
    before = net.say("h1 ping -c 2 -W 1 10.0.2.2")
    expect(" 0 received" in before, f"h2 answers without a controller:\n{before}")
    net.say("sh ./mycontroller.py > controller.log 2>&1 &")

    def answers() -> bool:
        return " 0 received" not in net.say("h1 ping -c 3 -W 2 10.0.2.2")

    expect(net.comes(answers, COMES_S), f"h2 does not answer; the controller says:\n{net.log('controller.log')}")


def _counted(net: Mininet, counter: str) -> bool:
    """Return whether the controller has read a non-zero value from a counter; `counter` is a pattern."""
    return re.search(rf"{counter}: [1-9]\d* packets", net.log("controller.log")) is not None


def qos(net: Mininet) -> None:
    """Check that the header field `tos` is 0xb9 for UDP and 0xb1 for TCP."""
    h2 = net.receive("h2")
    for protocol, tos in (("UDP", "0xb9"), ("TCP", "0xb1")):

        def wanted(packet: str, tos: str = tos) -> bool:
            return MESSAGE in packet and tos in fields(packet, "tos")

        sending = f'h1 ./send.py --p={protocol} --des=10.0.2.2 --m="{MESSAGE}" --dur=2'
        net.deliver(sending, h2, wanted, f"a {protocol} message with tos {tos}")


def source_routing(net: Mininet) -> None:
    """Check a path with a loop and a path without; the time to live shows the number of hops."""
    h2 = net.receive("h2")
    for way, ttl in (("2 3 2 2 1", "59"), ("2 1", "62")):
        sending = f"h1 printf '{way}\\nq\\n' | ./send.py 10.0.2.2"
        net.deliver(sending, h2, lambda packet, ttl=ttl: ttl in fields(packet, "ttl"), f"a message by {way}")


def _all_reached(said: str) -> None:
    expect("Results: 0% dropped" in said, f"pingall says:\n{said}")


@dataclass(frozen=True)
class Exercise:
    """The check of an exercise according to its README, and the commands that it needs in addition to `COMMANDS`."""

    steps: Callable[[Mininet], str | None]
    """The check: raises UnmetError if it fails; otherwise returns a remark for the report, or None."""
    needs: tuple[str, ...] = ()
    solution: str = "*"
    """Pattern of the files in `solution/` that replace the exercise's files."""


TCPDUMP = ("tcpdump",)
"""The command with which scapy's receivers compile their packet filter."""
IPERF = ("iperf",)
PLAYED: dict[str, tuple[Exercise, ...]] = {
    "basic": (Exercise(basic),),
    "basic_tunnel": (Exercise(basic_tunnel),),
    "calc": (Exercise(calc),),
    "ecn": (Exercise(ecn, (*IPERF, *TCPDUMP)),),
    "firewall": (Exercise(firewall, IPERF),),
    "flowcache": (Exercise(flowcache),),
    "link_monitor": (Exercise(link_monitor, IPERF),),
    "load_balance": (Exercise(load_balance, TCPDUMP),),
    "mri": (Exercise(mri, (*IPERF, *TCPDUMP)),),
    "multicast": (Exercise(multicast, solution="*.p4"), Exercise(multicast_of_all)),
    "p4runtime": (Exercise(p4runtime),),
    "qos": (Exercise(qos),),
    "source_routing": (Exercise(source_routing, TCPDUMP),),
}


def run(place: Place, names: Sequence[str]) -> Iterator[Result]:
    """Yield the results, exercise by exercise. Raises SuiteError if no exercise can run."""
    exercises = place.folder / "exercises"
    known = sorted(path.parent.name for path in exercises.glob("*/Makefile"))
    if not known:
        raise SuiteError("this folder has no exercises/*/Makefile: is it a clone of p4lang/tutorials?")
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SuiteError(f"there is no exercise {', '.join(unknown)}, only {', '.join(known)}")
    place.require(COMMANDS, MODULES)
    for name in names or known:
        if name not in PLAYED:
            yield Result(name, Outcome.SKIPPED, "it is not known here what this exercise has to do")
        for exercise in PLAYED.get(name, ()):
            yield _play(place, exercises / name, exercise)
        if (exercises / name / "ptf").is_dir():
            yield from ptf.run(place, f"{name} (make test)", exercises / name, "make test")


def _play(place: Place, folder: Path, exercise: Exercise) -> Result:
    name = exercise.steps.__name__
    try:
        place.require(exercise.needs)
        lay(folder, exercise.solution)
        with mininet(place, folder) as net:
            return Result(name, Outcome.PASSED, exercise.steps(net) or "")
    except SuiteError as error:
        return Result(name, Outcome.FAILED, str(error))


def lay(folder: Path, pattern: str) -> None:
    """Copy files of an exercise's solution: each over the file with the same name or, if there is none, into the
    exercise's folder."""
    for solved in (folder / "solution").glob(pattern):
        others = (path for path in folder.rglob(solved.name) if path != solved)
        shutil.copy2(solved, next(others, folder / solved.name))
