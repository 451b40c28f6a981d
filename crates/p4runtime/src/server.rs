//! The gRPC server with the P4Runtime service.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluice_serve::Listener;
use tonic::transport::{Certificate, Error, Identity, Server, ServerTlsConfig};

use crate::backend::Backend;
use crate::proto::p4::v1::p4_runtime_server::P4RuntimeServer;
use crate::service::Service;

/// Time without data from a controller after which the server sends an HTTP/2 ping.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Time in which a controller must answer the ping; otherwise the server closes the connection. So the streams of a
/// controller that vanished end within 25 seconds.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a client must complete the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit on the number of concurrent calls of one connection.
const CALLS_PER_CONNECTION: u32 = 128;

/// Settings of the gRPC server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server's certificate and the clients that it accepts; `None` for connections without TLS.
    pub tls: Option<ServerTlsConfig>,
    /// Limit on the number of controllers that are connected at the same time.
    pub max_connections: usize,
    /// Limit on the size of a request, in bytes. A compiled program arrives in one request.
    pub max_request_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tls: None, max_connections: 64, max_request_bytes: 128 << 20 }
    }
}

/// Returns the TLS settings with the server's certificate chain and key. With `client_ca`, only clients with a
/// certificate signed by this authority may connect. All arguments are PEM.
///
/// # Errors
/// Fails when a certificate or the key cannot be used, or the key does not match the certificate.
pub fn tls(certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<ServerTlsConfig, Error> {
    let mut config = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key)).timeout(HANDSHAKE_TIMEOUT);
    if let Some(ca) = client_ca {
        config = config.client_ca_root(Certificate::from_pem(ca));
    }
    Server::builder().tls_config(config.clone())?;
    Ok(config)
}

/// Serves P4Runtime on `listener`, for the switch behind `backend`, until `shutdown` is ready or the backend ends. The
/// server then closes the streams that are still open.
///
/// # Errors
/// Fails when the listener fails.
pub async fn serve<B: Backend>(
    backend: Arc<B>,
    listener: impl Into<Listener>,
    settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let service = P4RuntimeServer::new(Service::new(Arc::clone(&backend)))
        .max_decoding_message_size(settings.max_request_bytes)
        .max_encoding_message_size(usize::MAX);
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(CALLS_PER_CONNECTION);
    if let Some(tls) = settings.tls {
        server = server.tls_config(tls)?;
    }
    let connections = listener.into().connections(settings.max_connections);
    let server = server.add_service(service).serve_with_incoming(connections);
    tokio::select! {
        result = server => result,
        () = backend.run() => Ok(()),
        () = shutdown => Ok(()),
    }
}
