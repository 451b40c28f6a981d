"""The compiled program: where it is, and whether a switch already runs it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from finsy import P4Schema
from finsy.proto import p4r

from .errors import SwitchError
from .targets import EMBEDDED, Profile, of_arch
from .targets.v1model import CODE

INFO = "sluice.p4info.txtpb"


def artefacts() -> Path:
    """The directory of the program that came with this package: inside the wheel, or p4src/build of a checkout."""
    here = Path(__file__).resolve().parents[1]
    installed, checkout = here / "pipeline", here.parents[1] / "p4src" / "build"
    return installed if (installed / CODE).exists() else checkout


@dataclass(frozen=True)
class Pipeline:
    """A compiled P4 program: the target's code and its P4Info."""

    directory: Path
    target: Profile = EMBEDDED

    def __post_init__(self) -> None:
        needed = (CODE, INFO) if self.target.arch == EMBEDDED.arch else (INFO,)
        missing = [name for name in needed if not (self.directory / name).is_file()]
        if missing:
            raise SwitchError(
                f"no {' and no '.join(missing)} in {self.directory}; run `make p4` or set switch.pipeline"
            )

    @cached_property
    def schema(self) -> P4Schema:
        """The parsed P4Info together with the code."""
        try:
            return P4Schema(self.directory / INFO, self.target.code(self.directory))
        except ValueError as error:
            raise SwitchError(f"{self.directory / INFO} cannot be read: {error}") from error

    @property
    def cookie(self) -> int:
        """Identifies code and P4Info together."""
        return self.schema.p4cookie

    @property
    def name(self) -> str:
        """That all versions of the program have."""
        return self.schema.name

    def config(self) -> p4r.ForwardingPipelineConfig:
        """What is pushed to a switch."""
        return self.schema.get_pipeline_config()

    def is_same(self, running: p4r.ForwardingPipelineConfig) -> bool:
        """True when ``running`` (with P4Info, code and cookie) is this program.

        The cookie decides when there is one; a program that the switch was started with has none, and is
        compared as a whole. A switch that does not give its code back is judged by its P4Info.
        """
        if running.HasField("cookie") and running.cookie.cookie:
            return running.cookie.cookie == self.cookie
        if not running.HasField("p4info") or not self.schema.has_p4info(running.p4info):
            return False
        return not running.p4_device_config or running.p4_device_config == self.schema.p4blob


def load(directory: str | Path | None = None, target: Profile | None = None) -> Pipeline:
    """The program in ``directory``, or the one for the target that came with this package. Raises SwitchError.

    Without a target it is one that runs the program's architecture.
    """
    folder = Path(directory) if directory else artefacts() / (target.folder if target else "")
    arch = _arch(folder)
    target = target or of_arch(arch)
    if arch not in ("", target.arch):
        raise SwitchError(
            f"{folder / INFO} is for {arch}, and {target.name} runs {target.arch}; "
            "set another --target or switch.pipeline"
        )
    return Pipeline(folder, target)


def _arch(folder: Path) -> str:
    """What a compiled program's P4Info says it is for; nothing when that cannot be read (Pipeline says why)."""
    try:
        return P4Schema(folder / INFO).arch
    except (OSError, ValueError):
        return ""
