// Content path: content switching of a packet after the connection table, before and after the translation of addresses.
//
//   reads  content, held, pass, flow.dst, stable_choice, server_drop
//          what splice and resplice read
//   writes server: an agent in its turn, and after translation the pin's server again
//          ipv4.dst, payload, preferred, next_pass, pin
//          what splice and resplice write
//   drops  what splice drops
#ifndef SLUICE_TNA2_CONTENT_PATH_P4
#define SLUICE_TNA2_CONTENT_PATH_P4

#include "splice.p4"
#include "resplice.p4"

// The content path's results for a packet, which later controls use.
struct spliced_t {
    bit<32>     value;            // delta; of an order, whether the stored delta equals the order's
    bit<1>      detour;           // an answer in the agent's turn: it goes to the agent, with its client as destination
    server_id_t pin;              // the connection's pinned server, since the packet may go to an agent
}

control ContentPath(inout headers_t hdr, inout metadata_t meta, in place_t place, inout DropReason drop, inout spliced_t spliced) {
    Splice() splice;
    Unheard() unheard;
    Resplice() resplice;

    @hidden
    action keep_pin() {
        spliced.pin = meta.server;
    }

    apply {
        keep_pin();
        splice.apply(hdr, meta, place, spliced.value, spliced.detour);
        unheard.apply(meta, drop);
        resplice.apply(hdr, meta, spliced.value);
    }
}

// Restores the pinned server, for which ledger and loads count. If the packet's agent is unknown, the packet passes once more, to
// another agent.
control BehindTranslation(inout metadata_t meta, in spliced_t spliced, in DropReason server_drop) {
    @hidden
    action restore_pin() {
        meta.server = spliced.pin;
    }

    @hidden
    action to_other_agent() {
        meta.preferred = meta.stable_choice;
        meta.next_pass = Pass.candidate;
    }

    @hidden
    action neither() { }

    // A table instead of a condition: p4c's assembly of a condition over several bytes fails with "Didn't cover all bytes".
    @hidden
    @no_gateway_conversion
    table agent_gone {
        key = {
            server_drop  : ternary @name("server_drop");
            meta.content : ternary @name("content");
            meta.held    : ternary @name("held");
            meta.pass    : ternary @name("pass");
        }
        actions = { to_other_agent; neither; }
        const entries = {
            (DropReason.none, _, _, _)             : neither();
            (_, Content.client, 1, Pass.first)     : to_other_agent();
        }
        const default_action = neither();
    }

    apply {
        restore_pin();
        agent_gone.apply();
    }
}

// Restores an answer's own destination after forward. A packet to an agent does not count as a response to its client.
control EndDetour(inout headers_t hdr, inout metadata_t meta, in spliced_t spliced) {
    @hidden
    action end_detour() {
        hdr.ipv4.dst = meta.flow.dst;
        meta.payload = 0;
    }

    apply {
        if (spliced.detour == 1) {
            end_detour();
        }
    }
}

#endif
