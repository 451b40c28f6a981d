// The cells of the response rates: two registers, each with one read-modify-write of at most two comparisons.
#ifndef SLUICE_V1MODEL_RATE_CELLS_P4
#define SLUICE_V1MODEL_RATE_CELLS_P4

// What is left in a response's window when a packet comes, by the steps that have passed since the last one.
enum bit<8> RateOp {
    none            = 0, // the slot is another response's: nothing is counted
    start           = 1, // the packet only: a new response
    keep            = 2, // 0: all
    seven_eighths   = 3, // 1
    three_quarters  = 4, // 2 and 3
    nine_sixteenths = 5, // 4 to 7
    three_eighths   = 6, // 8 to 15
    quarter         = 7  // 16 to 31
}
typedef RateOp rate_left_t;

// One CRC-32, in an order of fields that no other hash has: the low bits are the slot, the rest the fingerprint. The sample is
// taken by the fingerprint, so that all slots are used whatever the share.
control RateHash(in metadata_t meta, out rate_key_t flow_key) {
    apply {
        if (meta.path == Path.routed) {
            hash(flow_key, HashAlgorithm.crc32, 32w0,
                 { meta.flow.src, meta.flow.src_port, meta.flow.dst_port, meta.flow.dst, meta.flow.protocol },
                 64w0x100000000);
        } else {
            hash(flow_key, HashAlgorithm.crc32, 32w0,
                 { meta.connection.service, meta.connection.service_port, meta.connection.client_port, meta.connection.client,
                   meta.connection.protocol },
                 64w0x100000000);
        }
    }
}

// Whose slot it is: fingerprint above, time of its last packet below.
typedef bit<(64 - RATE_FLOW_BITS)> rate_flow_t;
#define RATE_FLOW_FINGERPRINT 63 - RATE_FLOW_BITS:32
#define RATE_FLOW_TIME 31:0

// A slot is free when that is more than 32 steps before `now`, or
// was never: no time is after `now` here, so that its 32 bits tell times of 50 days apart. `whole`: the bits of a time that count whole
// steps.
control RateFlow(in rate_key_t flow_key, in rate_time_t now, in rate_time_t whole, in rate_time_t eight_steps, out rate_left_t left) {
    @id(REGISTER_RATE_FLOW)
    register<rate_flow_t>(RATE_FLOWS) rate_flow;

    apply {
        rate_flow_t cell;
        rate_slot_t slot = (rate_slot_t)flow_key;
        rate_fingerprint_t fingerprint = flow_key[31:RATE_FLOW_BITS];
        rate_flow.read(cell, (bit<32>)slot);
        rate_time_t last = cell[RATE_FLOW_TIME];
        // A step is a power of two: that 2, 4, 8 or 16 have passed is in the bits of their time from there on.
        rate_time_t passed = (now & whole) - (last & whole);
        left = RateOp.none;
        if (now - last > (eight_steps << 2)) {
            left = RateOp.start;
        } else if (cell[RATE_FLOW_FINGERPRINT] == fingerprint) {
            if (passed & (whole << 4) != 0) {
                left = RateOp.quarter;
            } else if (passed & (whole << 3) != 0) {
                left = RateOp.three_eighths;
            } else if (passed & (whole << 2) != 0) {
                left = RateOp.nine_sixteenths;
            } else if (passed & (whole << 1) != 0) {
                left = RateOp.three_quarters;
            } else if (passed != 0) {
                left = RateOp.seven_eighths;
            } else {
                left = RateOp.keep;
            }
        }
        if (left != RateOp.none) {
            cell = fingerprint ++ now;
        }
        rate_flow.write((bit<32>)slot, cell);
    }
}

// The bytes in a response's window.
control RateBytes(in rate_key_t flow_key, in rate_left_t left, in bit<16> size) {
    @id(REGISTER_RATE_BYTES)
    register<bit<32>>(RATE_FLOWS) rate_bytes;

    apply {
        if (left != RateOp.none) {
            bit<32> cell;
            rate_bytes.read(cell, (bit<32>)(rate_slot_t)flow_key);
            bit<32> both = cell |+| (bit<32>)size;
            if (left == RateOp.start) {
                cell = (bit<32>)size;
            } else if (left == RateOp.seven_eighths) {
                cell = both - (cell >> 3);
            } else if (left == RateOp.three_quarters) {
                cell = both - (both >> 2);
            } else if (left == RateOp.nine_sixteenths) {
                cell = (both >> 1) + (both >> 4);
            } else if (left == RateOp.three_eighths) {
                cell = (both >> 2) + (both >> 3);
            } else if (left == RateOp.quarter) {
                cell = both >> 2;
            } else {
                cell = both;
            }
            rate_bytes.write((bit<32>)(rate_slot_t)flow_key, cell);
        }
    }
}

#endif
