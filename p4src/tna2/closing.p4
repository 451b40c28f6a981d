// Closing: on the controller's order, closes an idle connection of a server in the name of client and server (Azuma, Okamoto,
// Hasegawa & Murata, E-ATBT). v1model/closing.p4 does the same in ingress, by a tickle that passes the pipeline.
//
//   reads  bridge.connection, resources, event, payload, claimed, state, server, clock, tcp, ipv4.src
//          op, known, grows, acknowledged: of caps
//   writes tcp.fin, segment_changed, copy_mark, reset_session, mirror_type, mirror_io_select, drop_ctl
//          the cells of closing_*
//
//     client                         switch                          server
//       | ACK of all that was sent ---->| closing_state: idle since t  |
//       |                               |<-- controller: closing_order, t
//       |                               |    controller's packet-out   |
//       |                               |    seq 0, ack 0 ------------>|
//       |                               |<---- ACK, numbers as known --|    CLOSED
//       |<------ that ACK, with FIN ----|----- its copy, as a RST ---->|
//
// The numbers of the controller's ACK are outside the server's window, so the server answers by an ACK with its own numbers (RFC
// 9293, section 3.10.7.4). The switch sets the FIN flag in this answer, and forwards the answer to the client. A mirrored copy of
// the answer becomes a RST in the client's name (turn_round.p4) and recirculates. The RST has exactly the sequence number that
// the server expects (RFC 5961). Ingress translates and routes the RST, sets the state of the connection's slot to closed, and
// subtracts 1 from the load.
//
// The controller's order identifies an idle period by the period's start time. Payload in either direction, or another connection
// in the slot, ends the period. The next idle period has another start time; start times repeat after 9.8 hours. An order is
// valid until the server's next segment.
#ifndef SLUICE_TNA2_CLOSING_P4
#define SLUICE_TNA2_CLOSING_P4

#include "closing_cells.p4"

control Closing(inout headers_t hdr, inout resources_egress_t all, in CapOp op, in compared_t known, in compared_t grows,
                in compared_t acknowledged, inout egress_intrinsic_metadata_for_deparser_t for_deparser) {
    ClosingOrder() order;
    ClosingPeer() peer;
    ClosingPacket() packet;
    ClosingState() state;

    COUNT_REGISTER(REGISTER_CLOSING_TAKEN, server_id_t, SERVERS, closing_taken)

    idle_since_t now;
    idle_since_t ordered = 0;
    idle_since_t stamp;
    ClosingOp closing_op;
    compared_t state_before = 0;

    @hidden
    action cut_now() {
        @in_hash { now = 1w1 ++ all.sluice.clock[24:10]; }
    }

    @hidden
    action copy() {
        for_deparser.mirror_type = MIRROR_RESET;
        for_deparser.mirror_io_select = 1;                // mirrors the packet as it leaves egress
        all.reset_session = RESET_SESSION;
        all.copy_mark = COPY_MARK;
    }

    @hidden
    action take() {
        copy();
        hdr.tcp.fin = 1;
        all.segment_changed = 1;
        COUNT(closing_taken, all.sluice.server)
    }

    @hidden
    action refuse() {
        copy();
        for_deparser.drop_ctl = 1;                        // drops the packet; its copy is sent
    }

    @hidden
    action hold() {
        for_deparser.drop_ctl = 1;
    }

    @hidden
    action pass() { }

    // On a closed connection, the server's segments and the client's payload are dropped, and their sender gets a RST. The
    // client's bare ACKs are dropped. The client's FIN and RST are forwarded to the server, which answers the FIN by a RST.
    @hidden
    table steps {
        key = {
            op               : ternary @name("op");
            all.sluice.event : ternary @name("event");
            state_before     : ternary @name("was");
        }
        actions = { take; refuse; hold; pass; }
        const entries = {
            (CapOp.server, _, WAS_AS_ORDERED)         : take();
            (CapOp.server, _, WAS_CLOSED)             : refuse();
            (CapOp.server, _, IS_CLOSED)              : refuse();
            (CapOp.client, Event.payload, WAS_CLOSED) : refuse();
            (CapOp.client, Event.ack, WAS_CLOSED)     : hold();
            (CapOp.client, Event.ack, IS_CLOSED)      : hold();
        }
        const default_action = pass();
    }

    apply {
        cut_now();
        order.apply(all.bridge.connection, op, hdr.tcp.src_port, ordered);
        peer.apply(all.bridge.connection, op, hdr.ipv4.src);
        packet.apply(hdr, all.sluice, op, known, grows, acknowledged, now, ordered, closing_op, stamp);
        state.apply(all.bridge.connection, closing_op, stamp, state_before);
        steps.apply();
    }
}

#endif
