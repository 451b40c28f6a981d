// Transfers: measures round-trip times, losses and bytes in flight, for a sample of the transfers from managed servers to
// clients.
//
//   reads  place, way, path, pass, event, payload, pinned, state, next_state, server, resources, tcp
//          now: the target's clock, in microseconds
//   writes the cells of transfer_*
//
// The switch measures the path from itself to the client and back, for connections whose beginning has passed the switch. (Matsuo
// et al., SABT, section 2.2, measure in the server's kernel.) A slot has one transfer at a time: the start of a transfer
// overwrites every cell.
#ifndef SLUICE_V1MODEL_TRANSFERS_P4
#define SLUICE_V1MODEL_TRANSFERS_P4

#include "transfer_cells.p4"

// Determines the kind of a packet from headers and metadata, without access to a cell.
control TransferPacket(in headers_t hdr, in metadata_t meta, in transfer_time_t now, out transfer_t transfer) {
    apply {
        transfer = { 0, TransferOp.other, 0, now, Segment.none, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        transfer.first = hdr.tcp.acknowledgement;
        if (meta.pass == Pass.move) {
            transfer.op = TransferOp.start;
        } else if (meta.path == Path.from_server) {
            if (meta.event == Event.syn_ack) {
                transfer.op = TransferOp.repeat;
                if (meta.state != PinState.answered && meta.next_state == PinState.answered) {
                    transfer.op = TransferOp.start;
                    transfer.first = hdr.tcp.sequence + 1;
                    transfer.moves = 1;                       // the handshake is the first measured round trip
                }
            } else if (meta.event != Event.reset && (meta.payload != 0 || hdr.tcp.fin == 1)) {
                transfer.op = TransferOp.sent;
            }
        } else if (meta.event != Event.syn && meta.event != Event.reset && hdr.tcp.ack == 1) {
            transfer.op = TransferOp.acked;
        }
    }
}

// Classifies a segment of one byte just before the right edge: a keepalive if all data is acknowledged, a window probe if the
// window is closed, otherwise a retransmission.
control TransferByte(in metadata_t meta, inout transfer_t transfer) {
    apply {
        if (transfer.op == TransferOp.sent && transfer.segment == Segment.none && meta.payload == 1
            && transfer.acked != transfer.edge && transfer.is_closed == 0) {
            transfer.segment = Segment.again;
        }
    }
}

// Classifies a repetition of the last segment. If the repetition directly follows the segment, sooner than an ACK can return, the
// network has duplicated the segment. Linux repeats the last segment after two round trips without an ACK, as a probe, so that
// the receiver reports missing data (RFC 8985, section 7). At a timeout Linux repeats the first unacknowledged segment; if this
// segment is also the last one, its first repetition counts as a probe.
control TransferTail(inout transfer_t transfer) {
    apply {
        if (transfer.segment == Segment.again && transfer.ends == 1 && transfer.edge == transfer.edge_before
            && transfer.least != 0) {
            if (transfer.silence > (transfer_time_t)transfer.least) {
                transfer.is_probe = 1;
            } else if (transfer.follows == 1) {
                transfer.segment = Segment.late;
            }
        }
    }
}

control Transfers(in headers_t hdr, in metadata_t meta, in place_t place, in bit<48> now) {
    TransferPacket() packet;
    TransferOwner() owner;
    TransferEdge() edge;
    TransferAcked() acked;
    TransferByte() byte;
    TransferActivity() activity;
    TransferProbe() probe;
    TransferLeast() least;
    TransferRtt() rtt;
    TransferHole() hole;
    TransferTail() tail;
    TransferRecovery() recovery;
    TransferLosses() losses;
    TransferSent() sent;
    TransferFlight() flight;

    transfer_t transfer;

    apply {
        bit<32> sample = (32w1 << meta.resources.sampling) - 1;
        if (hdr.tcp.isValid() && meta.pinned == 1 && ((bit<32>)place.fingerprint & sample) == 0) {
            packet.apply(hdr, meta, now, transfer);
            pin_slot_t slot = place.slot_1;
            if (meta.way == 1)                                              slot = place.slot_2;
            transfer.slot = (bit<32>)slot[TRANSFER_BITS - 1:0];
            bit<10> rest = (bit<10>)(meta.way ++ slot[CONNECTION_SLOT_BITS - 1:TRANSFER_BITS]);
            owner.apply(meta, rest ++ place.fingerprint, transfer);
            if (transfer.op != TransferOp.none) {
                bool starts = transfer.op == TransferOp.start;
                if (starts || transfer.op == TransferOp.sent || transfer.op == TransferOp.acked) {
                    edge.apply(hdr, meta, transfer);
                    acked.apply(hdr, transfer);
                    byte.apply(meta, transfer);
                }
                if (starts || transfer.moves == 1 || transfer.segment != Segment.none) {
                    activity.apply(transfer);
                }
                if (starts || transfer.op == TransferOp.repeat || transfer.moves == 1 || transfer.segment != Segment.none) {
                    probe.apply(transfer);
                }
                if (starts || transfer.sample != 0 || transfer.segment >= Segment.ahead) {
                    least.apply(transfer);
                }
                if (starts || transfer.sample != 0)                         rtt.apply(transfer);
                if (starts || transfer.segment >= Segment.ahead)            hole.apply(hdr, transfer);
                tail.apply(transfer);
                if (starts || transfer.moves == 1 || transfer.segment == Segment.again) {
                    recovery.apply(hdr, transfer);
                }
                if (starts || transfer.segment == Segment.again || transfer.segment == Segment.ahead || transfer.is_loss == 1) {
                    losses.apply(transfer);
                }
                if (starts || transfer.segment != Segment.none) {
                    sent.apply(transfer);
                    flight.apply(transfer);
                }
            }
        }
    }
}

#endif
