// Content path: applies content switching to a packet after the connection table, before and after the translation of addresses.
//
//   reads  content, pass, next_pass, path, event, payload, vacant, generation, state, next_state, pinned, stable_choice, draining
//          refused, drop, server_drop, splice.remember, spliced.pin
//          what splice, options and remembered read
//   writes server: the agent or the client's last server, and after translation the pinned server again
//          preferred, next_pass, spliced
//          what splice, options and remembered write
//   drops  what splice drops
//
// After translation, the drop reason server_unknown is cleared if the packet goes to another agent instead.
#ifndef SLUICE_V1MODEL_CONTENT_PATH_P4
#define SLUICE_V1MODEL_CONTENT_PATH_P4

#include "agents.p4"
#include "splice.p4"
#include "options.p4"
#include "remembered.p4"

// Results of the content path for a packet, for later controls.
struct spliced_t {
    server_id_t pin;              // the connection's pinned server; the packet itself may go to an agent
    Remember    memory;           // what the content service has stored about the SYN's client
}

// Looks up the last server of a SYN's client. A splice order writes the client's entry, and other packets renew or delete it. If
// no agent reads the service's requests (UNREAD), the stable choice replaces the last server.
control Recollection(in headers_t hdr, inout metadata_t meta, in decided_t decided, inout Remember memory) {
    @name(".SluiceIngress.remembered")
    Remembered() remembered;

    apply {
        if (meta.path == Path.order && hdr.splice.status == (bit<8>)SpliceStatus.applied && hdr.splice.remember != 0
            || meta.content == Content.client && meta.event == Event.syn && meta.payload == 0 && meta.vacant != 0
               && meta.pass == Pass.first && decided.refused != REFUSED
            || meta.content == Content.client && meta.state == PinState.answered && meta.next_state == PinState.established
            || meta.content == Content.server && meta.event == Event.reset && meta.pinned == 1 && meta.state == PinState.pending) {
            if (meta.content != Content.client || meta.generation != UNREAD) {
                remembered.apply(hdr, meta, memory);
            } else if (meta.event == Event.syn) {
                memory = Remember.client;
                meta.preferred = meta.stable_choice;
            }
            if (memory != Remember.nothing)                                 meta.server = meta.preferred;
        }
    }
}

control ContentPath(inout headers_t hdr, inout metadata_t meta, in place_t place, in decided_t decided, inout verdict_t verdict,
                    out spliced_t spliced) {
    @name(".SluiceIngress.splice")
    Splice() splice;
    RebuildOptions() rebuild_options;
    Recollection() recollection;

    apply {
        spliced = { meta.server, Remember.nothing };
        if (meta.content != Content.none && verdict.drop == DropReason.none && meta.pass != Pass.candidate && meta.next_pass == Pass.first) {
            splice.apply(hdr, meta, place, verdict);
            if (meta.pass >= Pass.guess)                                    rebuild_options.apply(hdr, meta);
            recollection.apply(hdr, meta, decided, spliced.memory);
        }
    }
}

// Restores the pinned server, because ledger and loads are counted for this server. If the packet's agent or remembered server is
// unknown, or the remembered server is draining, requests a pass in which the packet goes to another agent. Any agent can take
// over a connection, because all agents share the key of the SYN cookies. A SYN whose remembered server takes new connections
// gets a pass in which it claims a slot.
control BehindTranslation(inout metadata_t meta, in spliced_t spliced, inout DropReason server_drop) {
    apply {
        if (meta.server != spliced.pin || spliced.memory != Remember.nothing) {
            if (server_drop != DropReason.none || (spliced.memory != Remember.nothing && meta.draining == 1)) {
                server_drop = DropReason.none;
                meta.preferred = meta.stable_choice;
                meta.next_pass = Pass.candidate;
            } else if (spliced.memory == Remember.client) {
                meta.next_pass = Pass.claim;
            } else if (spliced.memory == Remember.guess) {
                meta.next_pass = Pass.guess;
            }
            meta.server = spliced.pin;
        }
    }
}

#endif
