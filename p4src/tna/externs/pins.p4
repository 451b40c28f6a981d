// The two registers of the connection table that store keys: a connection's fingerprint and time. A packet executes one
// RegisterAction of each register. A stateful unit has two comparisons and two inputs of 32 bits: here fingerprint and time. For
// the operation `claim` the input is the time of the oldest valid key, and the unit writes this time plus a constant. For the
// operations `touch` and `close` the input is the time to write.
#ifndef SLUICE_TNA_PINS_P4
#define SLUICE_TNA_PINS_P4

typedef bit<32> fingerprint_t;       // 32 bits wide, because the inputs of stateful units are whole words

// Computes the slot in each way and the fingerprint: CRC-32 of the connection's fields in three orders. (With one order and a
// salt for each way, two connections that collide in way 1 would also collide in way 2, because CRCs are linear. The selectors
// use three further orders.) Tofino 1 hashes the packet's fields directly, because it lacks containers for copies of addresses. A
// table computes at most 32 bits of hashes.
control PinHash(in metadata_t meta, out pin_slot_t slot_1, out pin_slot_t slot_2, out fingerprint_t fingerprint) {
    Hash<pin_slot_t>(HashAlgorithm_t.CRC32) request_1;
    Hash<pin_slot_t>(HashAlgorithm_t.CRC32) request_2;
    Hash<fingerprint_t>(HashAlgorithm_t.CRC32) request_fingerprint;
#if defined(CONTENT)

    // Hashes the fields in meta.connection, because separate hashes for four kinds of packets would need sixteen hash units.
    @hidden
    action slots() {
        slot_1 = request_1.get({ meta.connection.client, meta.connection.service, meta.connection.client_port,
                                 meta.connection.service_port, meta.flow.protocol });
        slot_2 = request_2.get({ meta.connection.service_port, meta.connection.client_port, meta.flow.protocol,
                                 meta.connection.service, meta.connection.client });
    }

    @hidden
    action find() {
        fingerprint = request_fingerprint.get({ meta.flow.protocol, meta.connection.client_port, meta.connection.client,
                                                meta.connection.service_port, meta.connection.service });
    }

    apply {
        slots();
        find();
    }
#else
    Hash<pin_slot_t>(HashAlgorithm_t.CRC32) answer_1;
    Hash<pin_slot_t>(HashAlgorithm_t.CRC32) answer_2;
    Hash<fingerprint_t>(HashAlgorithm_t.CRC32) answer_fingerprint;

    @hidden
    action request_slots() {
        slot_1 = request_1.get({ meta.flow.src, meta.flow.dst, meta.flow.src_port, meta.flow.dst_port, meta.flow.protocol });
        slot_2 = request_2.get({ meta.flow.dst_port, meta.flow.src_port, meta.flow.protocol, meta.flow.dst, meta.flow.src });
    }

    @hidden
    action find_request() {
        fingerprint = request_fingerprint.get({ meta.flow.protocol, meta.flow.src_port, meta.flow.src, meta.flow.dst_port,
                                                meta.flow.dst });
    }

    @hidden
    action answer_slots() {
        slot_1 = answer_1.get({ meta.flow.dst, meta.endpoint, meta.flow.dst_port, meta.endpoint_port, meta.flow.protocol });
        slot_2 = answer_2.get({ meta.endpoint_port, meta.flow.dst_port, meta.flow.protocol, meta.endpoint, meta.flow.dst });
    }

    @hidden
    action find_answer() {
        fingerprint = answer_fingerprint.get({ meta.flow.protocol, meta.flow.dst_port, meta.flow.dst, meta.endpoint_port,
                                               meta.endpoint });
    }

    apply {
        request_slots();
        find_request();
        if (meta.server != 0) {
            answer_slots();
            find_answer();
        }
    }
#endif
}

// A key of the connection table.
struct pin_key_t {
    bit<32> fingerprint;
    bit<32> stamp;                   // time at which the slot expires, minus the idle time
}

// The result of a stateful unit's two comparisons: one of four bits is set. (Every RegisterAction repeats the comparisons,
// because p4c's back end for Tofino accepts no local variables of type bool there.)
typedef bit<8> compared_t;
const compared_t ONLY_FIRST  = 2;
const compared_t ONLY_SECOND = 4;
const compared_t BOTH        = 8;

// How to interpret the result of an operation on a key. Every operation first compares the fingerprints, and every operation but
// `close` then compares the times: the second comparison is true if the key's time is before that of the oldest valid key, or
// before the time to be written.
//
//              fingerprint only   older only    both
//     any      found              -             found
//     live     found              vacant        vacant
//     claim    found              claimed       claimed
//     renew    claimed            -             claimed
typedef bit<8> look_t;
const look_t LOOK_ANY   = 0;
const look_t LOOK_LIVE  = 1;
const look_t LOOK_CLAIM = 2;           // a SYN claims a slot in one way, and looks up its connection in the other way
const look_t LOOK_RENEW = 3;

control PinKey1(in Path path, in pin_slot_t slot, in KeyOp op, in bit<8> way, in fingerprint_t fingerprint, in ticks_t time,
                out look_t lookup, out compared_t result) {
    @id(REGISTER_PIN_KEY_1)
    Register<pin_key_t, pin_slot_t>(CONNECTION_SLOTS, { 0, 0 }) pin_key_1;

    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) see = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint, (int<32>)(cell.stamp - time) < 0);
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) claim = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint, (int<32>)(cell.stamp - time) < 0);
            if ((int<32>)(cell.stamp - time) < 0) {
                cell.fingerprint = fingerprint;
                cell.stamp = time + PENDING_TICKS;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) touch = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint, (int<32>)(cell.stamp - time) < 0);
            if (cell.fingerprint == fingerprint && (int<32>)(cell.stamp - time) < 0) {
                cell.stamp = time;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_1) close = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint);
            if (cell.fingerprint == fingerprint) {
                cell.stamp = time;
            }
        }
    };

    @hidden
    action do_look(look_t how) {
        result = see.execute(slot);
        lookup = how;
    }

    @hidden
    action do_claim() {
        result = claim.execute(slot);
        lookup = LOOK_CLAIM;
    }

    @hidden
    action do_touch(look_t how) {
        result = touch.execute(slot);
        lookup = how;
    }

    @hidden
    action do_close() {
        result = close.execute(slot);
        lookup = LOOK_ANY;
    }

    @hidden
    action neither() {
        result = 0;
        lookup = LOOK_ANY;
    }

    @hidden
    table operation {
        key = {
            path : ternary @name("path");
            op   : ternary @name("op");
            way  : ternary @name("way");
        }
        actions = { do_look; do_claim; do_touch; do_close; neither; }
        const entries = {
            (Path.to_service, KeyOp.claim, 1)      : do_claim();
            (Path.to_service, KeyOp.claim, _)      : do_look(LOOK_LIVE);
            (Path.to_service, KeyOp.find_live, _)  : do_look(LOOK_LIVE);
            (Path.to_service, KeyOp.renew, _)      : do_touch(LOOK_RENEW);
            (Path.to_service, KeyOp.touch, _)      : do_touch(LOOK_ANY);
            (Path.to_service, KeyOp.close, _)      : do_close();
            (Path.to_service, _, _)                : do_look(LOOK_ANY);
            (Path.from_server, KeyOp.touch, _)     : do_touch(LOOK_ANY);
            (Path.from_server, KeyOp.close, _)     : do_close();
            (Path.from_server, KeyOp.find, _)      : do_look(LOOK_ANY);
#if defined(CONTENT)
            (Path.order, _, _)                     : do_look(LOOK_ANY);
#endif
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

control PinKey2(in Path path, in pin_slot_t slot, in KeyOp op, in bit<8> way, in fingerprint_t fingerprint, in ticks_t time,
                out look_t lookup, out compared_t result) {
    @id(REGISTER_PIN_KEY_2)
    Register<pin_key_t, pin_slot_t>(CONNECTION_SLOTS, { 0, 0 }) pin_key_2;

    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) see = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint, (int<32>)(cell.stamp - time) < 0);
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) claim = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint, (int<32>)(cell.stamp - time) < 0);
            if ((int<32>)(cell.stamp - time) < 0) {
                cell.fingerprint = fingerprint;
                cell.stamp = time + PENDING_TICKS;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) touch = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint, (int<32>)(cell.stamp - time) < 0);
            if (cell.fingerprint == fingerprint && (int<32>)(cell.stamp - time) < 0) {
                cell.stamp = time;
            }
        }
    };
    RegisterAction<pin_key_t, pin_slot_t, compared_t>(pin_key_2) close = {
        void apply(inout pin_key_t cell, out compared_t compared) {
            compared = this.predicate(cell.fingerprint == fingerprint);
            if (cell.fingerprint == fingerprint) {
                cell.stamp = time;
            }
        }
    };

    @hidden
    action do_look(look_t how) {
        result = see.execute(slot);
        lookup = how;
    }

    @hidden
    action do_claim() {
        result = claim.execute(slot);
        lookup = LOOK_CLAIM;
    }

    @hidden
    action do_touch(look_t how) {
        result = touch.execute(slot);
        lookup = how;
    }

    @hidden
    action do_close() {
        result = close.execute(slot);
        lookup = LOOK_ANY;
    }

    @hidden
    action neither() {
        result = 0;
        lookup = LOOK_ANY;
    }

    @hidden
    table operation {
        key = {
            path : ternary @name("path");
            op   : ternary @name("op");
            way  : ternary @name("way");
        }
        actions = { do_look; do_claim; do_touch; do_close; neither; }
        const entries = {
            (Path.to_service, KeyOp.claim, 2)      : do_claim();
            (Path.to_service, KeyOp.claim, _)      : do_look(LOOK_LIVE);
            (Path.to_service, KeyOp.find_live, _)  : do_look(LOOK_LIVE);
            (Path.to_service, KeyOp.renew, _)      : do_touch(LOOK_RENEW);
            (Path.to_service, KeyOp.touch, _)      : do_touch(LOOK_ANY);
            (Path.to_service, KeyOp.close, _)      : do_close();
            (Path.to_service, _, _)                : do_look(LOOK_ANY);
            (Path.from_server, KeyOp.touch, _)     : do_touch(LOOK_ANY);
            (Path.from_server, KeyOp.close, _)     : do_close();
            (Path.from_server, KeyOp.find, _)      : do_look(LOOK_ANY);
#if defined(CONTENT)
            (Path.order, _, _)                     : do_look(LOOK_ANY);
#endif
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

#endif
