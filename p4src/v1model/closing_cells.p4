// The cells of closing: what is known of both ends of a slot's connection, and whether it is being closed.
//
//     client                         switch                          server
//       | ACK of all that was sent ---->| idle: noted as a hint        |
//       |                               |<-- controller: tickle        |    probing
//       |                               |----- seq 0, ack 0 ---------->|
//       |                               |<---- ACK, both as stored ----|    closed
//       |                               |----- RST ------------------->|
//       |<------------------- FIN ------|                              |
//
// Both numbers are the server's word: what is sent in the client's name moves none. Any payload takes `probing` back; a keepalive
// (the number before the next, at most one byte) is no payload. Three more kinds of connections are not idle. Where the server acknowledges
// more without an answer, it has work to do. Where the client's window is closed, the server may have more to send. Where the server has
// answered by `100 Continue` alone, the client has.
//
// An idle connection looks like one whose server pauses within a response: pauses that the server ended are counted, by server and length,
// and so are those that it did not. From their counts the controller learns how long is idle.
#ifndef SLUICE_V1MODEL_CLOSING_CELLS_P4
#define SLUICE_V1MODEL_CLOSING_CELLS_P4

#include "flow_index.p4"

// Known since the connection's first answer, and the number.
typedef bit<33> closing_number_t;
#define CLOSING_KNOWN 32:32
#define CLOSING_NUMBER 31:0

typedef bit<62> closing_state_t;
#define CLOSING_STATUS 61:60           // a ClosingStatus
#define CLOSING_SERVER_SPOKE 59:59     // the last payload is the server's
#define CLOSING_ACKNOWLEDGED 58:58     // all of it
#define CLOSING_LAST 57:26             // when it passed, or was acknowledged, in ticks
#define CLOSING_REST 25:0
#define CLOSING_PAUSE 25:22            // a PauseLength: how long the connection looked idle before the server's last payload
#define CLOSING_SHORT 21:21            // and that was shorter than any response
#define CLOSING_PROBED 20:0            // when the last tickle passed

// Whose connection a slot has, as of when it became idle: 63 bits, for Thrift carries signed 64-bit values.
typedef bit<63> closing_peer_t;        // client's address, its port, server

// An idle connection: flow index, server (of SERVERS), and the low 31 bits of when it became idle: 63 bits in the large build.
typedef bit<(CONNECTION_SLOT_BITS + 42)> closing_hint_t;

// Pauses of each server by their length: 0, or below 2^length ticks and not below half of that; the last are all that are longer.
typedef bit<4> pause_length_t;

// An interim response (RFC 9110, section 15.2.1) as Apache, nginx, Node.js and Go send it: "HTTP/1.1 100 Continue", CR LF twice.
const bit<16> CONTINUE_BYTES = 25;

// What a server says before it closes is no response: TLS's last alert (RFC 8446, section 6.1), which is shorter.
const bit<16> LEAST_RESPONSE = 64;

typedef bit<2> closing_status_t;       // a ClosingStatus in a cell
const closing_status_t CLOSING_OPEN    = 0;
const closing_status_t CLOSING_PROBING = 1;
const closing_status_t CLOSING_CLOSED  = 2;
const closing_status_t CLOSING_RACED   = 3;

// What is done with a packet.
enum bit<8> ClosingStep {
    nothing    = 0,
    probe      = 1,  // a tickle: on to the server
    take       = 2,  // its answer: becomes RST and FIN
    hold       = 3,  // of a closed connection: dropped
    refuse     = 4,  // the same, and a RST goes back
    refuse_first = 5, // the first of them with payload of the client's
    say_again  = 6,  // the same, and the server's FIN goes back, or an ACK
    taken_back = 7,  // payload before the answer
    end        = 8   // the server's RST: it had no connection any more
}

pause_length_t pause_length(in bit<32> ticks) {
    bit<32> left = ticks;
    pause_length_t length = 0;
    if (left >= (1 << 14)) {
        length = 15;
    } else {
        if (left >= 128) {
            length = 7;
            left = left >> 7;
        }
        if (left >= 8) {
            length = length + 3;
            left = left >> 3;
        }
        if (left >= 4) {
            length = length + 2;
            left = left >> 2;
        }
        if (left >= 2) {
            length = length + 2;
        } else {
            length = length + left[3:0];
        }
    }
    return length;
}

// The state behind a packet that one of the two ends has sent: the connection is open, and not idle.
closing_state_t spoken(in bit<1> by_server, in ticks_t now, in closing_state_t state) {
    return CLOSING_OPEN ++ by_server ++ 1w0 ++ now ++ state[CLOSING_REST];
}

// What both ends expect next, by a segment of the server's: a SYN-ACK sets both numbers, any other but a RST moves them on.
control ServerNumbers(register<closing_number_t> closing_server_next, register<closing_number_t> closing_client_next, in headers_t hdr,
                      in Event event, in bit<32> index, in bit<32> end, in closing_number_t server_next, in closing_number_t client_next) {
    apply {
        if (event == Event.syn_ack) {
            closing_server_next.write(index, 1w1 ++ (hdr.tcp.sequence + 1));
            closing_client_next.write(index, 1w1 ++ hdr.tcp.acknowledgement);
        } else if (event != Event.reset) {
            if (server_next[CLOSING_KNOWN] == 0 || later(end, server_next[CLOSING_NUMBER])) {
                closing_server_next.write(index, 1w1 ++ end);
            }
            if (client_next[CLOSING_KNOWN] == 0 || later(hdr.tcp.acknowledgement, client_next[CLOSING_NUMBER])) {
                closing_client_next.write(index, 1w1 ++ hdr.tcp.acknowledgement);
            }
        }
    }
}

// A bare ACK of the server's: the answer to a tickle, with both numbers as they are stored, closes the connection. An ACK of more than
// before shows that the server has work to do.
control ServerAck(in headers_t hdr, in metadata_t meta, in closing_number_t server_next, in closing_number_t client_next, in bool probing,
                  inout closing_state_t state, inout ClosingStep step) {
    apply {
        bool as_stored = server_next == 1w1 ++ hdr.tcp.sequence && client_next == 1w1 ++ hdr.tcp.acknowledgement;
        if (probing && as_stored && meta.state == PinState.established) {
            state[CLOSING_STATUS] = CLOSING_CLOSED;
            step = ClosingStep.take;
        } else if (client_next[CLOSING_KNOWN] == 1 && later(hdr.tcp.acknowledgement, client_next[CLOSING_NUMBER])) {
            state = spoken(0, meta.now, state);
        }
    }
}

// The server's payload or FIN: measures the pause before new payload; a FIN ends the pause before the last payload, which is then counted.
control ServerPayload(in metadata_t meta, in bit<32> end, in closing_number_t server_next, in closing_state_t before,
                      inout closing_state_t state, inout bool pauses) {
    apply {
        state = spoken(1, meta.now, state);
        if (before[CLOSING_SERVER_SPOKE] == 1 && before[CLOSING_ACKNOWLEDGED] == 1 && meta.payload != 0
            && later(end, server_next[CLOSING_NUMBER])) {
            state[CLOSING_PAUSE] = pause_length(meta.now - before[CLOSING_LAST]);
            state[CLOSING_SHORT] = 0;
            if (meta.payload < LEAST_RESPONSE) {
                state[CLOSING_SHORT] = 1;
            }
        } else if (meta.payload != 0) {
            state[CLOSING_SHORT] = 0;
        }
        if (meta.event == Event.fin) {
            if (state[CLOSING_SHORT] == 1) {
                state[CLOSING_PAUSE] = 0;
            }
            pauses = state[CLOSING_PAUSE] != 0;
        }
    }
}

// A tickle: goes on to the server of a connection that is idle.
control Tickle(in headers_t hdr, in metadata_t meta, in closing_state_t before, inout closing_state_t state, inout ClosingStep step) {
    apply {
        if (before[CLOSING_STATUS] < CLOSING_CLOSED && before[CLOSING_SERVER_SPOKE] == 1 && before[CLOSING_ACKNOWLEDGED] == 1
            && meta.state == PinState.established && meta.now - before[CLOSING_LAST] >= hdr.tickle.least_age) {
            state[CLOSING_STATUS] = CLOSING_PROBING;
            state[CLOSING_PROBED] = meta.now[20:0];
            step = ClosingStep.probe;
        }
    }
}

// A client's segment on a closed connection. `client_number`: its next number; `says_fin`: it has not acknowledged the FIN.
control LateSegment(in headers_t hdr, in metadata_t meta, in closing_number_t server_next, in closing_number_t client_next, in bool keepalive,
                    inout closing_state_t state, inout ClosingStep step, inout bit<32> client_number, inout bit<1> says_fin) {
    apply {
        client_number = client_next[CLOSING_NUMBER];
        if (server_next == 1w1 ++ hdr.tcp.acknowledgement) {
            says_fin = 1;
        }
        if (meta.event == Event.ack && (keepalive || (says_fin == 1 && meta.payload == 0))
            && (says_fin == 1 || server_next == 1w1 ++ (hdr.tcp.acknowledgement - 1))) {
            step = ClosingStep.say_again;
        } else if (meta.payload != 0 && meta.event != Event.reset && meta.event != Event.syn) {
            step = ClosingStep.refuse;
            if (state[CLOSING_STATUS] == CLOSING_CLOSED) {
                step = ClosingStep.refuse_first;
                state[CLOSING_STATUS] = CLOSING_RACED;
            }
        } else if (meta.event == Event.ack) {
            step = ClosingStep.hold;
        }
    }
}

// A client's ACK without payload: the first that acknowledges all of the server's last payload makes the connection idle, and notes that.
// Behind a closed window the server may have more to send: not idle.
control ClientAck(register<closing_peer_t> closing_peer, register<closing_hint_t> closing_hint, in headers_t hdr, in metadata_t meta,
                  in bit<32> index, in closing_number_t server_next, inout closing_state_t state, inout bool pauses) {
    apply {
        if (state[CLOSING_SERVER_SPOKE] == 0 || server_next != 1w1 ++ hdr.tcp.acknowledgement) {
            // acknowledges nothing of the server's last payload
        } else if (hdr.tcp.window == 0) {
            state = spoken(1, meta.now, state);
        } else if (state[CLOSING_ACKNOWLEDGED] == 0) {
            state[CLOSING_ACKNOWLEDGED] = 1;
            state[CLOSING_LAST] = meta.now;
            pauses = true;
            closing_peer.write(index, meta.connection.client ++ meta.connection.client_port ++ meta.server[14:0]);
            closing_hint.write(index & (CLOSING_HINTS - 1), index[CONNECTION_SLOT_BITS:0] ++ meta.server[9:0] ++ meta.now[30:0]);
        }
    }
}

// Counts the pause before the server's last payload, by server and length.
control PauseCount(in metadata_t meta, inout closing_state_t state) {
    @name(".SluiceIngress.closing.closing_pauses")
    @id(REGISTER_CLOSING_PAUSES)
    register<bit<32>>(CLOSING_PAUSES) closing_pauses;

    apply {
        bit<32> cell = (bit<32>)(meta.server[9:0] ++ state[CLOSING_PAUSE]);
        bit<32> counted;
        closing_pauses.read(counted, cell);
        closing_pauses.write(cell, counted + 1);
        state[CLOSING_PAUSE] = 0;
    }
}

// `client_number`: the client's next number, where `step` is say_again; `says_fin`: the client has not acknowledged the FIN.
control ClosingCells(in headers_t hdr, in metadata_t meta, in place_t place, out ClosingStep step, out bit<32> client_number,
                     out bit<1> says_fin) {
    @name(".SluiceIngress.closing.closing_server_next")
    @id(REGISTER_CLOSING_SERVER_NEXT)
    register<closing_number_t>(SPLICES) closing_server_next;
    @name(".SluiceIngress.closing.closing_client_next")
    @id(REGISTER_CLOSING_CLIENT_NEXT)
    register<closing_number_t>(SPLICES) closing_client_next;
    @name(".SluiceIngress.closing.closing_state")
    @id(REGISTER_CLOSING_STATE)
    register<closing_state_t>(SPLICES) closing_state;
    @name(".SluiceIngress.closing.closing_peer")
    @id(REGISTER_CLOSING_PEER)
    register<closing_peer_t>(SPLICES) closing_peer;
    @name(".SluiceIngress.closing.closing_hint")
    @id(REGISTER_CLOSING_HINT)
    register<closing_hint_t>(CLOSING_HINTS) closing_hint;
    ServerNumbers() server_numbers;
    ServerAck() server_ack;
    ServerPayload() server_payload;
    Tickle() tickle;
    LateSegment() late_segment;
    ClientAck() client_ack;
    PauseCount() pause_count;

    bit<32> index;
    bit<32> end;                       // the number behind the packet's payload
    closing_number_t server_next;
    closing_number_t client_next;
    closing_state_t before;
    closing_state_t state;
    bool pauses;                       // the pause before the server's last payload is over, and to be counted

    apply {
        step = ClosingStep.nothing;
        client_number = 0;
        says_fin = 0;
        pauses = false;
        index = flow_index(meta.way, place.slot_1, place.slot_2);
        if (meta.claimed == 1 || meta.pass == Pass.move) {
            closing_server_next.write(index, 0);
            closing_client_next.write(index, 0);
            closing_state.write(index, CLOSING_OPEN ++ 2w0 ++ meta.now ++ 26w0);
        } else if (meta.path == Path.to_service || (meta.pinned == 1 && (hdr.tcp.ack == 1 || meta.event == Event.reset))) {
            end = hdr.tcp.sequence + (bit<32>)meta.payload;
            closing_server_next.read(server_next, index);
            closing_client_next.read(client_next, index);
            closing_state.read(before, index);
            state = before;
            bit<21> waited = meta.now[20:0] - before[CLOSING_PROBED];
            bool probing = before[CLOSING_STATUS] == CLOSING_PROBING && (bit<32>)waited <= PROBE_TIME;
            bool closed = before[CLOSING_STATUS] >= CLOSING_CLOSED;

            if (meta.path == Path.from_server) {
                server_numbers.apply(closing_server_next, closing_client_next, hdr, meta.event, index, end, server_next, client_next);
                if (meta.event == Event.syn_ack)                            state = spoken(0, meta.now, state);
                else if (closed && meta.event == Event.reset)               step = ClosingStep.end;
                else if (closed && (meta.payload != 0 || meta.event == Event.ack)) step = ClosingStep.refuse;    // the RST was late, or is lost
                else if (closed || meta.event == Event.reset)               { }
                else if (meta.payload == 0 && meta.event == Event.ack)      server_ack.apply(hdr, meta, server_next, client_next, probing, state, step);
                else if (meta.payload == CONTINUE_BYTES && meta.event == Event.ack && before[CLOSING_SERVER_SPOKE] == 0) {
                    state = spoken(0, meta.now, state);
                } else if (meta.payload != 1 || server_next != 1w1 ++ end)  server_payload.apply(meta, end, server_next, before, state, pauses);
            } else {
                bool keepalive = meta.payload <= 1 && meta.event == Event.ack && client_next == 1w1 ++ (hdr.tcp.sequence + 1);
                if (hdr.tickle.isValid())                                   tickle.apply(hdr, meta, before, state, step);
                else if (closed)                                            late_segment.apply(hdr, meta, server_next, client_next, keepalive, state, step, client_number, says_fin);
                else if (meta.event == Event.ack && (meta.payload == 0 || keepalive)) {
                    client_ack.apply(closing_peer, closing_hint, hdr, meta, index, server_next, state, pauses);
                } else {
                    state = spoken(0, meta.now, state);
                    pauses = before[CLOSING_PAUSE] != 0;
                }
            }

            if (pauses)                                                     pause_count.apply(meta, state);
            if (probing && state[CLOSING_STATUS] == CLOSING_OPEN)           step = ClosingStep.taken_back;
            if (state != before)                                            closing_state.write(index, state);
        }
    }
}

#endif
