// Registers of measured transfers, each with the control that updates a cell for one packet. See docs/reference/resources.md.
#ifndef SLUICE_V1MODEL_TRANSFER_CELLS_P4
#define SLUICE_V1MODEL_TRANSFER_CELLS_P4

typedef bit<48> transfer_time_t;      // a time in microseconds
typedef bit<31> transfer_span_t;      // the low bits of a time in microseconds, which wrap after 35 minutes

// The kind of a packet, which determines how it changes its transfer's cells.
enum bit<8> TransferOp {
    none    = 0,     // the packet's slot is free, or belongs to another transfer
    start   = 1,     // the connection begins, by the first SYN-ACK or by the ACK that moves the pin to a candidate
    repeat  = 2,     // a repeated SYN-ACK
    sent    = 3,     // a segment of the server, with payload or FIN
    acked   = 4,     // a segment of the client, with an ACK
    other   = 5
}

// The kind of a server's segment with payload, by its sequence number.
enum bit<8> Segment {
    none    = 0,     // a bare FIN, a keepalive, a window probe, or no segment of the server
    next    = 1,     // the segment begins at the right edge
    ahead   = 2,     // the segment begins beyond the right edge: segments before it were lost or delayed on the way to the switch
    again   = 3,     // a retransmission
    late    = 4      // too early for a retransmission: the segment fills a new gap, or the network has duplicated it
}

struct transfer_t {
    bit<32>         slot;
    TransferOp      op;
    bit<32>         first;            // for op `start`: the sequence number of the server's first byte
    transfer_time_t now;
    Segment         segment;
    bit<32>         edge_before;      // right edge of what the server had sent before this packet
    bit<32>         edge;             // right edge of what the server has sent, including this packet
    bit<1>          ends;             // the segment's end is the right edge `edge`
    bit<32>         acked;            // the client's highest acknowledgement, including this packet
    bit<1>          moves;            // the ACK acknowledges data in flight, or repeats the number `acked`; for op `start`:
                                      // the packet is a SYN-ACK, whose round-trip time is measured
    bit<1>          advances;         // the ACK is above all earlier ACKs
    bit<1>          is_closed;        // the client's last ACK closed the window
    transfer_time_t silence;          // microseconds since the server's previous segment or the client's previous ACK of data in
                                      // flight, whichever was later
    bit<1>          follows;          // the packet from which `silence` counts was a segment that ended at the right edge
    transfer_span_t sample;           // a measured round-trip time in microseconds; 0: none
    bit<32>         least;            // least round-trip time in the latest period with a measurement, in microseconds; 0: none
    bit<1>          is_probe;         // the segment is a tail-loss probe
    bit<1>          is_loss;          // the segment begins a loss event
}

// Ticks (30 s) without a packet after which a slot is free. For a transfer that the client has not answered, or that has ended,
// the written time is earlier by so many ticks that the slot is free after 4 s or 2 s.
const bit<16> TRANSFER_OWNED = 458;
const bit<16> TRANSFER_UNANSWERED = TRANSFER_OWNED - 61;
const bit<16> TRANSFER_ENDED = TRANSFER_OWNED - 31;

// The connection to which a slot belongs: those bits of the connection's index that are above the slot's index, the connection's
// fingerprint and server, and the time of its last packet in ticks.
typedef bit<(FINGERPRINT_BITS + 10)> transfer_key_t;
typedef bit<(FINGERPRINT_BITS + 36)> transfer_owner_t;
#define TRANSFER_KEY FINGERPRINT_BITS + 35:26
#define TRANSFER_SERVER 25:16
#define TRANSFER_STAMP 15:0

control TransferOwner(in metadata_t meta, in transfer_key_t key, inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_OWNER)
    register<transfer_owner_t>(TRANSFERS) transfer_owner;

    apply {
        transfer_owner_t cell;
        bit<16> now = transfer.now[31:16];
        transfer_owner.read(cell, transfer.slot);
        bool is_owner = cell[TRANSFER_KEY] == key && cell[TRANSFER_SERVER] != 0;
        bool free = cell[TRANSFER_SERVER] == 0 || now - cell[TRANSFER_STAMP] > TRANSFER_OWNED;
        if (!is_owner && !(free && transfer.op == TransferOp.start)) {
            transfer.op = TransferOp.none;
        } else {
            if (meta.next_state == PinState.answered) {
                now = now - TRANSFER_UNANSWERED;
            } else if (meta.next_state >= PinState.server_closing) {
                now = now - TRANSFER_ENDED;
            }
            transfer_owner.write(transfer.slot, key ++ meta.server[9:0] ++ now);
        }
    }
}

// The largest payload of a server's segment in bytes, and the right edge of what the server has sent. Numbers are compared as
// serial numbers (RFC 1982).
typedef bit<48> transfer_edge_t;
#define TRANSFER_MSS 47:32
#define TRANSFER_EDGE 31:0

control TransferEdge(in headers_t hdr, in metadata_t meta, inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_EDGE)
    register<transfer_edge_t>(TRANSFERS) transfer_edge;

    apply {
        transfer_edge_t cell;
        transfer_edge.read(cell, transfer.slot);
        transfer.edge_before = cell[TRANSFER_EDGE];
        bit<32> sequence = hdr.tcp.sequence;
        if (transfer.op == TransferOp.start) {
            cell = 16w0 ++ transfer.first;
        } else if (transfer.op == TransferOp.sent) {
            bit<32> end = sequence + (bit<32>)meta.payload + (bit<32>)hdr.tcp.fin;
            if (meta.payload != 0) {
                if (sequence == transfer.edge_before) {
                    transfer.segment = Segment.next;
                } else if (later(sequence, transfer.edge_before)) {
                    transfer.segment = Segment.ahead;
                } else if (meta.payload != 1 || end != transfer.edge_before) {
                    transfer.segment = Segment.again;
                }
                if (meta.payload > cell[TRANSFER_MSS]) {
                    cell[TRANSFER_MSS] = meta.payload;
                }
            }
            if (later(end, transfer.edge_before)) {
                cell[TRANSFER_EDGE] = end;
            }
        }
        if (transfer.op == TransferOp.start || transfer.op == TransferOp.sent) {
            transfer_edge.write(transfer.slot, cell);
        }
        transfer.edge = cell[TRANSFER_EDGE];
        if (transfer.op == TransferOp.sent && sequence + (bit<32>)meta.payload + (bit<32>)hdr.tcp.fin == transfer.edge) {
            transfer.ends = 1;
        }
    }
}

// The client's highest acknowledgement, and whether this ACK closed the client's window. An ACK of data that is not in flight
// changes nothing.
typedef bit<33> transfer_acked_t;
#define TRANSFER_CLOSED 32:32
#define TRANSFER_NUMBER 31:0

control TransferAcked(in headers_t hdr, inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_ACKED)
    register<transfer_acked_t>(TRANSFERS) transfer_acked;

    apply {
        transfer_acked_t cell;
        transfer_acked.read(cell, transfer.slot);
        transfer.acked = cell[TRANSFER_NUMBER];
        transfer.is_closed = cell[TRANSFER_CLOSED];
        if (transfer.op == TransferOp.start) {
            transfer.acked = transfer.first;
            transfer_acked.write(transfer.slot, 1w0 ++ transfer.first);
        } else if (transfer.op == TransferOp.acked
                   && hdr.tcp.acknowledgement - transfer.acked <= transfer.edge - transfer.acked) {
            transfer.moves = 1;
            if (hdr.tcp.acknowledgement != transfer.acked) {
                transfer.advances = 1;
            }
            transfer.acked = hdr.tcp.acknowledgement;
            transfer.is_closed = 0;
            if (hdr.tcp.window == 0) {
                transfer.is_closed = 1;
            }
            transfer_acked.write(transfer.slot, transfer.is_closed ++ transfer.acked);
        }
    }
}

// The time of the last packet that was a server's segment or a client's ACK of data in flight, and whether this packet was a
// segment that ended at the right edge.
typedef bit<49> transfer_activity_t;
#define TRANSFER_AT_EDGE 48:48
#define TRANSFER_TIME 47:0

control TransferActivity(inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_ACTIVITY)
    register<transfer_activity_t>(TRANSFERS) transfer_activity;

    apply {
        transfer_activity_t cell;
        transfer_activity.read(cell, transfer.slot);
        transfer.silence = transfer.now - cell[TRANSFER_TIME];
        transfer.follows = cell[TRANSFER_AT_EDGE];
        transfer_activity.write(transfer.slot, transfer.ends ++ transfer.now);
    }
}

// The segment whose round-trip time is being measured, at most one at a time: the acknowledgement number expected for it, and the
// time when it was sent (0: no measurement). A retransmission ends the measurement (Karn & Partridge).
typedef bit<63> transfer_probe_t;
#define TRANSFER_EXPECTED 62:31
#define TRANSFER_SENT_AT 30:0

control TransferProbe(inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_PROBE)
    register<transfer_probe_t>(TRANSFERS) transfer_probe;

    apply {
        transfer_probe_t cell;
        transfer_span_t now = transfer.now[30:0] | 1;    // never 0, which would mean no measurement; the error is at most 1 us
        transfer_probe.read(cell, transfer.slot);
        if (transfer.op == TransferOp.start) {
            cell = transfer.first ++ (transfer_span_t)0;
            if (transfer.moves == 1) {
                cell = transfer.first ++ now;
            }
        } else if (transfer.op == TransferOp.repeat || transfer.segment == Segment.again) {
            cell[TRANSFER_SENT_AT] = 0;
        } else if (transfer.segment == Segment.next && cell[TRANSFER_SENT_AT] == 0) {
            cell = transfer.edge ++ now;
        } else if (transfer.moves == 1 && cell[TRANSFER_SENT_AT] != 0 && !later(cell[TRANSFER_EXPECTED], transfer.acked)) {
            transfer.sample = (now - cell[TRANSFER_SENT_AT]) | 1;
            cell[TRANSFER_SENT_AT] = 0;
        }
        transfer_probe.write(transfer.slot, cell);
    }
}

// The least round-trip time in a period of 2^28 us (4.5 minutes), and the period's number. 0: no round-trip time was measured.
typedef bit<48> transfer_least_t;
#define TRANSFER_PERIOD 47:32
#define TRANSFER_LEAST 31:0

control TransferLeast(inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_LEAST)
    register<transfer_least_t>(TRANSFERS) transfer_least;

    apply {
        transfer_least_t cell;
        bit<16> period = transfer.now[43:28];
        transfer_least.read(cell, transfer.slot);
        transfer.least = cell[TRANSFER_LEAST];
        if (transfer.op == TransferOp.start) {
            transfer_least.write(transfer.slot, period ++ 32w0);
        } else if (transfer.sample != 0
                   && (transfer.least == 0 || cell[TRANSFER_PERIOD] != period || (bit<32>)transfer.sample < transfer.least)) {
            transfer_least.write(transfer.slot, period ++ (bit<32>)transfer.sample);
        }
    }
}

// Sum of the measured round-trip times in microseconds, and their number.
typedef bit<63> transfer_rtt_t;
#define TRANSFER_SUM 62:23
#define TRANSFER_SAMPLES 22:0

control TransferRtt(in transfer_t transfer) {
    @id(REGISTER_TRANSFER_RTT)
    register<transfer_rtt_t>(TRANSFERS) transfer_rtt;

    apply {
        transfer_rtt_t cell;
        transfer_rtt.read(cell, transfer.slot);
        cell = (cell[TRANSFER_SUM] + (bit<40>)transfer.sample) ++ (cell[TRANSFER_SAMPLES] + 1);
        if (transfer.op == TransferOp.start) {
            cell = 0;
        }
        transfer_rtt.write(transfer.slot, cell);
    }
}

// Start and time of the oldest hole (gap in the server's sequence numbers) that is younger than the least round-trip time. A host
// retransmits missing data only after the receiver's ACKs, which take at least this time. A segment that fills the hole sooner
// was only late, and is not a loss.
typedef bit<63> transfer_hole_t;
#define TRANSFER_HOLE_START 62:31
#define TRANSFER_HOLE_AT 30:0         // time when the hole opened; 0: no hole

control TransferHole(in headers_t hdr, inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_HOLE)
    register<transfer_hole_t>(TRANSFERS) transfer_hole;

    apply {
        transfer_hole_t cell;
        transfer_span_t now = transfer.now[30:0] | 1;
        transfer_hole.read(cell, transfer.slot);
        transfer_span_t age = now - cell[TRANSFER_HOLE_AT];
        bool is_young = cell[TRANSFER_HOLE_AT] != 0 && (bit<32>)age < transfer.least;
        if (transfer.op == TransferOp.start) {
            transfer_hole.write(transfer.slot, 0);
        } else if (transfer.segment == Segment.ahead) {
            if (!is_young) {
                transfer_hole.write(transfer.slot, transfer.edge_before ++ now);
            }
        } else if (is_young && !later(cell[TRANSFER_HOLE_START], hdr.tcp.sequence)) {
            transfer.segment = Segment.late;
        }
    }
}

// The recovery point, a sequence number: retransmissions below this number belong to a loss event already counted.
// The numbers of all acknowledged bytes are below the recovery point.
//
// As in Linux, a tail-loss probe (a repetition of the last segment) counts as a loss event if it has repaired a loss. The ACKs
// that acknowledge the probe's data decide this. If such an ACK has a longer header than the probe, it reports that the probe
// arrived twice (DSACK, RFC 2883): the probe was unnecessary. A duplicate ACK shows the same. If neither arrives before an ACK of
// data after the probe, the probe has repaired a loss.
typedef bit<36> transfer_recovery_t;
#define TRANSFER_POINT 35:4
#define TRANSFER_JUDGED 3:0           // data offset of the probe that is not yet decided; 0: none

control TransferRecovery(in headers_t hdr, inout transfer_t transfer) {
    @id(REGISTER_TRANSFER_RECOVERY)
    register<transfer_recovery_t>(TRANSFERS) transfer_recovery;

    apply {
        transfer_recovery_t cell;
        transfer_recovery.read(cell, transfer.slot);
        bool is_judged = cell[TRANSFER_JUDGED] != 0;
        bool is_new = !later(cell[TRANSFER_POINT], hdr.tcp.sequence);
        bool is_beyond = later(transfer.acked, cell[TRANSFER_POINT]);
        if (transfer.op == TransferOp.start) {
            cell = transfer.first ++ 4w0;
        } else if (transfer.segment == Segment.again) {
            if (!is_new || is_judged) {
                transfer.is_probe = 0;    // one probe at a time, and none during a recovery (RFC 8985, section 7.3)
            }
            if (transfer.is_probe == 1) {
                cell = transfer.edge ++ hdr.tcp.data_offset;
            } else if (is_new || is_judged) {
                transfer.is_loss = 1;
                cell = transfer.edge ++ 4w0;
            }
        } else if (!is_judged) {
            if (is_beyond) {
                cell[TRANSFER_POINT] = transfer.acked;
            }
        } else if (is_beyond || transfer.acked == cell[TRANSFER_POINT]) {
            if (hdr.tcp.data_offset > cell[TRANSFER_JUDGED] || (!is_beyond && transfer.advances == 0)) {
                cell[TRANSFER_JUDGED] = 0;
            } else if (is_beyond) {
                transfer.is_loss = 1;
                cell[TRANSFER_JUDGED] = 0;
            }
            if (is_beyond) {
                cell[TRANSFER_POINT] = transfer.acked;
            }
        }
        transfer_recovery.write(transfer.slot, cell);
    }
}

// Counts of retransmitted segments, loss events, timeouts, tail-loss probes and holes.
typedef bit<63> transfer_losses_t;
#define TRANSFER_AGAIN 62:47
#define TRANSFER_LOSSES 46:31
#define TRANSFER_TIMEOUTS 30:20
#define TRANSFER_PROBES 19:10
#define TRANSFER_HOLES 9:0

// Microseconds of silence that indicate a timeout: a retransmission counts as a timeout if both sides were silent for longer than
// this constant plus an eighth of the least round-trip time. Linux waits for the round-trip time plus at least 200 ms.
const transfer_time_t TRANSFER_TIMEOUT = 150000;

control TransferLosses(in transfer_t transfer) {
    @id(REGISTER_TRANSFER_LOSSES)
    register<transfer_losses_t>(TRANSFERS) transfer_losses;

    apply {
        transfer_losses_t cell;
        transfer_losses.read(cell, transfer.slot);
        if (transfer.op == TransferOp.start) {
            cell = 0;
        } else if (transfer.segment == Segment.ahead) {
            cell[TRANSFER_HOLES] = cell[TRANSFER_HOLES] + 1;
        } else if (transfer.segment == Segment.again) {
            cell[TRANSFER_AGAIN] = cell[TRANSFER_AGAIN] + 1;
            if (transfer.is_probe == 1) {
                cell[TRANSFER_PROBES] = cell[TRANSFER_PROBES] + 1;
            } else if (transfer.silence > TRANSFER_TIMEOUT + (transfer_time_t)(transfer.least >> 3)) {
                cell[TRANSFER_TIMEOUTS] = cell[TRANSFER_TIMEOUTS] + 1;
            }
        }
        if (transfer.is_loss == 1) {
            cell[TRANSFER_LOSSES] = cell[TRANSFER_LOSSES] + 1;
        }
        transfer_losses.write(transfer.slot, cell);
    }
}

// Number of bytes by which the right edge has moved, and number of segments with payload, including retransmissions.
typedef bit<63> transfer_sent_t;
#define TRANSFER_BYTES 62:28
#define TRANSFER_SEGMENTS 27:0

control TransferSent(in transfer_t transfer) {
    @id(REGISTER_TRANSFER_SENT)
    register<transfer_sent_t>(TRANSFERS) transfer_sent;

    apply {
        transfer_sent_t cell;
        transfer_sent.read(cell, transfer.slot);
        cell = (cell[TRANSFER_BYTES] + (bit<35>)(transfer.edge - transfer.edge_before)) ++ (cell[TRANSFER_SEGMENTS] + 1);
        if (transfer.op == TransferOp.start) {
            cell = 0;
        }
        transfer_sent.write(transfer.slot, cell);
    }
}

// The largest amount of data in flight, in units of 64 bytes, in the current interval of 2^20 us and in the previous interval,
// and the current interval's number.
typedef bit<63> transfer_flight_t;
#define TRANSFER_INTERVAL 62:48
#define TRANSFER_FLIGHT_BEFORE 47:24
#define TRANSFER_FLIGHT 23:0
const bit<24> TRANSFER_MOST = 0xffffff;

control TransferFlight(in transfer_t transfer) {
    @id(REGISTER_TRANSFER_FLIGHT)
    register<transfer_flight_t>(TRANSFERS) transfer_flight;

    apply {
        transfer_flight_t cell;
        bit<15> interval = transfer.now[34:20];
        bit<32> bytes = transfer.edge - transfer.acked;
        bit<24> flight = ((bytes |+| 63) >> 6)[23:0];
        if (bytes[31:30] != 0 || bytes[29:6] == TRANSFER_MOST) {
            flight = TRANSFER_MOST;
        }
        transfer_flight.read(cell, transfer.slot);
        if (transfer.op == TransferOp.start) {
            cell = interval ++ 48w0;
        } else if (cell[TRANSFER_INTERVAL] == interval) {
            if (flight > cell[TRANSFER_FLIGHT]) {
                cell[TRANSFER_FLIGHT] = flight;
            }
        } else if (cell[TRANSFER_INTERVAL] + 1 == interval) {
            cell = interval ++ cell[TRANSFER_FLIGHT] ++ flight;
        } else {
            cell = interval ++ 24w0 ++ flight;
        }
        transfer_flight.write(transfer.slot, cell);
    }
}

#endif
