// Content path: applies content switching to a packet after the connection table, before and after the translation of addresses.
//
//   reads  content, has_slot, pass, stable_choice, server_drop, drop, turn
//          what splice and resplice read
//   writes server: the agent while the agent translates, and after translation the pinned server again
//          neighbour, payload, preferred, next_pass, pin
//          what splice and resplice write
//   drops  what splice and agents drop
#ifndef SLUICE_TNA2_CONTENT_PATH_P4
#define SLUICE_TNA2_CONTENT_PATH_P4

#include "splice.p4"
#include "resplice.p4"

// Results of the content path for a packet, for later controls.
struct spliced_t {
    bit<32>     value;            // delta of a spliced connection's sequence numbers; for a splice order: whether the stored
                                  // delta equals the order's delta
    bit<1>      detour;           // an answer while the agent translates: it goes to the agent, with the client as destination
    server_id_t pin;              // the connection's pinned server; the packet itself may go to an agent
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

// Restores the pinned server, because ledger and loads are counted for this server. If the packet's agent is unknown, requests
// another pass in which the packet goes to another agent.
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

    // A table replaces a condition, because p4c's assembly of a condition over several bytes fails with "Didn't cover all bytes".
    @hidden
    @no_gateway_conversion
    table agent_gone {
        key = {
            server_drop   : ternary @name("server_drop");
            meta.content  : ternary @name("content");
            meta.has_slot : ternary @name("held");
            meta.pass     : ternary @name("pass");
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

// Makes the agent the next hop of an answer to it: while the agent translates, the turn is the agent's number. Sets the payload to
// 0, because a packet to an agent is not part of a response to the client.
control Detour(inout metadata_t meta, in spliced_t spliced, inout verdict_t verdict) {
    AgentHop() agent_hop;

    @hidden
    action to_agent() {
        meta.payload = 0;
    }

    apply {
        if (spliced.detour == 1) {
            to_agent();
            if (verdict.drop == DropReason.none) {
                agent_hop.apply(meta.turn, verdict);
            }
        }
    }
}

#endif
