//! The gRPC server around the service.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluice_serve::Listener;
use tonic::transport::{Certificate, Error, Identity, Server, ServerTlsConfig};

use crate::backend::Backend;
use crate::proto::p4::v1::p4_runtime_server::P4RuntimeServer;
use crate::service::Service;

/// A controller that is silent for this long is asked for a sign of life.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// A controller that gives no sign of life for this long is gone.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Calls that one connection may have under way.
const CALLS_PER_CONNECTION: u32 = 128;

/// How controllers are served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Encryption and who may connect; `None`: neither.
    pub tls: Option<ServerTlsConfig>,
    /// Controllers that may be connected at a time.
    pub max_connections: usize,
    /// Largest request in bytes; compiled programs come in one piece.
    pub max_request_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tls: None, max_connections: 64, max_request_bytes: 128 << 20 }
    }
}

/// TLS with the server's certificate chain and key. With `client_ca`, only clients that have a certificate from there
/// may connect. All in PEM.
///
/// # Errors
/// When certificates or key cannot be used, or do not belong together.
pub fn tls(certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<ServerTlsConfig, Error> {
    let mut config = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key)).timeout(HANDSHAKE_TIMEOUT);
    if let Some(ca) = client_ca {
        config = config.client_ca_root(Certificate::from_pem(ca));
    }
    Server::builder().tls_config(config.clone())?;
    Ok(config)
}

/// Serves P4Runtime for the switch behind `backend` on `listener` until `shutdown` is ready. Streams that are open then are cut off.
///
/// # Errors
/// When the listener fails.
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
