// The keys of the connection table: two registers, each with one RegisterAction a packet, of at most two comparisons and two
// inputs. A stateful unit has two inputs of 32 bits: what a claim stamps is therefore its other input, `oldest`, and a constant.
#ifndef SLUICE_TNA_PINS_P4
#define SLUICE_TNA_PINS_P4

typedef bit<16> pin_slot_t;          // TNA_CONNECTION_SLOTS in target.p4

// The slot in each way and the fingerprint: CRC-32 of the same fields in three orders. (A salted CRC would collide in way 2
// exactly where it does in way 1, for CRCs are linear; the selectors use three more orders.)
control PinHash(in connection_t connection, out pin_slot_t slot_1, out pin_slot_t slot_2, out fingerprint_t fingerprint) {
    Hash<pin_slot_t>(HashAlgorithm_t.CRC32) hash_1;
    Hash<pin_slot_t>(HashAlgorithm_t.CRC32) hash_2;
    Hash<fingerprint_t>(HashAlgorithm_t.CRC32) hash_fingerprint;

    apply {
        slot_1 = hash_1.get({ connection.client, connection.service, connection.client_port, connection.service_port,
                              connection.protocol });
        slot_2 = hash_2.get({ connection.service_port, connection.client_port, connection.protocol, connection.service,
                              connection.client });
        fingerprint = hash_fingerprint.get({ connection.protocol, connection.client_port, connection.client,
                                             connection.service_port, connection.service });
    }
}

// A key cell: fingerprint and stamp. Of a pair, Stratum reads the half that is named f1.
struct pin_key_t {
    bit<32> fingerprint;
    bit<32> f1;
}

// What a stateful unit says of two comparisons: one bit of four. (They stand in full wherever they are used: p4c's Tofino back end
// takes no local variables of type bool in a RegisterAction.)
typedef bit<8> compared_t;
const compared_t ONLY_FIRST  = 2;
const compared_t ONLY_SECOND = 4;
const compared_t BOTH        = 8;

// What a key's operation found in its way.
typedef bit<8> found_t;
const found_t NOTHING = 0;
const found_t ITS_OWN = 1;
const found_t TAKEN   = 2;             // claimed by this packet
const found_t VACANT  = 3;             // a slot that a SYN may claim in its next pass

// The first comparison of every operation is that of the fingerprints, the second that of the times: older than what is alive, or
// than what is stamped. `tried`: a SYN claims one way, and only looks at the other. (One table: of conditions, each leaf is one.)
control Understand(in KeyOp op, in bit<1> tried, in compared_t result, out found_t found) {
    @hidden
    action understand(found_t what) {
        found = what;
    }

    @hidden
    table understood {
        key = {
            op     : ternary @name("op");
            tried  : ternary @name("tried");
            result : ternary @name("result");
        }
        actions = { understand; }
        const entries = {
            (KeyOp.claim, _, ONLY_FIRST)      : understand(ITS_OWN);
            (KeyOp.claim, 1, ONLY_SECOND)     : understand(TAKEN);
            (KeyOp.claim, 1, BOTH)            : understand(TAKEN);
            (KeyOp.claim, _, _)               : understand(NOTHING);
            (KeyOp.look_live, _, ONLY_FIRST)  : understand(ITS_OWN);
            (KeyOp.look_live, _, ONLY_SECOND) : understand(VACANT);
            (KeyOp.look_live, _, BOTH)        : understand(VACANT);
            (KeyOp.look_live, _, _)           : understand(NOTHING);
            (KeyOp.renew, _, ONLY_FIRST)      : understand(TAKEN);
            (KeyOp.renew, _, BOTH)            : understand(TAKEN);
            (_, _, ONLY_FIRST)                : understand(ITS_OWN);
            (_, _, BOTH)                      : understand(ITS_OWN);
        }
        const default_action = understand(NOTHING);
        size = 16;
    }

    apply {
        understood.apply();
    }
}

control PinKey1(in pin_slot_t slot, in KeyOp op, in bit<8> way, in fingerprint_t fingerprint, in ticks_t oldest, in ticks_t stamp,
                out found_t found) {
    Understand() understand;
    compared_t result = 0;
    bit<1> tried = 0;

    @id(0x01)
    Register<pin_key_t, pin_slot_t>(TNA_CONNECTION_SLOTS, { 0, 0 }) pin_key_1;
    // The time of a pending connection: as in the stage's timers, which cannot reach it.
    RegisterParam<bit<32>>(PENDING_TICKS) pending_1;

    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) look = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - oldest) < 0);
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) claim = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            bit<32> pending = pending_1.read();
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - oldest) < 0);
            if ((int<32>)(cell.f1 - oldest) < 0) {
                cell.fingerprint = (bit<32>)fingerprint;
                cell.f1 = oldest + pending;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) touch = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - stamp) < 0);
            if (cell.fingerprint == (bit<32>)fingerprint && (int<32>)(cell.f1 - stamp) < 0) {
                cell.f1 = stamp;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) close = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint);
            if (cell.fingerprint == (bit<32>)fingerprint) {
                cell.f1 = stamp;
            }
        }
    };

    @hidden
    action do_look() {
        result = look.execute(slot);
    }

    @hidden
    action do_claim() {
        result = claim.execute(slot);
        tried = 1;
    }

    @hidden
    action do_touch() {
        result = touch.execute(slot);
    }

    @hidden
    action do_close() {
        result = close.execute(slot);
    }

    @hidden
    table operation {
        key = {
            op  : ternary @name("op");
            way : ternary @name("way");
        }
        actions = { do_look; do_claim; do_touch; do_close; }
        const entries = {
            (KeyOp.claim, 1) : do_claim();
            (KeyOp.renew, _) : do_touch();
            (KeyOp.touch, _) : do_touch();
            (KeyOp.close, _) : do_close();
        }
        const default_action = do_look();
        size = 8;
    }

    apply {
        operation.apply();
        understand.apply(op, tried, result, found);
    }
}

control PinKey2(in pin_slot_t slot, in KeyOp op, in bit<8> way, in fingerprint_t fingerprint, in ticks_t oldest, in ticks_t stamp,
                out found_t found) {
    Understand() understand;
    compared_t result = 0;
    bit<1> tried = 0;

    @id(0x02)
    Register<pin_key_t, pin_slot_t>(TNA_CONNECTION_SLOTS, { 0, 0 }) pin_key_2;
    // The time of a pending connection: as in the stage's timers, which cannot reach it.
    RegisterParam<bit<32>>(PENDING_TICKS) pending_2;

    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) look = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - oldest) < 0);
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) claim = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            bit<32> pending = pending_2.read();
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - oldest) < 0);
            if ((int<32>)(cell.f1 - oldest) < 0) {
                cell.fingerprint = (bit<32>)fingerprint;
                cell.f1 = oldest + pending;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) touch = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint, (int<32>)(cell.f1 - stamp) < 0);
            if (cell.fingerprint == (bit<32>)fingerprint && (int<32>)(cell.f1 - stamp) < 0) {
                cell.f1 = stamp;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) close = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == (bit<32>)fingerprint);
            if (cell.fingerprint == (bit<32>)fingerprint) {
                cell.f1 = stamp;
            }
        }
    };

    @hidden
    action do_look() {
        result = look.execute(slot);
    }

    @hidden
    action do_claim() {
        result = claim.execute(slot);
        tried = 1;
    }

    @hidden
    action do_touch() {
        result = touch.execute(slot);
    }

    @hidden
    action do_close() {
        result = close.execute(slot);
    }

    @hidden
    table operation {
        key = {
            op  : ternary @name("op");
            way : ternary @name("way");
        }
        actions = { do_look; do_claim; do_touch; do_close; }
        const entries = {
            (KeyOp.claim, 2) : do_claim();
            (KeyOp.renew, _) : do_touch();
            (KeyOp.touch, _) : do_touch();
            (KeyOp.close, _) : do_close();
        }
        const default_action = do_look();
        size = 8;
    }

    apply {
        operation.apply();
        understand.apply(op, tried, result, found);
    }
}

#endif
