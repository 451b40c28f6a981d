"""The lab of protocols: TLS and mail are switched by content to Apache, aiosmtpd and Dovecot servers.

Dovecot serves IMAP and POP3. All users have the same password, and a mailbox with one mail whose subject is the
server's name.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from topo.labs.content import ContentLab
from topo.plan.content import S1, S2
from topo.plan.network import HostPlan
from topo.plan.protocols import IMAP, POP3, TLS, USER, protocols_config
from topo.testbed.network import READY_S
from topo.testbed.processes import Process, run_in

DOVECOT = "/usr/sbin/dovecot"
MAIL_SERVER = "topo.labs.mailserver"
"""The mail server's program. It is a separate module because nothing else needs aiosmtpd."""
PASSWORD = "secret"
USERS = (USER, "ann")
OWNER = "www-data"

CONFIGURATION = """\
protocols = imap pop3
base_dir = {directory}/run
state_dir = {directory}/state
log_path = {directory}/dovecot.log
listen = {address}
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain
login_greeting = {name} ready
mail_location = maildir:{directory}/mail/%u
first_valid_uid = 1
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={owner} gid={owner} home={directory}/mail/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service pop3-login {{
  inet_listener pop3 {{
    port = {pop3}
  }}
  inet_listener pop3s {{
    port = 0
  }}
}}
"""


def write_mailboxes(directory: Path, name: str) -> None:
    """Write a mail into the mailbox of each user; its subject is the server's name."""
    for user in USERS:
        box = directory / user
        for folder in ("cur", "new", "tmp"):
            (box / folder).mkdir(parents=True)
        (box / "new" / "1.lab").write_text(f"From: lab@example\nTo: {user}@example\nSubject: {name}\n\nHello.\n")
        for path in (box, *box.rglob("*")):
            shutil.chown(path, OWNER, OWNER)


class ProtocolsLab(ContentLab):
    """A lab whose services are switched by content of protocols other than HTTP."""

    target = TLS.address

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.apache_directives = ""

    def configuration(self) -> dict[str, object]:
        """Return the controller's configuration; the caller adds the paths of the controller's files."""
        return protocols_config(self.balance, controls=self.controls, thrift=self.switch.thrift)

    def _start_servers(self) -> None:
        certificate = self.directory / "certificate.pem"
        key = self.directory / "key.pem"
        subject = ("-subj", "/CN=lab", "-days", "30")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        where = ("-keyout", str(key), "-out", str(certificate))
        run_in(None, ["openssl", "req", "-x509", *curve, *subject, *where])
        with certificate.open("a") as both:
            both.write(key.read_text())
        self.apache_directives = f"""\
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
Header always set X-Server {{name}}
Listen {TLS.port}
<VirtualHost *:{TLS.port}>
SSLEngine on
SSLCertificateFile {certificate}
</VirtualHost>"""
        super()._start_servers()
        for server in (S1, S2):
            options = (server.name, str(server.address), str(certificate))
            command = [sys.executable, "-m", MAIL_SERVER, *options]
            smtp = self.start(f"aiosmtpd of {server.name}", command, server.name)
            smtp.await_output("ready", READY_S)
            self._servers += [smtp, self._start_dovecot(server)]

    def _start_dovecot(self, server: HostPlan) -> Process:
        directory = self.directory / f"{server.name}.dovecot"
        directory.mkdir()
        write_mailboxes(directory / "mail", server.name)
        fields = {"name": server.name, "address": server.address, "password": PASSWORD, "owner": OWNER}
        ports = {"imap": IMAP.port, "pop3": POP3.port}
        configuration = directory / "dovecot.conf"
        configuration.write_text(CONFIGURATION.format(directory=directory, **fields, **ports))
        process = self.start(f"dovecot of {server.name}", [DOVECOT, "-F", "-c", str(configuration)], server.name)
        return self.await_listening(process, server.name, *ports.values())
