// The cells of the connection table: six registers, each with one RegisterAction a packet, of at most two comparisons and two
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

// The first comparison of every operation is that of the fingerprints, the second that of the times.
control Understand(in KeyOp op, in compared_t result, out bit<1> hit, out bit<1> claimed) {
    @hidden
    action neither() {
        hit = 0;
        claimed = 0;
    }

    @hidden
    action its_own() {
        hit = 1;
        claimed = 0;
    }

    @hidden
    action taken() {
        hit = 0;
        claimed = 1;
    }

    // One action of them for each packet: of two in a row, the second costs a stage.
    apply {
        if (op == KeyOp.claim) {
            if (result == ONLY_SECOND || result == BOTH) {
                taken();
            } else if (result == ONLY_FIRST) {
                its_own();
            } else {
                neither();
            }
        } else if (op == KeyOp.look_live) {
            if (result == ONLY_FIRST) {
                its_own();
            } else {
                neither();
            }
        } else if (result == ONLY_FIRST || result == BOTH) {
            if (op == KeyOp.renew) {
                taken();
            } else {
                its_own();
            }
        } else {
            neither();
        }
    }
}

control PinKey1(in pin_slot_t slot, in KeyOp op, in fingerprint_t fingerprint, in ticks_t oldest, in ticks_t stamp,
                out bit<1> hit, out bit<1> claimed) {
    Understand() understand;
    compared_t result = 0;

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

    apply {
        if (op == KeyOp.claim) {
            result = claim.execute(slot);
        } else if (op == KeyOp.touch || op == KeyOp.renew) {
            result = touch.execute(slot);
        } else if (op == KeyOp.close) {
            result = close.execute(slot);
        } else {
            result = look.execute(slot);
        }
        understand.apply(op, result, hit, claimed);
    }
}

// `look_only`: way 1 was claimed, and this way may only be looked at.
control PinKey2(in pin_slot_t slot, in KeyOp op, in bit<1> look_only, in fingerprint_t fingerprint, in ticks_t oldest,
                in ticks_t stamp, out bit<1> hit, out bit<1> claimed) {
    Understand() understand;
    compared_t result = 0;

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

    apply {
        if (look_only == 1) {
            result = look.execute(slot);
            understand.apply(KeyOp.look_live, result, hit, claimed);
        } else {
            if (op == KeyOp.claim) {
                result = claim.execute(slot);
            } else if (op == KeyOp.touch || op == KeyOp.renew) {
                result = touch.execute(slot);
            } else if (op == KeyOp.close) {
                result = close.execute(slot);
            } else {
                result = look.execute(slot);
            }
            understand.apply(op, result, hit, claimed);
        }
    }
}

// A server cell: takes `pin` when the slot was claimed, and says what it was before; gives it otherwise.
control PinServer1(in pin_slot_t slot, in bit<1> claimed, inout server_id_t pin, inout server_id_t before) {
    @id(0x03)
    Register<server_id_t, pin_slot_t>(TNA_CONNECTION_SLOTS, 0) pin_server_1;

    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_1) take = {
        void apply(inout server_id_t cell, out server_id_t result) {
            result = cell;
            cell = pin;
        }
    };
    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_1) give = {
        void apply(inout server_id_t cell, out server_id_t result) {
            result = cell;
        }
    };

    apply {
        if (claimed == 1) {
            before = take.execute(slot);
        } else {
            pin = give.execute(slot);
        }
    }
}

control PinServer2(in pin_slot_t slot, in bit<1> claimed, inout server_id_t pin, inout server_id_t before) {
    @id(0x04)
    Register<server_id_t, pin_slot_t>(TNA_CONNECTION_SLOTS, 0) pin_server_2;

    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_2) take = {
        void apply(inout server_id_t cell, out server_id_t result) {
            result = cell;
            cell = pin;
        }
    };
    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_2) give = {
        void apply(inout server_id_t cell, out server_id_t result) {
            result = cell;
        }
    };

    apply {
        if (claimed == 1) {
            before = take.execute(slot);
        } else {
            pin = give.execute(slot);
        }
    }
}

// A state cell: goes to `next` from `expected`, or from anywhere by force; gives the state before.
control PinState1(in pin_slot_t slot, in PinState expected, in PinState next, in bit<1> force, out PinState before) {
    @id(0x05)
    Register<bit<8>, pin_slot_t>(TNA_CONNECTION_SLOTS, 0) pin_state_1;

    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_1) step = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell;
            if (cell == (bit<8>)expected) {
                cell = (bit<8>)next;
            }
        }
    };
    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_1) set = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell;
            cell = (bit<8>)next;
        }
    };

    apply {
        if (force == 1) {
            before = (PinState)set.execute(slot);
        } else {
            before = (PinState)step.execute(slot);
        }
    }
}

control PinState2(in pin_slot_t slot, in PinState expected, in PinState next, in bit<1> force, out PinState before) {
    @id(0x06)
    Register<bit<8>, pin_slot_t>(TNA_CONNECTION_SLOTS, 0) pin_state_2;

    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_2) step = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell;
            if (cell == (bit<8>)expected) {
                cell = (bit<8>)next;
            }
        }
    };
    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_2) set = {
        void apply(inout bit<8> cell, out bit<8> result) {
            result = cell;
            cell = (bit<8>)next;
        }
    };

    apply {
        if (force == 1) {
            before = (PinState)set.execute(slot);
        } else {
            before = (PinState)step.execute(slot);
        }
    }
}

#endif
