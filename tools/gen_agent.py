"""Generates the descriptors of the agent's control messages (controller/sluice/agents) from agent/proto.

`--check` compares the descriptors instead of writing them, and exits with status 1 if they differ. Requires `protoc`.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import descriptor_pb2, text_format
from sluice.agents.messages import DESCRIPTORS

PROTO = Path(__file__).resolve().parent.parent / "agent/proto/agent.proto"


def descriptors() -> str:
    """Return the descriptors of the control messages as text."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"-I{PROTO.parent}", f"--descriptor_set_out={out.name}", PROTO.name], check=True)
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file
    return text_format.MessageToString(file)


def main(arguments: Iterable[str] | None = None) -> int:
    """Write the descriptors or, with `--check`, compare them; return 1 if they differ."""
    parser = argparse.ArgumentParser(prog="python -m tools.gen_agent", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args(None if arguments is None else list(arguments)).check:
        DESCRIPTORS.write_text(descriptors())
    elif DESCRIPTORS.read_text() != descriptors():
        print(f"{DESCRIPTORS} is stale; run `python -m tools.gen_agent`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
