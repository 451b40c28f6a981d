// The cells of the response rates. A stateful unit gives one word: who has the slot and when its last packet came are two registers.
// It has no shift either. Its math unit takes one constant fraction of a cell: three quarters, for what is left after up to
// seven steps; after more, only the packet itself is.
#ifndef SLUICE_TNA_RATE_CELLS_P4
#define SLUICE_TNA_RATE_CELLS_P4

typedef bit<12> rate_slot_t;         // RATE_FLOWS in sizes.p4
typedef bit<20> rate_fingerprint_t;

// CRC-32 in two orders of fields that no other hash has. (One, cut in two, would leave the fingerprint across bytes, and a stateful
// unit is given whole ones.) The sample is taken by the fingerprint, so that all slots are used whatever the share.
control RateHash(in connection_t connection, out rate_slot_t slot, out rate_fingerprint_t fingerprint) {
    Hash<rate_slot_t>(HashAlgorithm_t.CRC32) hash_slot;
    Hash<rate_fingerprint_t>(HashAlgorithm_t.CRC32) hash_fingerprint;

    apply {
        slot = hash_slot.get({ connection.service, connection.service_port, connection.client_port, connection.client,
                               connection.protocol });
        fingerprint = hash_fingerprint.get({ connection.client_port, connection.service, connection.protocol,
                                             connection.client, connection.service_port });
    }
}

// Whose slot it is, and the time of its last packet. A slot is free when that is 32 steps before `now`, as `oldest` is. (Of a pair,
// Stratum reads the half that is named f1.)
struct rate_flow_t {
    bit<32> fingerprint;
    bit<32> f1;
}

control RateFlow(in rate_slot_t slot, in rate_fingerprint_t fingerprint, in rate_time_t oldest, in rate_time_t now,
                 out bit<1> hit, out bit<1> claimed, out rate_time_t last) {
    compared_t result;

    @id(0x28)
    Register<rate_flow_t, rate_slot_t>(RATE_FLOWS, { 0, 0 }) rate_flow;
    RegisterParam<bit<32>>(RATE_SLOT_TICKS) rate_slot_time;
    RegisterAction<rate_flow_t, rate_slot_t, compared_t>(rate_flow) look = {
        void apply(inout rate_flow_t cell, out compared_t compared) {
            bit<32> time = rate_slot_time.read();
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - oldest) < 0);
            if (cell.fingerprint == (bit<32>)fingerprint || (int<32>)(cell.f1 - oldest) < 0) {
                cell.fingerprint = (bit<32>)fingerprint;
                cell.f1 = oldest + time;
            }
        }
    };

    @id(0x2c)
    Register<bit<32>, rate_slot_t>(RATE_FLOWS, 0) rate_last;
    RegisterAction<bit<32>, rate_slot_t, bit<32>>(rate_last) swap = {
        void apply(inout bit<32> cell, out bit<32> before) {
            before = cell;
            cell = now;
        }
    };

    apply {
        hit = 0;
        claimed = 0;
        last = now;
        result = look.execute(slot);
        if (result == ONLY_SECOND || result == BOTH) {
            claimed = 1;
        } else if (result == ONLY_FIRST) {
            hit = 1;
        }
        if (hit == 1 || claimed == 1) {
            last = swap.execute(slot);
        }
    }
}

// The bytes in a response's window.
control RateBytes(in rate_slot_t slot, in RateOp op, in bit<16> size) {
    @id(0x29)
    Register<bit<32>, rate_slot_t>(RATE_FLOWS, 0) rate_bytes;
    MathUnit<bit<32>>(MathOp_t.MUL, 3, 4) three_quarters;

    RegisterAction<bit<32>, rate_slot_t, bit<32>>(rate_bytes) start = {
        void apply(inout bit<32> cell) {
            cell = (bit<32>)size;
        }
    };
    RegisterAction<bit<32>, rate_slot_t, bit<32>>(rate_bytes) keep = {
        void apply(inout bit<32> cell) {
            cell = cell |+| (bit<32>)size;
        }
    };
    RegisterAction<bit<32>, rate_slot_t, bit<32>>(rate_bytes) fade = {
        void apply(inout bit<32> cell) {
            cell = three_quarters.execute(cell) + (bit<32>)size;
        }
    };

    @hidden
    action do_start() {
        start.execute(slot);
    }

    @hidden
    action do_keep() {
        keep.execute(slot);
    }

    @hidden
    action do_fade() {
        fade.execute(slot);
    }

    @hidden
    table operation {
        key = { op : exact @name("op"); }
        actions = { do_start; do_keep; do_fade; }
        const entries = {
            RateOp.keep            : do_keep();
            RateOp.seven_eighths   : do_fade();
            RateOp.three_quarters  : do_fade();
            RateOp.nine_sixteenths : do_fade();
        }
        const default_action = do_start();
    }

    apply {
        operation.apply();
    }
}

#endif
