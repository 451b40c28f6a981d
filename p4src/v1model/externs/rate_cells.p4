// The cells of the response rates: two registers, each with one read-modify-write of at most two comparisons.
#ifndef SLUICE_V1MODEL_RATE_CELLS_P4
#define SLUICE_V1MODEL_RATE_CELLS_P4

typedef bit<12> rate_slot_t;         // RATE_FLOWS in sizes.p4
typedef bit<20> rate_fingerprint_t;

// One CRC-32, in an order of fields that no other hash has: the low bits are the slot, the rest the fingerprint. The sample is
// taken by the fingerprint, so that all slots are used whatever the share.
control RateHash(in connection_t connection, out rate_slot_t slot, out rate_fingerprint_t fingerprint) {
    apply {
        bit<32> key;
        hash(key, HashAlgorithm.crc32, 32w0,
             { connection.service, connection.service_port, connection.client_port, connection.client, connection.protocol },
             64w0x100000000);
        slot = key[11:0];
        fingerprint = key[31:12];
    }
}

// Whose slot it is: fingerprint above, time of its last packet below. A slot is free when that is before `oldest`.
control RateFlow(in rate_slot_t slot, in rate_fingerprint_t fingerprint, in rate_time_t oldest, in rate_time_t now,
                 out bit<1> hit, out bit<1> claimed, out rate_time_t last) {
    @id(0x16000028)
    register<bit<52>>(RATE_FLOWS) rate_flow;

    apply {
        bit<52> cell;
        rate_flow.read(cell, (bit<32>)slot);
        last = cell[31:0];
        hit = 0;
        claimed = 0;
        if (later(oldest, last)) {
            claimed = 1;
        } else if (cell[51:32] == fingerprint) {
            hit = 1;
        }
        if (hit == 1 || claimed == 1) {
            cell = fingerprint ++ now;
        }
        rate_flow.write((bit<32>)slot, cell);
    }
}

// The bytes in a response's window.
control RateBytes(in rate_slot_t slot, in RateOp op, in bit<16> size) {
    @id(0x16000029)
    register<bit<32>>(RATE_FLOWS) rate_bytes;

    apply {
        bit<32> cell;
        rate_bytes.read(cell, (bit<32>)slot);
        bit<32> both = cell |+| (bit<32>)size;
        if (op == RateOp.start) {
            cell = (bit<32>)size;
        } else if (op == RateOp.seven_eighths) {
            cell = both - (cell >> 3);
        } else if (op == RateOp.three_quarters) {
            cell = both - (both >> 2);
        } else if (op == RateOp.nine_sixteenths) {
            cell = (both >> 1) + (both >> 4);
        } else if (op == RateOp.three_eighths) {
            cell = (both >> 2) + (both >> 3);
        } else if (op == RateOp.quarter) {
            cell = both >> 2;
        } else {
            cell = both;
        }
        rate_bytes.write((bit<32>)slot, cell);
    }
}

#endif
