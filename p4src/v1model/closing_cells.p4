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
// Both numbers are the server's word: what somebody sends in the client's name moves none. Any payload takes `probing` back; a keepalive
// (the number before the next, at most one byte) is no payload. Two more kinds of connections are not idle. Where the server acknowledges
// more without an answer, it has work to do. Where the client's window is closed, the server may have more to send.
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
#define CLOSING_PROBED 25:0            // when the last tickle passed

// Whose connection a slot has, as of when it became idle: 63 bits, for Thrift carries signed 64-bit values.
typedef bit<63> closing_peer_t;        // client's address, its port, server

// An idle connection: flow index, server (of SERVERS), and the low 31 bits of when it became idle: 63 bits in the large build.
typedef bit<(CONNECTION_SLOT_BITS + 42)> closing_hint_t;

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
    refuse_first = 5, // the first of them
    taken_back = 6,  // payload before the answer
    end        = 7   // the server's RST: it had no connection any more
}

control ClosingCells(in headers_t hdr, in metadata_t meta, in place_t place, out ClosingStep step) {
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

    bit<32> index;
    bit<32> end;                       // the number behind the packet's payload
    closing_number_t server_next;
    closing_number_t client_next;
    closing_state_t before;
    closing_state_t state;
    bool keepalive;

    @hidden
    action spoke(bit<1> by_server) {
        state[CLOSING_STATUS] = CLOSING_OPEN;
        state[CLOSING_SERVER_SPOKE] = by_server;
        state[CLOSING_ACKNOWLEDGED] = 0;
        state[CLOSING_LAST] = meta.now;
    }

    apply {
        step = ClosingStep.nothing;
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
            bit<26> waited = meta.now[25:0] - before[CLOSING_PROBED];
            bool probing = before[CLOSING_STATUS] == CLOSING_PROBING && (bit<32>)waited <= PROBE_TIME;
            bool closed = before[CLOSING_STATUS] >= CLOSING_CLOSED;

            if (meta.path == Path.from_server) {
                bool as_stored = server_next == 1w1 ++ hdr.tcp.sequence && client_next == 1w1 ++ hdr.tcp.acknowledgement;
                keepalive = meta.payload == 1 && server_next == 1w1 ++ end;
                if (meta.event == Event.syn_ack) {
                    closing_server_next.write(index, 1w1 ++ (hdr.tcp.sequence + 1));
                    closing_client_next.write(index, 1w1 ++ hdr.tcp.acknowledgement);
                    spoke(0);
                } else if (meta.event == Event.reset) {
                    if (closed) {
                        step = ClosingStep.end;
                    }
                } else {
                    if (server_next[CLOSING_KNOWN] == 0 || later(end, server_next[CLOSING_NUMBER])) {
                        closing_server_next.write(index, 1w1 ++ end);
                    }
                    if (client_next[CLOSING_KNOWN] == 0 || later(hdr.tcp.acknowledgement, client_next[CLOSING_NUMBER])) {
                        closing_client_next.write(index, 1w1 ++ hdr.tcp.acknowledgement);
                    }
                    if (closed) {
                        if (meta.payload != 0 || meta.event == Event.ack) {
                            step = ClosingStep.hold;
                        }
                    } else if (meta.payload == 0 && meta.event == Event.ack) {
                        if (probing && as_stored && meta.state == PinState.established) {
                            state[CLOSING_STATUS] = CLOSING_CLOSED;
                            step = ClosingStep.take;
                        } else if (client_next[CLOSING_KNOWN] == 1 && later(hdr.tcp.acknowledgement, client_next[CLOSING_NUMBER])) {
                            spoke(0);
                        }
                    } else if (!keepalive) {
                        spoke(1);
                    }
                }
            } else {
                keepalive = meta.payload <= 1 && meta.event == Event.ack && client_next == 1w1 ++ (hdr.tcp.sequence + 1);
                if (hdr.tickle.isValid()) {
                    if (!closed && before[CLOSING_SERVER_SPOKE] == 1 && before[CLOSING_ACKNOWLEDGED] == 1
                        && meta.state == PinState.established && meta.now - before[CLOSING_LAST] >= hdr.tickle.least_age) {
                        state[CLOSING_STATUS] = CLOSING_PROBING;
                        state[CLOSING_PROBED] = meta.now[25:0];
                        step = ClosingStep.probe;
                    }
                } else if (closed) {
                    if (meta.payload != 0 && meta.event != Event.reset && meta.event != Event.syn) {
                        step = ClosingStep.refuse;
                        if (before[CLOSING_STATUS] == CLOSING_CLOSED) {
                            step = ClosingStep.refuse_first;
                            state[CLOSING_STATUS] = CLOSING_RACED;
                        }
                    } else if (meta.event == Event.ack) {
                        step = ClosingStep.hold;
                    }
                } else if (meta.event == Event.ack && (meta.payload == 0 || keepalive)) {
                    if (before[CLOSING_SERVER_SPOKE] == 0 || server_next != 1w1 ++ hdr.tcp.acknowledgement) {
                        // says nothing of the server's last payload
                    } else if (hdr.tcp.window == 0) {
                        spoke(1);
                    } else if (before[CLOSING_ACKNOWLEDGED] == 0) {
                        state[CLOSING_ACKNOWLEDGED] = 1;
                        state[CLOSING_LAST] = meta.now;
                        closing_peer.write(index, meta.connection.client ++ meta.connection.client_port ++ meta.server[14:0]);
                        closing_hint.write(index & (CLOSING_HINTS - 1), index[CONNECTION_SLOT_BITS:0] ++ meta.server[9:0] ++ meta.now[30:0]);
                    }
                } else {
                    spoke(0);
                }
            }
            if (probing && state[CLOSING_STATUS] == CLOSING_OPEN) {
                step = ClosingStep.taken_back;
            }
            if (state != before) {
                closing_state.write(index, state);
            }
        }
    }
}

#endif
