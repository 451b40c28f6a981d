"""A Tofino under Stratum (``stratum/hal/lib/barefoot`` of stratum/stratum, 2024): what it refuses, and what we do.

- No one-shot groups: ``bfrt_table_manager.cc``, BuildTableData: "Unsupported action type: 4"; no weights,
  WriteActionProfileGroup: "Member weights greater than 1 are not supported." Members are repeated instead, in a new
  group; one entry is switched over to it (groups.py). The driver refuses the same member twice in a group
  (open-p4studio, ``pipe_mgr_select_tbl.c``), so that each copy is a member of its own.
- BuildP4TableEntry gives no metadata back: what was noted with an entry is gone.
- ``bf_sde_wrapper.cc``, ReadRegisters: the value of the first pipe only, ``register_data[0]``; of a pair only the field
  named ``f1`` (GetRegisterDataFieldId: "Could not find register data field id."); and every read copies the whole array
  out of the hardware (SynchronizeRegisters). WriteRegister writes all pipes.
- WriteIndirectMeter writes all pipes, so that each has the whole rate: another reason for one pipe. Meters by bytes are
  kept in kbit/s; ours count packets. The driver rounds (tofinometer.py). RED is 3, and only the program sees it.
- A digest's list is as long as its timeout makes it (InsertDigest: "handle remaining digest config params"), and 0
  would be written to the hardware as it is; nothing is acknowledged ("We don't support digest acks yet."). ReadDigests
  names every digest, whether it was inserted or not; one that was is refused (open-p4studio, ``pipe_mgr_learn.c``).
- ``p4_service.cc``: "Invalid device ID." for device 0; no RECONCILE_AND_COMMIT; atomicity CONTINUE_ON_ERROR only.
"""

from __future__ import annotations

from collections.abc import Sequence

from finsy import P4Schema
from finsy.proto import p4i, p4r

from sluice.balance import largest_remainder
from sluice.config import Config
from sluice.names import Meter, Register
from sluice.switch.errors import SwitchError

from . import bfpipeline, tofinometer
from .profile import Profile, RegisterAccess, lacks
from .units import NANOSECONDS

PIPE_SHIFT = 7
"""A device port is a pipe number and seven bits within the pipe."""

READ = (Register.PIN_KEY_1, Register.PIN_KEY_2, Register.RATE_FLOW)
"""Pairs of which the controller needs one half: the stamp."""

_FIELD = "f1"

PENDING_S, STEP = 10.0, 128
"""Compiled into the program, P4Runtime having no word for them: p4src/tna/target.p4, PENDING_TICKS, RATE_SLOT_TICKS."""


def entry(wanted: p4r.TableEntry) -> p4r.TableEntry:
    """Without what is noted with it."""
    kept = p4r.TableEntry()
    kept.CopyFrom(wanted)
    kept.ClearField("metadata")
    return kept


def weights_of(schema: P4Schema, table: int, groups: int, weights: Sequence[int]) -> list[int]:
    """The weights, scaled down to a power of two such that the copies of all groups fit into the profile twice."""
    profile = schema.tables[table].action_profile
    if profile is None:
        return list(weights)
    whole = sum(weights)
    room = min(profile.max_group_size or profile.size, profile.size // (2 * max(1, groups)))
    if whole <= room:
        return list(weights)
    total = 1 << (room.bit_length() - 1) if room else 0
    if total < len(weights):
        raise SwitchError(
            f"selector {profile.alias} has room for {room} members in each of {groups} groups, and {len(weights)} "
            "servers are in one; configure fewer, or compile the program with a larger selector"
        )
    scaled = largest_remainder(dict(enumerate(weights)), total, present=range(len(weights)))
    return [scaled[place] for place in range(len(weights))]


def compiled_in(config: Config) -> str | None:
    """Why a configuration disagrees with times that Tofino's program has built in, and what to do; None: it agrees."""
    if config.connections.pending_s != PENDING_S:
        return f"connections.pending_s is part of the program for Tofino; leave it at {PENDING_S:g}"
    times = config.connections
    if max(times.pending_s, times.answered_s, times.linger_s) > min(times.idle_s, times.idle_least_s):
        return (
            "the program for Tofino stamps times relative to the idle time; leave connections.pending_s, answered_s "
            "and linger_s at or below idle_s and idle_least_s"
        )
    if config.news is not None and NANOSECONDS.step(config.news.rate_window_s) != STEP:
        return "news.rate_window_s is part of the program for Tofino; leave it at 1"
    return None


def objection(config: Config, schema: P4Schema) -> str | None:
    """See Profile."""
    if config.switch.device_id == 0:
        return "device 0 cannot be had with Stratum; set switch.device_id to the node's id in its chassis configuration"
    elsewhere = sorted({i.port for i in config.interfaces if i.port >> PIPE_SHIFT})
    if elsewhere:
        ports = ", ".join(map(str, elsewhere))
        return (
            f"ports {ports} are not on pipe 0, the only one whose registers Stratum reads; "
            f"give every interface a device port below {1 << PIPE_SHIFT}"
        )
    if wrong := compiled_in(config):
        return wrong
    blind = [register for register in READ if not _readable(schema.p4info, register)]
    if blind:
        names = ", ".join(register.rpartition(".")[2] for register in blind)
        return f"of a pair Stratum reads the one named {_FIELD}, and {names} has none; see docs/reference/targets.md"
    numbers = [meter.preamble.name for meter in schema.p4info.meters if meter.spec.unit != p4i.MeterSpec.PACKETS]
    if set(numbers) & set(Meter):
        return f"meters count packets, and {', '.join(numbers)} does not; see docs/reference/targets.md"
    return lacks(config, schema)


def _readable(info: p4i.P4Info, name: Register) -> bool:
    register = next((one for one in info.registers if one.preamble.name == name), None)
    if register is None or not register.type_spec.HasField("struct"):
        return True
    members = info.type_info.structs[register.type_spec.struct.name].members
    return any(member.name == _FIELD for member in members)


STRATUM = Profile(
    name="stratum",
    arch="tna",
    folder="tofino",
    units=NANOSECONDS,
    registers=RegisterAccess.WHOLE,
    weights=False,
    metadata=False,
    reconciles=False,
    digest_timeout_ns=1_000_000,
    code=bfpipeline.code,
    entry=entry,
    weights_of=weights_of,
    bucket=tofinometer.nearest,
    objection=objection,
)
