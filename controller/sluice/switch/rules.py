"""The generation of all content services' rules: what a switch remembers under another generation is void."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from sluice.config.model import Config

_NOTE = b"rules="
_LARGEST = 255


@dataclass(frozen=True, slots=True)
class Rules:
    """A generation, and a digest of the rules that it stands for."""

    generation: int = 1
    digest: bytes = b""

    def metadata(self) -> bytes:
        """Return metadata that notes generation and digest, for a restarted controller to read.

        The entry's own parameter does not suffice: for a service without agents it is UNREAD.
        """
        return _NOTE + self.digest + b"," + str(self.generation).encode()

    def following(self, config: Config) -> Rules:
        """Return the rules of a configuration that takes over from this one.

        The generation stays the same as long as requests go to the same servers and guesses are configured as before. A
        change of guesses must begin a new one: otherwise remembered clients would still be guessed for.
        """
        digest = _digest(config)
        if digest == self.digest or not self.digest:
            return Rules(self.generation, digest)
        return Rules(self.generation % _LARGEST + 1, digest)


def read(generation: int, metadata: bytes) -> Rules | None:
    """Return the rules that an entry's parameter and metadata state; None if the metadata has no note."""
    if not metadata.startswith(_NOTE):
        return None
    digest, _, metadata = metadata.removeprefix(_NOTE).partition(b",")
    return Rules(int(metadata) if metadata.isdigit() else generation, digest)


def _digest(config: Config) -> bytes:
    services = {service.name: service for service in config.services}
    content = [
        [
            service.name,
            service.content.rule_set(),
            service.content.guesses,
            {name: sorted(f"{s.address}:{s.port}" for s in services[name].servers) for name in service.content.groups},
        ]
        for service in config.services
        if service.content
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16].encode()
