// Stores the turn of each content connection, i.e. which device translates it: a 16-bit cell for each slot, in one register for
// each way.
//
//     bit 15  1: the switch translates the connection ("spliced"); 0: its agent does
//     14..10  the left shift of the server's windows, a signed number
//       9..0  the agent's number, a server_id_t below SERVERS
//
// While the agent translates, the cell equals the agent's number, so the cell can be used unchanged as the number of the server
// to which the client's packets go.
//
//     begin   for an agent's SYN that has claimed the slot: writes the agent's number
//     ask     for any other SYN of an agent: writes the agent's number, unless the connection is spliced
//     order   for a splice order of the connection's agent: writes the order's value. A repeated order: returns GRANTED_BEFORE
#ifndef SLUICE_TNA2_SPLICE_TURNS_P4
#define SLUICE_TNA2_SPLICE_TURNS_P4

// Results of an agent's access to the cell.
const granted_t GRANTED = 2;           // the connection now belongs to the agent, or the order is carried out
const granted_t GRANTED_BEFORE = 4;    // the cell already has the order's value

// Returns whether a packet's connection may have a slot. It may not if the packet goes to a group of a content service, but was
// not sent by an agent of this content service (`agent` is 0).
bool may_have_slot(in Content content, in server_id_t agent) {
    return content != Content.agent || agent != 0;
}

control SpliceTurn1(in pin_slot_t slot, in look_t lookup, in compared_t result, inout metadata_t meta) {
    @id(REGISTER_SPLICE_TURN_1)
    Register<turn_t, pin_slot_t>(CONNECTION_SLOTS, 0) splice_turn_1;

    RegisterAction<turn_t, pin_slot_t, turn_t>(splice_turn_1) read = {
        void apply(inout turn_t cell, out turn_t value) {
            value = cell;
        }
    };
    RegisterAction<turn_t, pin_slot_t, granted_t>(splice_turn_1) begin = {
        void apply(inout turn_t cell) {
            cell = meta.agent;
        }
    };
    RegisterAction<turn_t, pin_slot_t, granted_t>(splice_turn_1) ask = {
        void apply(inout turn_t cell, out granted_t granted) {
            granted = this.predicate((int<16>)cell >= 0);
            if ((int<16>)cell >= 0) {
                cell = meta.agent;
            }
        }
    };
    RegisterAction<turn_t, pin_slot_t, granted_t>(splice_turn_1) order = {
        void apply(inout turn_t cell, out granted_t granted) {
            granted = this.predicate(cell == meta.agent, cell == meta.turn);
            if (cell == meta.agent) {
                cell = meta.turn;
            }
        }
    };

    @hidden
    action do_read() {
        meta.turn = read.execute(slot);
    }

    @hidden
    action do_begin() {
        begin.execute(slot);
    }

    @hidden
    action do_ask() {
        meta.granted = ask.execute(slot);
    }

    @hidden
    action do_order() {
        meta.granted = order.execute(slot);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.path    : ternary @name("path");
            meta.content : ternary @name("content");
            meta.event   : ternary @name("event");
            lookup       : ternary @name("look");
            result       : ternary @name("result");
        }
        actions = { do_read; do_begin; do_ask; do_order; neither; }
        const entries = {
            (Path.order, _, _, _, _)                                : do_order();
            (_, Content.agent, Event.syn, LOOK_CLAIM, ONLY_SECOND)  : do_begin();
            (_, Content.agent, Event.syn, LOOK_CLAIM, BOTH)         : do_begin();
            (_, Content.agent, Event.syn, _, _)                     : do_ask();
            (_, Content.none, _, _, _)                              : neither();
            (_, _, _, _, _)                                         : do_read();
        }
        // A default action may not use the hash unit, which computes the slot.
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

control SpliceTurn2(in pin_slot_t slot, in look_t lookup, in compared_t result, inout metadata_t meta) {
    @id(REGISTER_SPLICE_TURN_2)
    Register<turn_t, pin_slot_t>(CONNECTION_SLOTS, 0) splice_turn_2;

    RegisterAction<turn_t, pin_slot_t, turn_t>(splice_turn_2) read = {
        void apply(inout turn_t cell, out turn_t value) {
            value = cell;
        }
    };
    RegisterAction<turn_t, pin_slot_t, granted_t>(splice_turn_2) begin = {
        void apply(inout turn_t cell) {
            cell = meta.agent;
        }
    };
    RegisterAction<turn_t, pin_slot_t, granted_t>(splice_turn_2) ask = {
        void apply(inout turn_t cell, out granted_t granted) {
            granted = this.predicate((int<16>)cell >= 0);
            if ((int<16>)cell >= 0) {
                cell = meta.agent;
            }
        }
    };
    RegisterAction<turn_t, pin_slot_t, granted_t>(splice_turn_2) order = {
        void apply(inout turn_t cell, out granted_t granted) {
            granted = this.predicate(cell == meta.agent, cell == meta.turn);
            if (cell == meta.agent) {
                cell = meta.turn;
            }
        }
    };

    @hidden
    action do_read() {
        meta.turn = read.execute(slot);
    }

    @hidden
    action do_begin() {
        begin.execute(slot);
    }

    @hidden
    action do_ask() {
        meta.granted = ask.execute(slot);
    }

    @hidden
    action do_order() {
        meta.granted = order.execute(slot);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.path    : ternary @name("path");
            meta.content : ternary @name("content");
            meta.event   : ternary @name("event");
            lookup       : ternary @name("look");
            result       : ternary @name("result");
        }
        actions = { do_read; do_begin; do_ask; do_order; neither; }
        const entries = {
            (Path.order, _, _, _, ONLY_FIRST)                       : do_order();
            (Path.order, _, _, _, BOTH)                             : do_order();
            (_, Content.agent, Event.syn, LOOK_CLAIM, ONLY_SECOND)  : do_begin();
            (_, Content.agent, Event.syn, LOOK_CLAIM, BOTH)         : do_begin();
            (_, Content.agent, Event.syn, _, ONLY_FIRST)            : do_ask();
            (_, Content.agent, Event.syn, _, _)                     : neither();
            (_, Content.none, _, _, _)                              : neither();
            (_, _, _, _, _)                                         : do_read();
        }
        // A default action may not use the hash unit, which computes the slot.
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

#endif
