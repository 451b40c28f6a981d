"""An SMTP server of the lab: `python -m topo.labs.mailserver NAME ADDRESS CERTIFICATE`, with aiosmtpd.

The server refuses a recipient `later@` by a temporary error (451), and a sender `nobody@` by a permanent error (550).
It accepts all other mails, and answers with its name and the mail's size.
"""

from __future__ import annotations

import asyncio
import ssl
import sys

from aiosmtpd.smtp import SMTP, Envelope, Session

from topo.plan.protocols import SMTP as PLAN


class Receipts:
    """The aiosmtpd handler that decides on senders, recipients and mails."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Accept or refuse a sender."""
        del server, session, options
        if address.startswith("nobody@"):
            return f"550 5.1.8 {self.name} takes nothing of nobody"
        envelope.mail_from = address
        return f"250 {self.name} sender"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Accept or refuse a recipient."""
        del server, session, options
        if address.startswith("later@"):
            return f"451 4.7.1 {self.name} later"
        envelope.rcpt_tos.append(address)
        return f"250 {self.name} recipient"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Accept a mail; answer with the server's name and the mail's size."""
        del server, session
        assert isinstance(envelope.content, bytes)
        return f"250 {self.name} got {len(envelope.content)}"


async def serve(name: str, address: str, certificate: str) -> None:
    """Serve mail until the process ends."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    handler = Receipts(name)
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(handler, hostname=name, tls_context=tls, enable_SMTPUTF8=False), address, PLAN.port
    )
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
