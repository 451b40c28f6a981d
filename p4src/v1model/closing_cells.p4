// The cells of closing: the sequence numbers and the state of a slot's connection, and whether the switch is closing it.
//
//     client                         switch                          server
//       | ACK of all that was sent ---->| idle: noted as a hint        |
//       |                               |<-- controller: tickle        |    probing
//       |                               |----- seq 0, ack 0 ---------->|
//       |                               |<---- ACK, both as stored ----|    closed
//       |                               |----- RST ------------------->|
//       |<------------------- FIN ------|                              |
//
// Only the server's segments change the two stored numbers, since any host can send segments in the client's name. Any payload cancels
// the status `probing`. A keepalive (the number before the next one, at most one byte) does not count as payload. Three more kinds of
// connections are not idle. If the server acknowledges new data without an answer, it is still working. If the client's window is closed,
// the server may have more to send. If the server's last answer is `100 Continue`, the client has more to send.
//
// An idle connection looks like one whose server pauses within a response. The switch therefore counts pauses by server and length: those
// that the server ended, and those that it did not end. From these counts the controller derives how long a connection must be idle.
#ifndef SLUICE_V1MODEL_CLOSING_CELLS_P4
#define SLUICE_V1MODEL_CLOSING_CELLS_P4

#include "flow_index.p4"

// The connection's next sequence number of one side, and whether it is known: it is from the first answer on.
typedef bit<33> closing_number_t;
#define CLOSING_KNOWN 32:32
#define CLOSING_NUMBER 31:0

typedef bit<62> closing_state_t;
#define CLOSING_STATUS 61:60           // a ClosingStatus
#define CLOSING_SERVER_SPOKE 59:59     // the last payload came from the server
#define CLOSING_ACKNOWLEDGED 58:58     // the client has acknowledged all of that payload
#define CLOSING_LAST 57:26             // when that payload or its acknowledgement passed, in ticks
#define CLOSING_REST 25:0
#define CLOSING_PAUSE 25:22            // a PauseLength: how long the connection looked idle before the server's last payload
#define CLOSING_SHORT 21:21            // the payload after that pause was shorter than any response
#define CLOSING_PROBED 20:0            // when the last tickle passed, in ticks

// The connection of a slot at the time when it became idle: 63 bits, since Thrift carries signed 64-bit values.
typedef bit<63> closing_peer_t;        // client's address, its port, server

// An idle connection: flow index, server (below SERVERS), and the low 31 bits of the time when it became idle. 63 bits in the
// large build.
typedef bit<(CONNECTION_SLOT_BITS + 42)> closing_hint_t;

// Class of a pause's length: 0, or n for a pause below 2^n ticks and not below half of that. The last class has all longer
// pauses.
typedef bit<4> pause_length_t;

// An interim response (RFC 9110, section 15.2.1) as Apache, nginx, Node.js and Go send it: "HTTP/1.1 100 Continue", CR LF twice.
const bit<16> CONTINUE_BYTES = 25;

// Bytes of the shortest response. A server's last payload before it closes is no response but TLS's closing alert (RFC 8446,
// section 6.1), which is shorter.
const bit<16> LEAST_RESPONSE = 64;

typedef bit<2> closing_status_t;       // a ClosingStatus, as wide as in a cell
const closing_status_t CLOSING_OPEN    = 0;
const closing_status_t CLOSING_PROBING = 1;
const closing_status_t CLOSING_CLOSED  = 2;
const closing_status_t CLOSING_RACED   = 3;

// What the switch does with a packet.
enum bit<8> ClosingStep {
    nothing    = 0,
    probe      = 1,  // a tickle: forwarded to the server
    take       = 2,  // the answer to a tickle: becomes RST and FIN
    hold       = 3,  // a packet of a closed connection: dropped
    refuse     = 4,  // a packet of a closed connection: a RST goes back
    refuse_first = 5, // the first such packet with payload of the client: a RST goes back
    say_again  = 6,  // a packet of a closed connection: the server's FIN goes back, or an ACK
    taken_back = 7,  // payload before the answer to a tickle: the attempt is cancelled
    end        = 8   // a RST of the server, which no longer has the connection
}

pause_length_t pause_length(in bit<32> ticks) {
    bit<32> remaining = ticks;
    pause_length_t length = 0;
    if (remaining >= (1 << 14)) {
        length = 15;
    } else {
        if (remaining >= 128) {
            length = 7;
            remaining = remaining >> 7;
        }
        if (remaining >= 8) {
            length = length + 3;
            remaining = remaining >> 3;
        }
        if (remaining >= 4) {
            length = length + 2;
            remaining = remaining >> 2;
        }
        if (remaining >= 2) {
            length = length + 2;
        } else {
            length = length + remaining[3:0];
        }
    }
    return length;
}

// The state after a packet that shows that the connection is open and not idle.
closing_state_t spoken(in bit<1> by_server, in ticks_t now, in closing_state_t state) {
    return CLOSING_OPEN ++ by_server ++ 1w0 ++ now ++ state[CLOSING_REST];
}

// Updates the next sequence numbers of both ends by a server's segment: a SYN-ACK sets both, any other segment but a RST advances
// them.
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

// A bare ACK of the server. With both numbers as stored it is the answer to a tickle, and closes the connection. An ACK of new
// data shows that the server is still working.
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

// The server's payload or FIN: measures the pause before new payload. A FIN ends the pause before the last payload, which is then
// counted.
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

// A tickle: forwarded to the server if the connection is idle.
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

// A client's segment on a closed connection. `client_number`: the client's next number; `lacks_fin`: the client has not
// acknowledged the FIN.
control LateSegment(in headers_t hdr, in metadata_t meta, in closing_number_t server_next, in closing_number_t client_next, in bool keepalive,
                    inout closing_state_t state, inout ClosingStep step, inout bit<32> client_number, inout bit<1> lacks_fin) {
    apply {
        client_number = client_next[CLOSING_NUMBER];
        if (server_next == 1w1 ++ hdr.tcp.acknowledgement) {
            lacks_fin = 1;
        }
        if (meta.event == Event.ack && (keepalive || (lacks_fin == 1 && meta.payload == 0))
            && (lacks_fin == 1 || server_next == 1w1 ++ (hdr.tcp.acknowledgement - 1))) {
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

// A client's ACK without payload. The first one that acknowledges all of the server's last payload makes the connection idle, and
// writes a hint for the controller. After an ACK that closes the window, the server may have more to send: the connection is not
// idle.
control ClientAck(register<closing_peer_t> closing_peer, register<closing_hint_t> closing_hint, in headers_t hdr, in metadata_t meta,
                  in bit<32> index, in closing_number_t server_next, inout closing_state_t state, inout bool pauses) {
    apply {
        if (state[CLOSING_SERVER_SPOKE] == 0 || server_next != 1w1 ++ hdr.tcp.acknowledgement) {
            // The ACK does not acknowledge all of the server's last payload.
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

// `client_number`: the client's next number, if `step` is say_again; `lacks_fin`: the client has not acknowledged the FIN.
control ClosingCells(in headers_t hdr, in metadata_t meta, in place_t place, out ClosingStep step, out bit<32> client_number,
                     out bit<1> lacks_fin) {
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
    bit<32> end;                       // sequence number after the packet's payload
    closing_number_t server_next;
    closing_number_t client_next;
    closing_state_t before;
    closing_state_t state;
    bool pauses;                       // the pause before the server's last payload is over, and is to be counted

    apply {
        step = ClosingStep.nothing;
        client_number = 0;
        lacks_fin = 0;
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
                else if (closed)                                            late_segment.apply(hdr, meta, server_next, client_next, keepalive, state, step, client_number, lacks_fin);
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
