//! Processes segments of guessed connections.

use super::Engine;
use crate::connection::{Connection, Fate};
use crate::cookie::ClientOptions;
use crate::facts::Facts;
use crate::frames::Frames;
use crate::wire::Segment;
use crate::wire::flags::{ACK, RST, SYN};

impl Engine {
    /// Processes a client's segment of a guessed connection. In front of the segment, the data plane puts a header with
    /// the facts of the client's handshake with the guessed server.
    pub(super) fn on_guessed(&mut self, now: u64, frame: &[u8], out: &mut Frames) {
        let Some((facts, packet)) = Facts::read(frame) else { return };
        let Ok(segment) = Segment::of_packet(packet) else { return };
        let (source, own) = (segment.source(), segment.destination());
        let Some(service) = self.service_at(own.port()).filter(|_| *own.ip() == self.settings.address) else { return };
        if let Some(&id) = self.by_key.get(&(source, service)) {
            if self.connections[id].connection.is_guessed(&facts) {
                self.with(id, now, out, |connection, ctx| connection.on_guessed(ctx, &facts, &segment));
                return;
            }
            // The client has reused its port for a new connection.
            self.with(id, now, out, |_, _| Fate::Ends);
        }
        self.begin_guessed(now, &facts, &segment, out);
    }

    /// Creates a connection for the first data of a client that has completed its handshake with a guessed server. Any
    /// other segment is ignored.
    fn begin_guessed(&mut self, now: u64, facts: &Facts, segment: &Segment<'_>, out: &mut Frames) {
        let first = facts.isn + 1;
        let has_data = segment.has(ACK) && !segment.has(SYN) && !segment.has(RST) && first.is_before(segment.end());
        // Windows are scaled only if client and server offer a scale.
        let (scale, announced_scale) = facts.client_scale.zip(facts.server_scale).unzip();
        let syn_options = ClientOptions { mss: facts.mss, scale, sack: facts.sack };
        let Some(terms) = self.terms(segment, syn_options, announced_scale.unwrap_or(0)) else { return };
        if !has_data || terms.service.rules.greets() {
            return;
        }
        let connection = Connection::guessed(terms, (first, segment.ack() - 1), facts, now);
        self.insert_connection(now, connection, segment, out);
    }
}
