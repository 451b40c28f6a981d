// The four registers of the connection table that store servers and states; a packet executes at most one RegisterAction of each.
// One table selects the RegisterAction of a register, instead of a branch for each operation, because a pipe has only 192 tables.
#ifndef SLUICE_TNA_PIN_CELLS_P4
#define SLUICE_TNA_PIN_CELLS_P4

// What a packet finds in the connection table.
struct pin_t {
    bit<8>      way;               // the way of the connection's slot, 1 or 2
    server_id_t server;            // for an answer: the server to which the connection is pinned
    PinState    state_before;      // for a claimed slot: the last state of the slot's previous connection
}

// Accesses a slot's server: writes the choice when a SYN claims the slot, reads a request's server into meta.server, or reads the
// pinned server into pin.server, for comparison with the sender of an answer.
control PinServer1(in pin_slot_t slot, in look_t lookup, in compared_t result, inout metadata_t meta, inout pin_t pin) {
    @id(REGISTER_PIN_SERVER_1)
    Register<server_id_t, pin_slot_t>(CONNECTION_SLOTS, 0) pin_server_1;

    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_1) take = {
        void apply(inout server_id_t cell, out server_id_t before) {
            before = cell;
            cell = meta.choice;
        }
    };
    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_1) give = {
        void apply(inout server_id_t cell, out server_id_t value) {
            value = cell;
        }
    };

    @hidden
    action do_take() {
        meta.evicted = take.execute(slot);
        pin.way = 1;
        meta.server = meta.choice;
        meta.claimed = 1;
        meta.has_slot = 1;
    }

    @hidden
    action do_give() {
        meta.server = give.execute(slot);
        pin.way = 1;
        meta.has_slot = 1;
    }

    @hidden
    action do_name() {
        pin.server = give.execute(slot);
        pin.way = 1;
        meta.has_slot = 1;
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.path : ternary @name("path");
            lookup    : ternary @name("look");
            result    : ternary @name("result");
        }
        actions = { do_take; do_give; do_name; neither; }
        const entries = {
            (Path.to_service, LOOK_CLAIM, ONLY_FIRST) : do_give();
            (Path.to_service, LOOK_CLAIM, _)          : do_take();
            (Path.to_service, LOOK_RENEW, _)          : do_take();
            (Path.to_service, _, _)                   : do_give();
            (Path.from_server, _, _)                  : do_name();
#if defined(CONTENT)
            (Path.order, _, _)                        : do_name();
#endif
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

control PinServer2(in pin_slot_t slot, in look_t lookup, in compared_t result, in bit<1> undecided,
                   inout metadata_t meta, inout pin_t pin) {
    @id(REGISTER_PIN_SERVER_2)
    Register<server_id_t, pin_slot_t>(CONNECTION_SLOTS, 0) pin_server_2;

    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_2) take = {
        void apply(inout server_id_t cell, out server_id_t before) {
            before = cell;
            cell = meta.choice;
        }
    };
    RegisterAction<server_id_t, pin_slot_t, server_id_t>(pin_server_2) give = {
        void apply(inout server_id_t cell, out server_id_t value) {
            value = cell;
        }
    };

    @hidden
    action do_take() {
        meta.evicted = take.execute(slot);
        pin.way = 2;
        meta.way = 1;
        meta.server = meta.choice;
        meta.claimed = 1;
        meta.has_slot = 1;
    }

    @hidden
    action do_give() {
        meta.server = give.execute(slot);
        pin.way = 2;
        meta.way = 1;
        meta.has_slot = 1;
    }

    @hidden
    action do_name() {
        pin.server = give.execute(slot);
        pin.way = 2;
        meta.way = 1;
        meta.has_slot = 1;
    }

    @hidden
    action go_to_choice() {
        meta.server = meta.choice;
    }

    @hidden
    action go_to_stable_choice() {
        meta.server = meta.stable_choice;
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.path  : ternary @name("path");
            lookup     : ternary @name("look");
            result     : ternary @name("result");
            meta.event : ternary @name("event");
            undecided  : ternary @name("undecided");
        }
        actions = { do_take; do_give; do_name; go_to_choice; go_to_stable_choice; neither; }
        const entries = {
            (Path.to_service, LOOK_CLAIM, ONLY_FIRST, _, _)  : do_give();
            (Path.to_service, LOOK_CLAIM, ONLY_SECOND, _, _) : do_take();
            (Path.to_service, LOOK_CLAIM, BOTH, _, _)        : do_take();
            (Path.to_service, LOOK_RENEW, ONLY_FIRST, _, _)  : do_take();
            (Path.to_service, LOOK_RENEW, BOTH, _, _)        : do_take();
            (Path.to_service, LOOK_LIVE, ONLY_FIRST, _, _)   : do_give();
            (Path.to_service, LOOK_ANY, ONLY_FIRST, _, _)    : do_give();
            (Path.to_service, LOOK_ANY, BOTH, _, _)          : do_give();
            (Path.from_server, _, ONLY_FIRST, _, _)          : do_name();
            (Path.from_server, _, BOTH, _, _)                : do_name();
#if defined(CONTENT)
            (Path.order, _, ONLY_FIRST, _, _)                : do_name();
            (Path.order, _, BOTH, _, _)                      : do_name();
#endif
            (Path.to_service, _, _, Event.syn, 1)            : go_to_choice();
            (Path.to_service, _, _, _, _)                    : go_to_stable_choice();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

// Accesses a slot's state: writes place.step.next if the state equals place.step.expected (with `or_later`: if the state is not
// below place.step.expected), and always in a claimed slot. Returns the previous state.
control PinState1(in pin_slot_t slot, in place_t place, inout metadata_t meta, inout pin_t pin) {
    @id(REGISTER_PIN_STATE_1)
    Register<bit<8>, pin_slot_t>(CONNECTION_SLOTS, 0) pin_state_1;

    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_1) step = {
        void apply(inout bit<8> cell, out bit<8> before) {
            before = cell;
            if (cell == (bit<8>)place.step.expected) {
                cell = (bit<8>)place.step.next;
            }
        }
    };
    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_1) leap = {
        void apply(inout bit<8> cell, out bit<8> before) {
            before = cell;
            if (cell >= (bit<8>)place.step.expected) {
                cell = (bit<8>)place.step.next;
            }
        }
    };
    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_1) set = {
        void apply(inout bit<8> cell, out bit<8> before) {
            before = cell;
            cell = (bit<8>)place.step.next;
        }
    };

    @hidden
    action do_step() {
        meta.state = (PinState)step.execute(slot);
    }

    @hidden
    action do_leap() {
        meta.state = (PinState)leap.execute(slot);
    }

    // Writes a claimed slot's state, and returns the last state of the slot's previous connection.
    @hidden
    action do_begin() {
        pin.state_before = (PinState)set.execute(slot);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.claimed        : ternary @name("claimed");
            place.step.or_later : ternary @name("or_later");
        }
        actions = { do_step; do_leap; do_begin; neither; }
        const entries = {
            (1, _) : do_begin();
            (_, 1) : do_leap();
            (_, _) : do_step();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

control PinState2(in pin_slot_t slot, in place_t place, inout metadata_t meta, inout pin_t pin) {
    @id(REGISTER_PIN_STATE_2)
    Register<bit<8>, pin_slot_t>(CONNECTION_SLOTS, 0) pin_state_2;

    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_2) step = {
        void apply(inout bit<8> cell, out bit<8> before) {
            before = cell;
            if (cell == (bit<8>)place.step.expected) {
                cell = (bit<8>)place.step.next;
            }
        }
    };
    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_2) leap = {
        void apply(inout bit<8> cell, out bit<8> before) {
            before = cell;
            if (cell >= (bit<8>)place.step.expected) {
                cell = (bit<8>)place.step.next;
            }
        }
    };
    RegisterAction<bit<8>, pin_slot_t, bit<8>>(pin_state_2) set = {
        void apply(inout bit<8> cell, out bit<8> before) {
            before = cell;
            cell = (bit<8>)place.step.next;
        }
    };

    @hidden
    action do_step() {
        meta.state = (PinState)step.execute(slot);
    }

    @hidden
    action do_leap() {
        meta.state = (PinState)leap.execute(slot);
    }

    // Writes a claimed slot's state, and returns the last state of the slot's previous connection.
    @hidden
    action do_begin() {
        pin.state_before = (PinState)set.execute(slot);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.claimed        : ternary @name("claimed");
            place.step.or_later : ternary @name("or_later");
        }
        actions = { do_step; do_leap; do_begin; neither; }
        const entries = {
            (1, _) : do_begin();
            (_, 1) : do_leap();
            (_, _) : do_step();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

#endif
