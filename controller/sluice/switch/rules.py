"""The generation of the rules of all content services: what a switch remembers under another one counts no more."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from sluice.config.model import Config

_NOTE = b"rules="
_LARGEST = 255


@dataclass(frozen=True, slots=True)
class Rules:
    """A generation, and what it is the generation of."""

    generation: int = 1
    digest: bytes = b""

    def noted(self) -> bytes:
        """In an entry's metadata, for a controller that starts anew: the entry of a service without agents has another
        generation (UNREAD)."""
        return _NOTE + self.digest + b"," + str(self.generation).encode()

    def then(self, config: Config) -> Rules:
        """What follows when a configuration takes over: the same as long as it sends requests to the same servers, and
        guesses as before. Clients remembered for guesses would otherwise go on being guessed."""
        digest = _digest(config)
        if digest == self.digest or not self.digest:
            return Rules(self.generation, digest)
        return Rules(self.generation % _LARGEST + 1, digest)


def read(generation: int, metadata: bytes) -> Rules | None:
    """What an entry's parameter and metadata say; None when nothing was noted."""
    if not metadata.startswith(_NOTE):
        return None
    digest, _, noted = metadata.removeprefix(_NOTE).partition(b",")
    return Rules(int(noted) if noted.isdigit() else generation, digest)


def _digest(config: Config) -> bytes:
    services = {service.name: service for service in config.services}
    said = [
        [
            service.name,
            service.content.rule_set(),
            service.content.guesses,
            {name: sorted(f"{s.address}:{s.port}" for s in services[name].servers) for name in service.content.groups},
        ]
        for service in config.services
        if service.content
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16].encode()
