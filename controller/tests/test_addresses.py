"""Tests of addresses: IPv4 and IPv6 have one type, which only one module creates."""

import re
import subprocess
from pathlib import Path

import pytest
from sluice.addresses import from_number, from_packed, from_text, number, order, packed, text
from sluice.dataplane.connection import Connection

ROOT = Path(__file__).resolve().parents[2]
NAMING = {
    "controller/sluice/addresses.py",
    "controller/sluice/config/types.py",  # accepts only version 4
    "controller/tests/test_config_fields.py",  # distinguishes fields by their type
}
"""The modules that may use the type of a single IP version."""


@pytest.mark.parametrize(
    ("written", "bits"), [("10.0.0.100", 32), ("0.0.0.1", 32), ("2001:db8::64", 128), ("::1", 128)]
)
def test_an_address_is_the_same_from_text_bytes_and_a_number(written: str, bits: int) -> None:
    address = from_text(written)
    assert address.max_prefixlen == bits
    assert from_packed(address.packed) == from_number(int(address), bits) == address
    assert packed(number(address.packed), bits) == address.packed
    assert text(address.packed) == written


def test_a_number_that_its_width_does_not_hold_is_none() -> None:
    with pytest.raises(OverflowError):
        from_number(1 << 32, 32)


def test_addresses_of_both_versions_are_sorted() -> None:
    written = ["10.0.0.9", "10.0.0.100", "::1", "2001:db8::"]
    assert [str(address) for address in sorted(map(from_text, reversed(written)), key=order)] == written


def test_a_connection_is_hashed_by_all_bytes_of_its_addresses() -> None:
    places = {
        Connection(from_text(f"2001:db8::{i}").packed, 40000, from_text("::1").packed, 80).place for i in range(9)
    }
    assert len(places) == 9


def test_only_few_modules_name_the_type_of_a_version() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [name for name in listed.split() if (ROOT / name).is_file()]
    naming = {name for name in files if re.search(r"\bIPv[46]Address\b", (ROOT / name).read_text())}
    assert naming == NAMING
