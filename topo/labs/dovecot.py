"""Dovecot on a lab server: IMAP and POP3, one password, a mailbox for every user with one mail of the server's."""

from __future__ import annotations

import shutil
from pathlib import Path

from topo.plan.network import HostPlan
from topo.plan.protocols import IMAP, POP3, USER
from topo.testbed.namespaces import listening
from topo.testbed.processes import Process

DOVECOT = "/usr/sbin/dovecot"
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
    """Write a mail to each user whose subject is the server's name."""
    for user in USERS:
        box = directory / user
        for part in ("cur", "new", "tmp"):
            (box / part).mkdir(parents=True)
        (box / "new" / "1.lab").write_text(f"From: lab@example\nTo: {user}@example\nSubject: {name}\n\nHello.\n")
        for path in (box, *box.rglob("*")):
            shutil.chown(path, OWNER, OWNER)


def start_dovecot(server: HostPlan, *, namespace_pid: int, directory: Path) -> Process:
    """Start Dovecot, and return once it listens."""
    directory.mkdir()
    write_mailboxes(directory / "mail", server.name)
    configuration = directory / "dovecot.conf"
    fields = {"name": server.name, "address": server.address, "password": PASSWORD, "owner": OWNER}
    ports = {"imap": IMAP.port, "pop3": POP3.port}
    configuration.write_text(CONFIGURATION.format(directory=directory, **fields, **ports))
    process = Process(
        f"dovecot of {server.name}",
        [DOVECOT, "-F", "-c", str(configuration)],
        log=directory / "dovecot.out",
        namespace_pid=namespace_pid,
    )
    try:
        process.await_true("listens", lambda: all(listening(namespace_pid, port) for port in ports.values()), 20.0)
    except BaseException:
        process.stop()
        raise
    return process
