// The two ways (hash arrays) of the connection table, and how packets access the ways.
#ifndef SLUICE_TNA_WAYS_P4
#define SLUICE_TNA_WAYS_P4

#include "pin_cells.p4"
#include <externs/splice_turns.p4>

// Finds the way (1 or 2) in which a SYN may claim a slot in its second pass; 0: no slot is vacant.
control Vacancy(in look_t lookup_1, in compared_t result_1, in look_t lookup_2, in compared_t result_2, inout bit<8> vacant) {
    @hidden
    action is(bit<8> way) {
        vacant = way;
    }

    @hidden
    table vacancy {
        key = {
            lookup_1 : ternary @name("look_1");
            result_1 : ternary @name("result_1");
            lookup_2 : ternary @name("look_2");
            result_2 : ternary @name("result_2");
        }
        actions = { is; }
        const entries = {
            (LOOK_LIVE, ONLY_SECOND, _, _) : is(1);
            (LOOK_LIVE, BOTH, _, _)        : is(1);
            (_, _, LOOK_LIVE, ONLY_SECOND) : is(2);
            (_, _, LOOK_LIVE, BOTH)        : is(2);
        }
        const default_action = is(0);
    }

    apply {
        vacancy.apply();
    }
}

// Finds a packet's connection in one of two ways or claims a slot for it, reads or writes the slot's server, and updates the
// state. A request goes to the server to which its connection is pinned. Without a pin, a request goes to `stable_choice`, except
// that a SYN which needs a second pass goes to `choice`.
//
// Both ways are accessed in parallel, because the operation on each way is known beforehand. In its first pass a SYN only looks
// up its connection, and stores which way was vacant. In the second pass the SYN claims a slot in this way, and looks up its
// connection in the other way. (If another SYN has claimed the slot meanwhile, this SYN's connection gets no pin.) If both ways
// contain the connection, way 1 is used.
control Pins(inout metadata_t meta, in place_t place, inout decided_t decided) {
    PinKey1() key_1;
    PinKey2() key_2;
    PinServer1() server_1;
    PinServer2() server_2;
    PinState1() state_1;
    PinState2() state_2;
    Vacancy() vacancy;
    SpliceTurn1() turn_1;
    SpliceTurn2() turn_2;

    look_t lookup_1;
    look_t lookup_2;
    compared_t result_1;
    compared_t result_2;
    pin_t pin;

    apply {
        if (may_have_slot(meta.content, meta.agent)) {
            key_1.apply(meta.path, place.slot_1, place.step.op, decided.way, place.fingerprint, place.step.time, lookup_1, result_1);
            key_2.apply(meta.path, place.slot_2, place.step.op, decided.way, place.fingerprint, place.step.time, lookup_2, result_2);
        }

        if (result_1 == ONLY_FIRST || (result_1 == BOTH && lookup_1 != LOOK_LIVE)
                || (result_1 == ONLY_SECOND && lookup_1 == LOOK_CLAIM)) {
            server_1.apply(place.slot_1, lookup_1, result_1, meta, pin);
            turn_1.apply(place.slot_1, lookup_1, result_1, meta);
        } else {
            server_2.apply(place.slot_2, lookup_2, result_2, decided.undecided, meta, pin);
            turn_2.apply(place.slot_2, lookup_2, result_2, meta);
        }
        vacancy.apply(lookup_1, result_1, lookup_2, result_2, meta.vacant);

        if (meta.has_slot == 1 && (meta.path == Path.to_service || pin.server == meta.server)) {
            meta.pinned = 1;
            if (pin.way == 1) {
                state_1.apply(place.slot_1, place, meta, pin);
            } else {
                state_2.apply(place.slot_2, place, meta, pin);
            }
        }
        if (pin.state_before == PinState.closed || place.step.op != KeyOp.claim) {
            meta.evicted = 0;
        }
    }
}

#endif
