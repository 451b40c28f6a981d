// Content path: content switching of a packet after the connection table, before and after the translation of addresses.
//
//   reads  content, pass, next_pass, path, event, payload, vacant, generation, state, next_state, pinned, stable_choice, draining
//          refused, drop, server_drop, splice.remember, spliced.pin
//          what splice, options and remembered read
//   writes server: the agent or the client's last server, and after translation the pin's server again
//          preferred, next_pass, spliced
//          what splice, options and remembered write
//   drops  what splice drops
//
// After translation, the drop reason server_unknown is withdrawn if another agent takes the packet.
#ifndef SLUICE_V1MODEL_CONTENT_PATH_P4
#define SLUICE_V1MODEL_CONTENT_PATH_P4

#include "agents.p4"
#include "splice.p4"
#include "options.p4"
#include "remembered.p4"

// The content path's results for a packet, which later controls use.
struct spliced_t {
    server_id_t pin;              // the connection's pinned server, since the packet goes elsewhere
    Remember    memory;           // what the content service remembers of the SYN's client
}

// Looks up the last server of the SYN's client; other packets renew or end that memory. If no agent reads the service's requests
// (UNREAD), its stable choice takes that server's place.
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

// Restores the pinned server, for which ledger and loads count. If the packet's agent or remembered server is unknown, or that
// remembered server drains, the packet passes once more, to another agent: all agents have the key of the cookies.
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
