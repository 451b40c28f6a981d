// Content path: what content switching does behind the connection table, before and behind the translation of addresses.
//
//   reads  content, pass, next_pass, path, event, payload, vacant, generation, state, next_state, pinned, stable_choice, draining
//          refused, drop, server_drop, splice.remember, spliced.pin
//          what splice, options and remembered read
//   writes server: the agent or the client's last server, and behind translation the pin's server again
//          preferred, next_pass, spliced
//          what splice, options and remembered write
//   drops  what splice drops
//
// Behind translation the reason server_unknown is taken back where another agent takes the packet.
#ifndef SLUICE_V1MODEL_CONTENT_PATH_P4
#define SLUICE_V1MODEL_CONTENT_PATH_P4

#include "agents.p4"
#include "splice.p4"
#include "options.p4"
#include "remembered.p4"

// What the content path says of a packet, for what follows.
struct spliced_t {
    server_id_t pin;              // the connection's server, where the packet goes elsewhere
    Remember    memory;           // what is remembered of the SYN's client
}

// Whether the client's last server is known: asked of its SYN, and renewed or ended by what comes of it. Without rules that are read
// (UNREAD) a SYN goes by layer 4.
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

control ContentPath(inout headers_t hdr, inout metadata_t meta, in place_t place, in decided_t decided, inout DropReason drop,
                    out spliced_t spliced) {
    @name(".SluiceIngress.splice")
    Splice() splice;
    RebuildOptions() rebuild_options;
    Recollection() recollection;

    apply {
        spliced = { meta.server, Remember.nothing };
        if (meta.content != Content.none && drop == DropReason.none && meta.pass != Pass.candidate && meta.next_pass == Pass.first) {
            splice.apply(hdr, meta, place, drop);
            if (meta.pass >= Pass.guess)                                    rebuild_options.apply(hdr, meta);
            recollection.apply(hdr, meta, decided, spliced.memory);
        }
    }
}

// Ledger and loads count for the connection's server. A packet whose agent or remembered server is gone, or whose remembered server
// drains, passes once more, to an agent: all agents know the cookie's key.
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
