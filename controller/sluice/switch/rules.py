"""The generation (a version number) of all content services' rules. What the switch remembers about clients under
another generation is void."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from sluice.config.model import Config

_NOTE = b"rules="
_LARGEST = 255


@dataclass(frozen=True, slots=True)
class Rules:
    """A generation number, and a digest of the content rules to which the number refers."""

    generation: int = 1
    digest: bytes = b""

    def metadata(self) -> bytes:
        """Return the metadata of a service's table entry. It contains generation and digest, so that a restarted
        controller can read both.

        The generation in the entry's action parameter does not suffice: for a service without agents the parameter is
        UNREAD.
        """
        return _NOTE + self.digest + b"," + str(self.generation).encode()

    def following(self, config: Config) -> Rules:
        """Return the rules of a configuration that replaces the present one.

        The generation stays the same as long as requests are assigned to the same servers and the configuration of
        guesses does not change. A change of that configuration must begin a new generation: otherwise the switch would
        still guess the servers of remembered clients.
        """
        digest = _digest(config)
        if digest == self.digest or not self.digest:
            return Rules(self.generation, digest)
        return Rules(self.generation % _LARGEST + 1, digest)


def read(generation: int, metadata: bytes) -> Rules | None:
    """Return the rules that an entry's action parameter and metadata contain; None if the metadata contains no
    rules."""
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
