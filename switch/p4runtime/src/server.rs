//! The gRPC server around the service.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::device::Device;
use crate::proto::p4::v1::p4_runtime_server::P4RuntimeServer;
use crate::service::Service;
use crate::timers;

/// Largest request in bytes; compiled programs come in one piece.
const MAX_REQUEST: usize = 128 << 20;
/// A controller that is silent for this long is asked for a sign of life.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// A controller that gives no sign of life for this long is gone.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves P4Runtime for `device` on `listener` until `shutdown` is ready. Streams that are open then are cut off.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    device: Arc<Device>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let service = P4RuntimeServer::new(Service::new(Arc::clone(&device)))
        .max_decoding_message_size(MAX_REQUEST)
        .max_encoding_message_size(usize::MAX);
    // The builder's own `tcp_nodelay` is for listeners that it opens itself.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(service)
        .serve_with_incoming(incoming);
    tokio::select! {
        result = server => result,
        () = timers::run(device) => Ok(()),
        () = shutdown => Ok(()),
    }
}
