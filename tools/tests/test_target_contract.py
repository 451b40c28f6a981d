"""Checks that the programs for v1model and Tofino offer a control plane the same objects, and that
`tools.target_contract` reports every difference."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tools import p4, p4_objects, target_contract
from tools.p4_objects import P4SRC, Object

REGISTER = ("register", "ledger_syn")


@pytest.fixture
def v1model() -> dict[tuple[str, str], Object]:
    return p4_objects.of_sources("v1model")


@pytest.fixture
def tofino() -> dict[tuple[str, str], Object]:
    return p4_objects.of_sources("tna")


def test_the_targets_agree(v1model: dict[tuple[str, str], Object], tofino: dict[tuple[str, str], Object]) -> None:
    assert target_contract.differences(v1model, tofino) == []
    assert target_contract.unlike() == []


def test_the_program_for_tofino_2_agrees_with_its_contract(v1model: dict[tuple[str, str], Object]) -> None:
    assert target_contract.CONTRACTS.keys() == p4.TOFINO_BUILDS.keys()
    contract = target_contract.CONTRACTS["tofino2"]
    tofino2 = p4_objects.of_program(p4.TOFINO_BUILDS["tofino2"])
    assert target_contract.differences(v1model, tofino2, contract) == []
    without = {where: each for where, each in tofino2.items() if where != ("table", "agents")}
    assert target_contract.differences(v1model, without, contract) == ["table agents: not on Tofino"]
    resources = target_contract.NO_RESOURCES.keys() - target_contract.NO_RESOURCES_ON_TOFINO_2.keys()
    assert ("register", "cap_offered_server") in resources
    assert tofino2.keys() >= resources | target_contract.MORE_CELLS.keys()


def test_what_a_program_instantiates_is_what_it_has(tofino: dict[tuple[str, str], Object]) -> None:
    assert p4_objects.of_program(p4.TOFINO_BUILDS["tofino"]) == tofino
    tofino2 = p4_objects.of_program(p4.TOFINO_BUILDS["tofino2"])
    assert ("register", "splice_turn_1") in tofino2.keys() - tofino.keys()
    assert tofino.keys() <= tofino2.keys()


def test_sources_say_what_p4info_says(v1model: dict[tuple[str, str], Object]) -> None:
    assert v1model == p4_objects.of_p4info(target_contract.V1MODEL_P4INFO)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"number": 7}, "register ledger_syn: @id 0x10 on v1model, 0x7 on Tofino"),
        ({"size": 65535}, "register ledger_syn: size 1024 on v1model, 65535 on Tofino"),
    ],
)
def test_a_difference_is_named(
    v1model: dict[tuple[str, str], Object],
    tofino: dict[tuple[str, str], Object],
    changes: dict[str, int],
    said: str,
) -> None:
    other = {**tofino, REGISTER: replace(tofino[REGISTER], **changes)}
    assert target_contract.differences(v1model, other) == [said]


def test_another_key_is_named(v1model: dict[tuple[str, str], Object], tofino: dict[tuple[str, str], Object]) -> None:
    where = ("table", "choose")
    other = {**tofino, where: replace(tofino[where], key=("service:ternary",))}
    assert target_contract.differences(v1model, other) == [
        "table choose: key ('service:exact',) on v1model, ('service:ternary',) on Tofino"
    ]


def test_what_is_missing_or_new_is_named(
    v1model: dict[tuple[str, str], Object], tofino: dict[tuple[str, str], Object]
) -> None:
    less_tofino = {where: each for where, each in tofino.items() if where != REGISTER}
    less_v1model = {where: each for where, each in v1model.items() if where != REGISTER}
    assert target_contract.differences(v1model, less_tofino) == ["register ledger_syn: not on Tofino"]
    assert target_contract.differences(less_v1model, tofino) == ["register ledger_syn: not on v1model"]


def test_what_only_a_compiled_program_has_is_allowed_where_it_is_needed(
    v1model: dict[tuple[str, str], Object], tofino: dict[tuple[str, str], Object]
) -> None:
    clock = Object("register", 0x123456, "clock_turns", 1)
    own = {
        where: replace(each, number=0x200000 + each.number) if each.kind in target_contract.OWN_IDS else each
        for where, each in tofino.items()
    }
    assert target_contract.compiled_differences(v1model, {**own, ("register", "clock_turns"): clock}) == []
    (said,) = target_contract.compiled_differences(v1model, own)
    assert said.startswith("register clock_turns: allowed in Tofino's P4Info, and is not there")
    said_of_all = target_contract.compiled_differences(v1model, {**tofino, ("register", "clock_turns"): clock})
    assert len(said_of_all) == len(target_contract.OWN_IDS)


def test_an_allowance_that_is_not_needed_is_named(
    v1model: dict[tuple[str, str], Object], tofino: dict[tuple[str, str], Object]
) -> None:
    without = {where: each for where, each in tofino.items() if where != ("register", "rate_last")}
    (said,) = target_contract.differences(v1model, without)
    assert said.startswith("register rate_last: allowed to be on Tofino only, and is not")
    without = {where: each for where, each in v1model.items() if where != ("register", "draw_point")}
    (said,) = target_contract.differences(without, tofino)
    assert said.startswith("register draw_point: allowed to be on v1model only, and is not")
    where = ("register", "pin_key_1")
    (said,) = target_contract.differences(v1model, {**tofino, where: v1model[where]})
    assert said.startswith("register pin_key_1: allowed another size on Tofino, and has none")


def test_another_parameter_is_named(tmp_path: Path) -> None:
    shutil.copytree(P4SRC, tmp_path / "p4src")
    meters = tmp_path / "p4src/tna/externs/meters.p4"
    meters.write_text(meters.read_text().replace("in service_id_t service, ", ""))
    (control,) = target_contract.unlike(tmp_path / "p4src")
    assert control == (
        "control AdmissionMeter: (in service_id_t service, out bit<8> refused) on v1model, "
        "(out bit<8> refused) on Tofino"
    )


def test_a_size_or_an_id_without_a_name_is_refused() -> None:
    with pytest.raises(p4_objects.ObjectsError, match=r"cells has the size ''"):
        list(p4_objects.in_source("@id(REGISTER_LEDGER_SYN) register<bit<8>>(MANY) cells;", {}))
    with pytest.raises(p4_objects.ObjectsError, match=r"cells has the id '0x01'"):
        list(p4_objects.in_source("@id(0x01) register<bit<8>>(8) cells;", {}))


def logarithms(name: str) -> list[tuple[int, int, int]]:
    """Return value, mask and result of every entry in the table `logarithms` of a source file."""
    text = (P4SRC / f"tna/externs/{name}.p4").read_text()
    entry = re.compile(r"\dw(0x[0-9a-f]+) &&& \d+w(0x[0-9a-f]+) : is\((\d+)\);")
    return [(int(value, 16), int(mask, 16), int(result)) for value, mask, result in entry.findall(text)]


def test_the_logarithms_cover_17_bits_once_and_are_near() -> None:
    entries = logarithms("lighter")
    for number in [*range(4096), *range(4096, 1 << 17, 61), (1 << 17) - 1]:
        (matched,) = [result for value, mask, result in entries if number & mask == value]
        assert abs(matched - 32 * math.log2(number + 1)) < 3.3
    assert not [entry for entry in entries if (1 << 17) & entry[1] == entry[0]]


def test_the_logarithms_of_weights_cover_16_bits_once_and_are_near() -> None:
    entries = logarithms("weights")
    for weight in [*range(4096), *range(4096, 1 << 16, 61), (1 << 16) - 1]:
        (matched,) = [result for value, mask, result in entries if weight & mask == value]
        assert abs(matched - 32 * math.log2(max(weight, 1))) < 3.3


def test_widths_and_what_bf_runtime_reports() -> None:
    name, action = "table SluiceIngress.ports.ports", "action SluiceIngress.ports.set_port"
    shapes = {name: ("port exact 16", "size 512"), action: ("mac 48", "inside 1")}
    assert target_contract.shape_differences(shapes, shapes, shapes) == []
    narrow = shapes | {name: ("port exact 9", "size 512")}
    assert target_contract.shape_differences(shapes, narrow, narrow) == [
        f"{name}: ('port exact 16', 'size 512') on v1model, ('port exact 9', 'size 512') on Tofino"
    ]
    assert target_contract.shape_differences(shapes, shapes, shapes | {action: ("mac 48",)}) == [
        f"{action}: ('mac 48', 'inside 1') in Tofino's P4Info, ('mac 48',) in its bfrt.json"
    ]
    assert len(target_contract.shape_differences(shapes, shapes, {name: shapes[name]})) == 1


def shifted(turn: int, window: int) -> int:
    """Return the 16-bit window `window` after the tables `first` and `second` of windows.p4 have been applied; in each
    table, the first matching entry applies. Bits 10 to 14 of `turn` contain the shift in two's complement."""
    actions, first, second = re.split(r"table (?:first|second)", (P4SRC / "tna2/windows.p4").read_text())
    constant = dict(re.findall(r"action (\w+)\(\) \{\s+hdr\.tcp\.window = (\w+);", actions))
    coarse = re.compile(r"\((0x[0-9a-f]+) &&& 0xfc00, (_|0)(?: &&& (0x[0-9a-f]+))?\) : (\w+?)_?(\d*)\(\);")
    for value, field, mask, action, bits in coarse.findall(first):
        if turn & 0xFC00 == int(value, 0) and (field == "_" or not window & int(mask or "0xffff", 0)):
            if action in constant:
                return int(constant[action], 0)
            window = moved(window, action, bits)
            break
    for value, action, bits in re.findall(r"\(0, (0x[0-9a-f]+) &&& 0xfc00\) : (\w+?)_(\d)\(\);", second):
        if turn & 0xFC00 == int(value, 0):
            window = moved(window, action, bits)
    return window


def moved(window: int, action: str, bits: str) -> int:
    """Return a 16-bit window after an action of windows.p4 has been applied."""
    return {"up": window << int(bits or "0") & 0xFFFF, "down": window >> int(bits or "0"), "neither": window}[action]


@pytest.mark.parametrize("shift", range(-14, 15))
def test_windows_are_shifted_within_16_bits_and_none_is_closed(shift: int) -> None:
    turn = 0x8000 | (shift & 31) << 10 | 5
    edges = {1 << bit for bit in range(16)} | {(1 << bit) - 1 for bit in range(17)} | {0, 0xABCD}
    for window in edges:
        right = min(window << shift, 0xFFFF) if shift >= 0 else max(window >> -shift, min(window, 1))
        assert shifted(turn, window) == right
        assert shifted(turn & 0x7FFF, window) == window, "in an agent's turn nothing is shifted"
