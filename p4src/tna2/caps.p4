// Caps: bounds the windows that a client and a managed server advertise to each other (after He et al., AC/DC TCP, section 3.3).
// This is the version of v1model/caps.p4 for Tofino 2, where egress does the work.
//
//   reads  bridge, resources, path, event, pinned, state, tcp, number
//          offered: the options of a SYN or SYN-ACK
//   writes tcp.window, segment_changed
//          op, asked_number, known, grows, result: the results of CapNumbers, for Caps, closing and transfers
//          the cells of cap_*, the cells of send_cap and receive_cap
//
// A register has one word of 32 bits for each slot, because 2^16 cells of two words do not fit in half a
// stage. So v1model's cells of several words are several registers here. The numbers of all connections are
// stored, whether their server is managed or not, so that no number has to be learned when management begins.
// Segments with IPv4 options and fragments other than the first are not parsed. A client's window that
// acknowledges the bytes of such a segment passes without a cap, until the server sends another segment that
// is parsed.
#ifndef SLUICE_TNA2_CAPS_P4
#define SLUICE_TNA2_CAPS_P4

// The kind of a packet, which determines the operations on the registers of caps.
enum bit<8> CapOp {
    none   = 0,
    ask    = 1,      // a SYN that begins the connection
    agree  = 2,      // the SYN-ACK that answers this SYN
    end    = 3,      // the SYN-ACK that answers a SYN in an established connection
    client = 4,      // a segment of the client
    server = 5       // a segment of the server
}

typedef bit<(CONNECTION_SLOT_BITS + 1)> flow_index_t;  // slot in the lower bits, way in the highest bit

#include "serial.p4"
#include "cap_handshake.p4"
#include "cap_numbers.p4"
#include "cap_offers.p4"
#include "cap_window.p4"

// Classifies the packet, and extracts the low bits of the number that matches a SYN-ACK with its SYN.
control CapPacket(in headers_t hdr, in metadata_t meta, in bridge_h bridge, out CapOp op, out bit<16> asked_number) {
    @hidden
    action is(CapOp value) {
        op = value;
    }

    @hidden
    table operations {
        key = {
            bridge.content    : ternary @name("content");
            meta.path         : ternary @name("path");
            meta.event        : ternary @name("event");
            bridge.claimed    : ternary @name("claimed");
            meta.pinned       : ternary @name("pinned");
            meta.state        : ternary @name("state");
            hdr.tcp.isValid() : ternary @name("tcp");
            hdr.tcp.ack       : ternary @name("ack");
        }
        actions = { is; }
        const entries = {
            (0, Path.to_service, Event.syn, 1, _, _, true, _)                      : is(CapOp.ask);
            (0, Path.to_service, Event.syn, _, 1, PinState.pending, true, _)       : is(CapOp.ask);
            (0, Path.to_service, Event.syn, _, 1, PinState.answered, true, _)      : is(CapOp.ask);
            (0, Path.from_server, Event.syn_ack, _, 1, PinState.pending, true, _)  : is(CapOp.agree);
            (0, Path.from_server, Event.syn_ack, _, 1, PinState.answered, true, _) : is(CapOp.agree);
            (0, Path.from_server, Event.syn_ack, _, 1, _, true, _)                 : is(CapOp.end);
            (0, Path.to_service, Event.ack, _, 1, _, true, 1)                      : is(CapOp.client);
            (0, Path.to_service, Event.payload, _, 1, _, true, 1)                  : is(CapOp.client);
            (0, Path.to_service, Event.fin, _, 1, _, true, 1)                      : is(CapOp.client);
            (0, Path.from_server, Event.ack, _, 1, _, true, 1)                     : is(CapOp.server);
            (0, Path.from_server, Event.payload, _, 1, _, true, 1)                 : is(CapOp.server);
            (0, Path.from_server, Event.fin, _, 1, _, true, 1)                     : is(CapOp.server);
        }
        const default_action = is(CapOp.none);
    }

    @hidden
    action of_syn() {
        @in_hash { asked_number = hdr.tcp.sequence[15:0]; }
    }

    @hidden
    action of_answer() {
        @in_hash { asked_number = hdr.tcp.acknowledgement[15:0]; }
    }

    apply {
        operations.apply();
        if (meta.event == Event.syn)                                        of_syn();
        else                                                                of_answer();
    }
}

// Selects the cap in bytes on the window of the packet's sender: the connection's individual cap, or its server's cap. There is
// no cap during the handshake.
control CapOfSide(in flow_index_t index, in CapOp op, in resources_t resources, in bit<16> fingerprint, out bit<32> cap) {
    SendCap() send_cap;
    ReceiveCap() receive_cap;

    bit<16> send_size = 0;
    bit<16> receive_size = 0;

    @hidden
    action of_send() {
        cap = resources.send_cap;
    }

    @hidden
    action of_receive() {
        cap = resources.receive_cap;
    }

    @hidden
    action of_none() {
        cap = NO_CAP;
    }

    @hidden
    action own_send() {
        @in_hash { cap = 6w0 ++ send_size ++ 10w0; }
    }

    @hidden
    action own_receive() {
        @in_hash { cap = 6w0 ++ receive_size ++ 10w0; }
    }

    apply {
        if (op == CapOp.client)                                             of_send();
        else if (op == CapOp.server)                                        of_receive();
        else                                                                of_none();
        send_cap.apply(index, op, fingerprint, send_size);
        receive_cap.apply(index, op, fingerprint, receive_size);
        if (send_size != 0)                                                 own_send();
        else if (receive_size != 0)                                         own_receive();
        if (cap == 0)                                                       of_none();
    }
}

// Computes the number of bytes that the receiver of a window may still send. `remaining` includes `rest`, which rounds up to the
// window's unit.
control CapLeft(in headers_t hdr, in metadata_t meta, in flow_index_t index, in CapOp op, in compared_t known, in compared_t result,
                in bit<32> bytes, in bit<32> rest, in bit<32> number, inout bit<32> cap, out bit<32> remaining) {
    CapEffectServer() effect_server;
    CapEffectClient() effect_client;
    CapOffered() offered;

    bit<32> most;
    bit<32> rounded_most;
    bit<32> rounded_bytes;
    bit<32> acknowledged;
    bit<32> edge;
    bit<32> before;

    @hidden
    action round_up() {
        rounded_bytes = bytes + rest;
        acknowledged = hdr.tcp.acknowledgement - rest;
    }

    @hidden
    action bound() {
        most = min(bytes, cap);
    }

    @hidden
    action to_edge() {
        edge = hdr.tcp.acknowledgement + most;
        rounded_most = most + rest;
    }

    @hidden
    action promised() {
        before = before - acknowledged;
    }

    // Compares signed numbers, because the window offered earlier may end below this acknowledgement number.
    @hidden
    action larger() {
        remaining = (bit<32>)max((int<32>)before, (int<32>)rounded_most);
    }

    // Bounds the result by the segment's own window, so that a window within the cap passes unchanged.
    @hidden
    action lesser() {
        remaining = min(remaining, rounded_bytes);
    }

    apply {
        round_up();
        if (meta.path == Path.from_server)                                  effect_client.apply(index, op, result, cap);
        else                                                                effect_server.apply(index, op, result, cap);
        bound();
        to_edge();
        offered.apply(index, op, known, number, edge, before);
        promised();
        larger();
        lesser();
    }
}

// Classifies the packet, and compares its numbers with the connection's stored numbers. The control Closing also uses the result.
control CapNumbers(in headers_t hdr, in resources_egress_t all, in bit<32> number, out CapOp op, out bit<16> asked_number,
                   inout compared_t known, inout compared_t grows, inout compared_t result) {
    CapPacket() packet;
    CapServer() server;
    CapAckedClient() acked_client;
    CapAckedServer() acked_server;

    apply {
        packet.apply(hdr, all.sluice, all.bridge, op, asked_number);
        server.apply(all.bridge.connection, op, number, known, grows);
        acked_client.apply(hdr, all.bridge.connection, op, known, result);
        acked_server.apply(hdr, all.bridge.connection, op, known, result);
    }
}

control Caps(inout headers_t hdr, inout resources_egress_t all, in bit<32> number, in CapOp op, in bit<16> asked_number,
             in compared_t known, in compared_t result) {
    CapOptions() cap_options;
    CapAsked() asked;
    CapAgreed() agreed;
    CapScale() cap_scale;
    CapBytes() cap_bytes;
    CapOfSide() cap_of_side;
    CapLeft() cap_left;
    CapWindow() cap_window;

    CapOp agreed_op;
    window_facts_t announced;
    window_facts_t client_facts = 0;
    window_facts_t server_facts = 0;
    bit<8> scale;
    bit<32> rest;
    bit<32> floor;
    bit<32> cap;
    bit<32> bytes;
    bit<32> remaining;

    @hidden
    action at_least() {
        cap = max(cap, floor);
    }

    apply {
        cap_options.apply(all.offered, announced);
        cap_of_side.apply(all.bridge.connection, op, all.sluice.resources, all.bridge.fingerprint, cap);
        asked.apply(all.bridge.connection, op, asked_number, announced, client_facts);
        agreed.apply(all.bridge.connection, op, announced, server_facts);
        cap_scale.apply(op, client_facts, server_facts, agreed_op, scale, rest, floor);
        cap_bytes.apply(hdr, scale, bytes);
        at_least();
        cap_left.apply(hdr, all.sluice, all.bridge.connection, agreed_op, known, result, bytes, rest, number, cap, remaining);
        cap_window.apply(hdr, agreed_op, known, scale, remaining, all.segment_changed);
    }
}

#endif
