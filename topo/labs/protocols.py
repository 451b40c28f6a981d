"""The lab of protocols: TLS and mail switched by content, with Apache, aiosmtpd and Dovecot behind."""

from __future__ import annotations

import sys

from topo.labs.content import ContentLab
from topo.labs.dovecot import start_dovecot
from topo.plan.content import S1, S2
from topo.plan.protocols import TLS, protocols_config
from topo.testbed import REPOSITORY
from topo.testbed.processes import Process, run_in

READY_TIMEOUT_S = 20.0


class ProtocolsLab(ContentLab):
    """A lab whose services are switched by what clients say in other protocols than HTTP."""

    target = TLS.address
    content = staticmethod(protocols_config)

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.apache_directives = ""

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
            pid = self.pid(server.name)
            smtp = Process(
                f"aiosmtpd of {server.name}",
                [sys.executable, "-m", "topo.labs.mailserver", server.name, str(server.address), str(certificate)],
                log=self.directory / f"{server.name}.smtp.log",
                namespace_pid=pid,
                directory=REPOSITORY,
            )
            self._stack.callback(smtp.stop)
            smtp.await_output("ready", READY_TIMEOUT_S)
            dovecot = start_dovecot(server, namespace_pid=pid, directory=self.directory / f"{server.name}.dovecot")
            self._stack.callback(dovecot.stop)
            self._servers += [smtp, dovecot]
