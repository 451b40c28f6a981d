// Transfers: what a sample of the transfers from managed servers shows of its path: round trips, losses, what is under way.
//
//   reads  place, way, path, pass, event, payload, pinned, state, next_state, server, resources, tcp
//          now: the target's clock, in microseconds
//   writes the cells of transfer_*
//
// Measured is the way from here to the client and back, of connections whose beginning was seen (Matsuo et al., SABT, section 2.2, have
// it of the server's kernel). A slot has one transfer at a time: its beginning overwrites every cell.
#ifndef SLUICE_V1MODEL_TRANSFERS_P4
#define SLUICE_V1MODEL_TRANSFERS_P4

#include "transfer_cells.p4"

// What the packet is to its transfer, as far as no cell is needed to know that.
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
                    transfer.moves = 1;                       // its round trip is the first
                }
            } else if (meta.event != Event.reset && (meta.payload != 0 || hdr.tcp.fin == 1)) {
                transfer.op = TransferOp.sent;
            }
        } else if (meta.event != Event.syn && meta.event != Event.reset && hdr.tcp.ack == 1) {
            transfer.op = TransferOp.acked;
        }
    }
}

// One byte in front of the edge: a keepalive, where all is acknowledged; a window probe, where the window is closed; else a retransmission.
control TransferByte(in metadata_t meta, inout transfer_t transfer) {
    apply {
        if (transfer.op == TransferOp.sent && transfer.segment == Segment.none && meta.payload == 1
            && transfer.acked != transfer.edge && transfer.is_closed == 0) {
            transfer.segment = Segment.again;
        }
    }
}

// The last segment once more. Directly behind itself, sooner than an ACK can come back, it is a copy that the network made.
// Linux repeats it behind two round trips without an ACK, so that the receiver reports what it lacks (RFC 8985,
// section 7). A timeout begins with the first segment; where that is the last one too, the first repetition is a probe.
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
