// The cells of the connection table: six registers, each with one read-modify-write of at most two comparisons, its inputs known
// beforehand. BMv2 and the embedded switch run one ingress pipeline, so packets see each other's writes in order.
#ifndef SLUICE_V1MODEL_PINS_P4
#define SLUICE_V1MODEL_PINS_P4

typedef bit<17> pin_slot_t;          // CONNECTION_SLOTS in sizes.p4
typedef bit<31> fingerprint_t;       // 31 + 32 bits share one 63-bit cell: Thrift carries signed 64-bit values

// The slot in each way and the fingerprint: CRC-32 of the same fields in three orders. (A salted CRC would collide in way 2
// exactly where it does in way 1, for CRCs are linear; the selectors use three more orders.)
control PinHash(in metadata_t meta, out pin_slot_t slot_1, out pin_slot_t slot_2, out fingerprint_t fingerprint) {
    apply {
        hash(slot_1, HashAlgorithm.crc32, 17w0,
             { meta.connection.client, meta.connection.service, meta.connection.client_port, meta.connection.service_port, meta.connection.protocol },
             CONNECTION_SLOTS);
        hash(slot_2, HashAlgorithm.crc32, 17w0,
             { meta.connection.service_port, meta.connection.client_port, meta.connection.protocol, meta.connection.service, meta.connection.client },
             CONNECTION_SLOTS);
        hash(fingerprint, HashAlgorithm.crc32, 31w0,
             { meta.connection.protocol, meta.connection.client_port, meta.connection.client, meta.connection.service_port, meta.connection.service },
             32w0x80000000);
    }
}

// A key cell: fingerprint above, stamp below.
typedef bit<63> pin_key_t;

void step_key(in KeyOp op, in fingerprint_t fingerprint, in ticks_t oldest, in ticks_t stamp,
              inout pin_key_t cell, out bit<1> hit, out bit<1> claimed) {
    bool match = cell[62:32] == fingerprint;
    hit = 0;
    claimed = 0;
    if (op == KeyOp.claim) {
        if (later(oldest, cell[31:0])) {
            cell = fingerprint ++ stamp;
            claimed = 1;
        } else if (match) {
            hit = 1;
        }
    } else if (match) {
        if (op == KeyOp.close || ((op == KeyOp.touch || op == KeyOp.renew) && later(stamp, cell[31:0]))) {
            cell[31:0] = stamp;
        }
        if (op == KeyOp.renew) {
            claimed = 1;
        } else if (op != KeyOp.look_live || !later(oldest, cell[31:0])) {
            hit = 1;
        }
    }
}

control PinKey1(in pin_slot_t slot, in KeyOp op, in fingerprint_t fingerprint, in ticks_t oldest, in ticks_t stamp,
                out bit<1> hit, out bit<1> claimed) {
    @id(0x16000001)
    register<pin_key_t>(CONNECTION_SLOTS) pin_key_1;

    apply {
        pin_key_t cell;
        pin_key_1.read(cell, (bit<32>)slot);
        step_key(op, fingerprint, oldest, stamp, cell, hit, claimed);
        pin_key_1.write((bit<32>)slot, cell);
    }
}

// `look_only`: way 1 was claimed, and this way may only be looked at.
control PinKey2(in pin_slot_t slot, in KeyOp op, in bit<1> look_only, in fingerprint_t fingerprint, in ticks_t oldest,
                in ticks_t stamp, out bit<1> hit, out bit<1> claimed) {
    @id(0x16000002)
    register<pin_key_t>(CONNECTION_SLOTS) pin_key_2;

    apply {
        pin_key_t cell;
        pin_key_2.read(cell, (bit<32>)slot);
        step_key(look_only == 1 ? KeyOp.look_live : op, fingerprint, oldest, stamp, cell, hit, claimed);
        pin_key_2.write((bit<32>)slot, cell);
    }
}

// A server cell: takes `pin` when the slot was claimed, and says what it was before; gives it otherwise.
control PinServer1(in pin_slot_t slot, in bit<1> claimed, inout server_id_t pin, inout server_id_t before) {
    @id(0x16000003)
    register<server_id_t>(CONNECTION_SLOTS) pin_server_1;

    apply {
        server_id_t cell;
        pin_server_1.read(cell, (bit<32>)slot);
        if (claimed == 1) {
            before = cell;
            pin_server_1.write((bit<32>)slot, pin);
        } else {
            pin = cell;
        }
    }
}

control PinServer2(in pin_slot_t slot, in bit<1> claimed, inout server_id_t pin, inout server_id_t before) {
    @id(0x16000004)
    register<server_id_t>(CONNECTION_SLOTS) pin_server_2;

    apply {
        server_id_t cell;
        pin_server_2.read(cell, (bit<32>)slot);
        if (claimed == 1) {
            before = cell;
            pin_server_2.write((bit<32>)slot, pin);
        } else {
            pin = cell;
        }
    }
}

// A state cell: goes to `next` from `expected`, or also from any later; gives the state before.
control PinState1(in pin_slot_t slot, in PinState expected, in PinState next, in bit<1> or_later, out PinState before) {
    @id(0x16000005)
    register<bit<8>>(CONNECTION_SLOTS) pin_state_1;

    apply {
        bit<8> cell;
        pin_state_1.read(cell, (bit<32>)slot);
        before = (PinState)cell;
        if (cell == (bit<8>)expected || (or_later == 1 && cell > (bit<8>)expected)) {
            pin_state_1.write((bit<32>)slot, (bit<8>)next);
        }
    }
}

control PinState2(in pin_slot_t slot, in PinState expected, in PinState next, in bit<1> or_later, out PinState before) {
    @id(0x16000006)
    register<bit<8>>(CONNECTION_SLOTS) pin_state_2;

    apply {
        bit<8> cell;
        pin_state_2.read(cell, (bit<32>)slot);
        before = (PinState)cell;
        if (cell == (bit<8>)expected || (or_later == 1 && cell > (bit<8>)expected)) {
            pin_state_2.write((bit<32>)slot, (bit<8>)next);
        }
    }
}

#endif
