// The cells of the connection table that hold servers and states: four registers, each with one RegisterAction a packet. One table
// for each, not a branch for each operation: a pipe has room for 192 tables.
#ifndef SLUICE_TNA_PIN_CELLS_P4
#define SLUICE_TNA_PIN_CELLS_P4

// A server cell: takes `pin` when the slot was claimed, and says what it was before; gives it when the slot is the connection's own.
// `here`: either of both.
control PinServer1(in pin_slot_t slot, in found_t found, inout server_id_t pin, inout server_id_t before,
                   inout bit<1> here) {
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

    @hidden
    action do_take() {
        before = take.execute(slot);
        here = 1;
    }

    @hidden
    action do_give() {
        pin = give.execute(slot);
        here = 1;
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { found : exact @name("found"); }
        actions = { do_take; do_give; neither; }
        const entries = {
            TAKEN   : do_take();
            ITS_OWN : do_give();
        }
        const default_action = neither();
        size = 4;
    }

    apply {
        operation.apply();
    }
}

control PinServer2(in pin_slot_t slot, in found_t found, inout server_id_t pin, inout server_id_t before,
                   inout bit<1> here) {
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

    @hidden
    action do_take() {
        before = take.execute(slot);
        here = 1;
    }

    @hidden
    action do_give() {
        pin = give.execute(slot);
        here = 1;
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { found : exact @name("found"); }
        actions = { do_take; do_give; neither; }
        const entries = {
            TAKEN   : do_take();
            ITS_OWN : do_give();
        }
        const default_action = neither();
        size = 4;
    }

    apply {
        operation.apply();
    }
}

// A state cell: goes to `next` from `expected`, or from anywhere of a claimed slot or by force; gives the state before.
control PinState1(in pin_slot_t slot, in found_t found, in PinState expected, in PinState next, in bit<1> force,
                  inout PinState before) {
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

    @hidden
    action do_step() {
        before = (PinState)step.execute(slot);
    }

    @hidden
    action do_set() {
        before = (PinState)set.execute(slot);
    }

    @hidden
    table operation {
        key = {
            found : ternary @name("found");
            force : ternary @name("force");
        }
        actions = { do_step; do_set; }
        const entries = {
            (TAKEN, _) : do_set();
            (_, 1)     : do_set();
        }
        const default_action = do_step();
        size = 4;
    }

    apply {
        operation.apply();
    }
}

control PinState2(in pin_slot_t slot, in found_t found, in PinState expected, in PinState next, in bit<1> force,
                  inout PinState before) {
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

    @hidden
    action do_step() {
        before = (PinState)step.execute(slot);
    }

    @hidden
    action do_set() {
        before = (PinState)set.execute(slot);
    }

    @hidden
    table operation {
        key = {
            found : ternary @name("found");
            force : ternary @name("force");
        }
        actions = { do_step; do_set; }
        const entries = {
            (TAKEN, _) : do_set();
            (_, 1)     : do_set();
        }
        const default_action = do_step();
        size = 4;
    }

    apply {
        operation.apply();
    }
}

#endif
