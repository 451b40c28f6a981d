"""Derives P4Info from a program's BMv2 JSON, as far as the commands of `tools.bmv2.session` need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any

from finsy.proto import p4i, p4t

Json = Mapping[str, Any]

_KINDS = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
}
_UNITS = {"bytes": p4i.MeterSpec.BYTES, "packets": p4i.MeterSpec.PACKETS}
_Prefix = p4i.P4Ids.Prefix


def p4info_of(program: Json) -> p4i.P4Info:
    """Return the P4Info of all actions and indirect arrays, and of the tables without an action profile.

    The names are those of the JSON, and the ids are in the JSON's order.
    """
    info = p4i.P4Info(pkg_info=p4i.PkgInfo(arch="v1model"))
    widths = _widths(program)
    # The JSON has a copy of each action for every table. The copies share a name, so the dict contains only the last.
    parameters = {action["name"]: action["runtime_data"] for action in program["actions"]}
    action_ids = dict(zip(parameters, _ids(_Prefix.ACTION), strict=False))
    for name, params in parameters.items():
        action = info.actions.add(preamble=p4i.Preamble(id=action_ids[name], name=name))
        for at, param in enumerate(params, 1):
            action.params.add(id=at, name=param["name"], bitwidth=param["bitwidth"])
    tables = chain.from_iterable(pipeline["tables"] for pipeline in program["pipelines"])
    simple = (table for table in tables if table["type"] == "simple")
    for number, table in zip(_ids(_Prefix.TABLE), simple, strict=False):
        made = info.tables.add(
            preamble=p4i.Preamble(id=number, name=table["name"]),
            action_refs=[p4i.ActionRef(id=action_ids[name]) for name in table["actions"]],
            size=table["max_size"],
            is_const_table="entries" in table,  # BMv2 accepts no further entries in a table with const entries.
        )
        for at, key in enumerate(table["key"], 1):
            header, field = key["target"]
            kind, name = _KINDS[key["match_type"]], key.get("name", f"{header}.{field}")
            made.match_fields.add(id=at, name=name, bitwidth=widths[header, field], match_type=kind)
    for preamble, counter in _arrays(program, "counter_arrays", _Prefix.COUNTER):
        spec = p4i.CounterSpec(unit=p4i.CounterSpec.BOTH)
        info.counters.add(preamble=preamble, spec=spec, size=counter["size"])
    for preamble, meter in _arrays(program, "meter_arrays", _Prefix.METER):
        info.meters.add(preamble=preamble, spec=p4i.MeterSpec(unit=_UNITS[meter["type"]]), size=meter["size"])
    for preamble, register in _arrays(program, "register_arrays", _Prefix.REGISTER):
        bits = p4t.P4BitTypeSpec(bitwidth=register["bitwidth"])
        cell = p4t.P4DataTypeSpec(bitstring=p4t.P4BitstringLikeTypeSpec(bit=bits))
        info.registers.add(preamble=preamble, type_spec=cell, size=register["size"])
    return info


def _ids(prefix: int) -> Iterator[int]:
    """Yield P4Runtime's ids for one kind of object (P4Runtime specification, section 6.3)."""
    return count(prefix << 24 | 1)


def _arrays(program: Json, kind: str, prefix: int) -> Iterator[tuple[p4i.Preamble, Json]]:
    """Yield the indirect arrays of a kind (counters, meters, registers): those that are not attached to table
    entries."""
    indirect = (array for array in program.get(kind, ()) if not array.get("is_direct"))
    for number, array in zip(_ids(prefix), indirect, strict=False):
        yield p4i.Preamble(id=number, name=array["name"]), array


def _widths(program: Json) -> dict[tuple[str, str], int]:
    """Return the width in bits of every field, by header and field, including the validity bit of each header."""
    types = {kind["name"]: kind["fields"] for kind in program["header_types"]}
    widths: dict[tuple[str, str], int] = {}
    for header in program["headers"]:
        widths[header["name"], "$valid$"] = 1
        for name, width, *_ in types[header["header_type"]]:
            widths[header["name"], name] = width
    return widths
