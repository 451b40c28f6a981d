// The two registers of the response rates; a packet does one read-modify-write with at most two comparisons on each.
#ifndef SLUICE_V1MODEL_RATE_CELLS_P4
#define SLUICE_V1MODEL_RATE_CELLS_P4

// The factor by which a packet multiplies the bytes in a response's window. It depends on the steps since the last packet.
enum bit<8> RateOp {
    none            = 0, // the slot belongs to another response: the packet is not counted
    start           = 1, // a new response: the window contains only the packet's bytes
    keep            = 2, // 0 steps: factor 1
    seven_eighths   = 3, // 1 step: factor 7/8
    three_quarters  = 4, // 2 or 3 steps: factor 3/4
    nine_sixteenths = 5, // 4 to 7 steps: factor 9/16
    three_eighths   = 6, // 8 to 15 steps: factor 3/8
    quarter         = 7  // 16 to 31 steps: factor 1/4
}
typedef RateOp rate_left_t;

// Computes a response's slot and fingerprint: one CRC-32 over an order of fields that no other hash uses. The CRC's low bits
// are the slot, its other bits the fingerprint. The sample of responses is selected by the fingerprint, so that every slot is
// used whatever the sampled share is.
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

// The response that occupies a slot: fingerprint in the upper bits, time of the response's last packet in the lower bits.
typedef bit<(64 - RATE_FLOW_BITS)> rate_flow_t;
#define RATE_FLOW_FINGERPRINT 63 - RATE_FLOW_BITS:32
#define RATE_FLOW_TIME 31:0

// Decides how a packet changes its response's window. A slot is free if its time is more than 32 steps before `now`, or was never
// written. No stored time is after `now`, so 32 bits distinguish times of 50 days. `step_mask` selects the time bits that count
// whole steps.
control RateFlow(in rate_key_t flow_key, in rate_time_t now, in rate_time_t step_mask, in rate_time_t eight_steps, out rate_left_t update) {
    @id(REGISTER_RATE_FLOW)
    register<rate_flow_t>(RATE_FLOWS) rate_flow;

    apply {
        rate_flow_t cell;
        rate_slot_t slot = (rate_slot_t)flow_key;
        rate_fingerprint_t fingerprint = flow_key[31:RATE_FLOW_BITS];
        rate_flow.read(cell, (bit<32>)slot);
        rate_time_t last = cell[RATE_FLOW_TIME];
        // A step is a power of two, so the upper bits of the elapsed time show whether 2, 4, 8 or 16 steps have
        // passed.
        rate_time_t passed = (now & step_mask) - (last & step_mask);
        update = RateOp.none;
        if (now - last > (eight_steps << 2)) {
            update = RateOp.start;
        } else if (cell[RATE_FLOW_FINGERPRINT] == fingerprint) {
            if (passed & (step_mask << 4) != 0) {
                update = RateOp.quarter;
            } else if (passed & (step_mask << 3) != 0) {
                update = RateOp.three_eighths;
            } else if (passed & (step_mask << 2) != 0) {
                update = RateOp.nine_sixteenths;
            } else if (passed & (step_mask << 1) != 0) {
                update = RateOp.three_quarters;
            } else if (passed != 0) {
                update = RateOp.seven_eighths;
            } else {
                update = RateOp.keep;
            }
        }
        if (update != RateOp.none) {
            cell = fingerprint ++ now;
        }
        rate_flow.write((bit<32>)slot, cell);
    }
}

// Updates the number of bytes in a response's window.
control RateBytes(in rate_key_t flow_key, in rate_left_t update, in bit<16> size) {
    @id(REGISTER_RATE_BYTES)
    register<bit<32>>(RATE_FLOWS) rate_bytes;

    apply {
        if (update != RateOp.none) {
            bit<32> cell;
            rate_bytes.read(cell, (bit<32>)(rate_slot_t)flow_key);
            bit<32> sum = cell |+| (bit<32>)size;
            if (update == RateOp.start) {
                cell = (bit<32>)size;
            } else if (update == RateOp.seven_eighths) {
                cell = sum - (cell >> 3);
            } else if (update == RateOp.three_quarters) {
                cell = sum - (sum >> 2);
            } else if (update == RateOp.nine_sixteenths) {
                cell = (sum >> 1) + (sum >> 4);
            } else if (update == RateOp.three_eighths) {
                cell = (sum >> 2) + (sum >> 3);
            } else if (update == RateOp.quarter) {
                cell = sum >> 2;
            } else {
                cell = sum;
            }
            rate_bytes.write((bit<32>)(rate_slot_t)flow_key, cell);
        }
    }
}

#endif
