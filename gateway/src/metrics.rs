//! Serves the gateway's statistics to Prometheus over HTTP.

use std::fmt;
use std::io;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use sluice_p4runtime::backend::Backend;
use sluice_serve::metrics::{counters, gauges};
use tokio::net::TcpListener;

use crate::Gateway;

/// Replies to `GET /metrics` as long as the future is polled.
///
/// # Errors
/// Fails when the listener fails.
pub async fn serve(listener: TcpListener, gateway: Arc<Gateway>) -> io::Result<()> {
    sluice_serve::metrics::serve(listener, Metrics(gateway)).await
}

struct Metrics(Arc<Gateway>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (gateway, encoder) = (&*self.0, &mut encoder);
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        gauges(encoder, "build_info", "The gateway's version", [(version, 1.0)])?;
        let up = f64::from(u8::from(gateway.is_connected()));
        gauges(encoder, "driver_up", "1 while the driver answers", [(vec![], up)])?;
        let adoptable = f64::from(u8::from(gateway.is_adoptable()));
        let help = "1 while a restarted gateway would adopt what controllers wrote";
        gauges(encoder, "adoptable", help, [(vec![], adoptable)])?;
        let statistics = gateway.statistics();
        let help = "Connections to the driver; each one after the first follows a loss";
        counters(encoder, "driver_connections", help, [(vec![], statistics.connections.get())])?;
        let calls = gateway.driver_calls();
        let calls = [("read", calls.read.ended()), ("write", calls.write.ended())];
        let label = |name: &str| vec![("call", name.to_owned())];
        let counted = calls.iter().map(|(name, (count, _))| (label(name), *count));
        counters(encoder, "driver_calls", "Completed calls of the driver", counted)?;
        let help = "Time that calls of the driver took";
        let mut family = encoder.encode_descriptor("driver_call_seconds", help, None, MetricType::Counter)?;
        for (name, (_, time)) in &calls {
            ConstCounter::new(time.as_secs_f64()).encode(family.encode_family(&label(name))?)?;
        }
        let messages = statistics.digest_messages.get();
        counters(encoder, "driver_digest_messages", "Messages in the driver's digests", [(vec![], messages)])?;
        let requests =
            [("write", &statistics.write), ("read", &statistics.read), ("set_pipeline", &statistics.set_pipeline)];
        let requests = requests.into_iter().flat_map(|(request, counts)| {
            let outcomes = [("answered", counts.answered.get()), ("refused", counts.refused.get())];
            outcomes
                .map(|(outcome, count)| (vec![("request", request.to_owned()), ("outcome", outcome.to_owned())], count))
        });
        counters(encoder, "requests", "Controllers' requests, by outcome", requests)?;
        for (name, value) in gateway.controllers().counters.entries() {
            // The gateway does not use this counter: without a program, it counts packets as malformed.
            if name != "no_program" {
                let help = "Packets, messages and updates exchanged with controllers";
                counters(encoder, &format!("controller_{name}"), help, [(vec![], value)])?;
            }
        }
        let streams = gateway.controllers().streams.count() as f64;
        gauges(encoder, "controller_streams", "Open streams of controllers", [(vec![], streams)])?;
        let sizes = gateway.sizes().into_iter().map(|(kind, size)| (vec![("kind", kind.to_owned())], size as f64));
        gauges(encoder, "shadow_size", "Number of values in the gateway's copy of what controllers wrote", sizes)
    }
}
