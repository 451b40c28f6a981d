"""The compiled program: the location of its files, and whether a switch already runs it."""

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
    """Return the directory of the program that comes with this package: a directory inside the wheel, or p4src/build in
    a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed, checkout = package / "pipeline", package.parents[1] / "p4src" / "build"
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
        """The parsed P4Info together with the target's code. Raises SwitchError if they cannot be read."""
        try:
            return P4Schema(self.directory / INFO, self.target.code(self.directory))
        except ValueError as error:
            raise SwitchError(f"{self.directory / INFO} cannot be read: {error}") from error

    @property
    def cookie(self) -> int:
        """A number that identifies the code and P4Info together."""
        return self.schema.p4cookie

    @property
    def name(self) -> str:
        """The program's name, which all its versions share."""
        return self.schema.name

    def config(self) -> p4r.ForwardingPipelineConfig:
        """Return the pipeline configuration to push to a switch."""
        return self.schema.get_pipeline_config()

    def is_same(self, running: p4r.ForwardingPipelineConfig) -> bool:
        """Return whether the configuration ``running`` (with P4Info, code and cookie) is this program.

        If ``running`` has a cookie, the cookie alone decides. A program that was given to the switch at its start has
        no cookie, so code and P4Info are compared. If the switch does not return its code, only the P4Info is compared.
        """
        if running.HasField("cookie") and running.cookie.cookie:
            return running.cookie.cookie == self.cookie
        if not running.HasField("p4info") or not self.schema.has_p4info(running.p4info):
            return False
        return not running.p4_device_config or running.p4_device_config == self.schema.p4blob


def load(directory: str | Path | None = None, target: Profile | None = None) -> Pipeline:
    """Load the program in ``directory``; without it, the program for ``target`` that comes with this package. Raises
    SwitchError.

    Without ``target``, the target follows from the program's architecture.
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
    """Return the architecture that a compiled program's P4Info names; "" if it cannot be read (Pipeline reports
    why)."""
    try:
        return P4Schema(folder / INFO).arch
    except (OSError, ValueError):
        return ""
