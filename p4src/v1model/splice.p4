// Splice: decides whether agent or switch translates a content connection, and does the switch's translation (Chow, Wang &
// Prakash, section 3.1).
//
//              the agent translates                            spliced: the switch translates
//     client <--> agent <--> server             client <--> switch <--> server      (guessed: client's payload to an agent)
//
//              seq + delta                <-------------  seq          the windows << shift
//              ack, SACK blocks           ------------->  - delta
//
//   reads  place, path, pass, next_pass, way, content, event, payload, has_slot, pinned, claimed, state, server, stable_choice
//          agent, options, icmp_error, tcp, sack, sack_blocks, inner_ipv4.protocol, inner_transport, vlan
//          splice, router_mac, ingress_port, ethernet.src: of a splice order
//   writes server: the agent, while the agent translates
//          neighbour, options.mss, respliced, tcp, sack_blocks, inner_transport
//          guessed, ethernet.type, vlan.type: of a guessed segment
//          path, splice.status, ethernet, egress_port: of a splice order, which is confirmed to its agent
//          the cell of splice_cells
//   drops  spliced, no_slot, unbound, syn_payload, server_unknown
//
// Payload of a client's SYN (TCP Fast Open) never reaches a server, because a server that accepts it without a cookie would
// answer before the rules have read the payload. Agents drop the payload of a SYN, and the client repeats it (RFC 7413, section
// 4.1.2).
//
// The agent opens its connection to the server with the client's initial sequence number, so the client's sequence numbers need
// no translation. The connection is pinned to the group's server also while the agent translates: the connection table contains
// no agent.
#ifndef SLUICE_V1MODEL_SPLICE_P4
#define SLUICE_V1MODEL_SPLICE_P4

#include "agents.p4"
#include "splice_cells.p4"
#include "resplice.p4"

// The largest MSS in a SYN-ACK of a guessed server, so that the header guessed_h fits in a frame to an agent: Ethernet's MSS
// minus 14.
const bit<16> GUESSED_MSS_LIMIT = 1446;

control Splice(inout headers_t hdr, inout metadata_t meta, in place_t place, inout verdict_t verdict) {
    SpliceCells() cells;
    Resplice() resplice;
    AgentHop() agent_hop;

    splice_t splice;

    apply {
        if (meta.path == Path.order) {
            hdr.splice.status = (bit<8>)SpliceStatus.no_connection;
        }
        if (meta.has_slot == 1) {
            cells.apply(hdr, meta, place, splice, verdict.drop);
            if (meta.content == Content.agent) {
                // An agent's packet goes to the server.
            } else if (meta.content == Content.client && splice.turn != Turn.agent && hdr.tcp.syn == 1 && meta.payload != 0) {
                verdict.drop = DropReason.syn_payload;
            } else if (splice.turn == Turn.spliced) {
                resplice.apply(hdr, meta, splice);
            } else if (splice.turn == Turn.guessed) {
                if (meta.pass == Pass.facts && meta.options.mss > GUESSED_MSS_LIMIT) {
                    meta.options.mss = GUESSED_MSS_LIMIT;
                }
                if (meta.content == Content.client && meta.payload != 0 && (meta.event == Event.ack || meta.event == Event.fin)) {
                    hdr.guessed.setValid();
                    hdr.guessed.server = meta.server;
                    hdr.guessed.client_number = splice.client;
                    meta.server = meta.stable_choice;
                    hdr.guessed.server_scale = (bit<8>)splice.value[GUESSED_SERVER_SCALE] - 1;
                    hdr.guessed.client_scale = (bit<8>)splice.value[GUESSED_CLIENT_SCALE] - 1;
                    hdr.guessed.sack = (bit<8>)splice.value[GUESSED_SACK];
                    hdr.guessed.flags = (bit<8>)splice.value[GUESSED_HAS_SPOKEN];
                    hdr.guessed.client_mss = splice.value[GUESSED_MSS];
                    hdr.guessed.type = ETHERTYPE_IPV4;
                }
            } else if (meta.content == Content.client) {
                meta.server = splice.agent;
            } else {
                agent_hop.apply(splice.agent, verdict);
            }
        } else if (meta.content == Content.agent && meta.next_pass == Pass.first && meta.path != Path.order) {
            verdict.drop = DropReason.no_slot;
        }
        // Only packets of the pinned server of a group are forwarded. A SYN-ACK on a closed pin is dropped, because it answers an
        // earlier SYN to a server that the agent has left, and the agent could not distinguish it from the next server's SYN-ACK.
        if (meta.content == Content.server && (meta.pinned == 0 || (meta.event == Event.syn_ack && meta.state == PinState.closed))) {
            verdict.drop = DropReason.unbound;
        }
    }
}

// Sends a splice order with its status back to its sender, as the confirmation.
control Confirm(inout headers_t hdr, inout metadata_t meta, inout verdict_t verdict) {
    apply {
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.router_mac;
        verdict.egress_port = meta.ingress_port;
        meta.path = Path.done;
    }
}

// Sets the EtherType that announces the header guessed_h. This header follows the VLAN tag, or the Ethernet header if there is no
// tag.
control Guessed(inout headers_t hdr) {
    apply {
        if (hdr.vlan.isValid()) {
            hdr.vlan.type = ETHERTYPE_GUESSED;
        } else {
            hdr.ethernet.type = ETHERTYPE_GUESSED;
        }
    }
}

#endif
