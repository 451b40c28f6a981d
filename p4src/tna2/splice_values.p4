// Stores the delta of sequence numbers for each slot of a spliced connection.
#ifndef SLUICE_TNA2_SPLICE_VALUES_P4
#define SLUICE_TNA2_SPLICE_VALUES_P4

const bit<32> SAME = 2;                // result of comparing a cell with an order's delta: they are equal, for example because
                                       // the order is repeated

control SpliceValue1(in pin_slot_t slot, in headers_t hdr, in metadata_t meta, inout bit<32> value,
                     inout bit<1> detour) {
    @id(REGISTER_SPLICE_VALUE_1)
    Register<bit<32>, pin_slot_t>(CONNECTION_SLOTS, 0) splice_value_1;

    RegisterAction<bit<32>, pin_slot_t, bit<32>>(splice_value_1) read = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };
    RegisterAction<bit<32>, pin_slot_t, bit<32>>(splice_value_1) set_delta = {
        void apply(inout bit<32> cell) {
            cell = hdr.splice.delta;
        }
    };
    RegisterAction<bit<32>, pin_slot_t, bit<32>>(splice_value_1) compare = {
        void apply(inout bit<32> cell, out bit<32> compared) {
            compared = this.predicate(cell == hdr.splice.delta);
        }
    };

    @hidden
    action do_read() {
        value = read.execute(slot);
    }

    @hidden
    action do_detour() {
        detour = 1;
    }

    @hidden
    action do_set_delta() {
        set_delta.execute(slot);
    }

    @hidden
    action do_compare() {
        value = compare.execute(slot);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.path    : ternary @name("path");
            meta.content : ternary @name("content");
            meta.event   : ternary @name("event");
            meta.claimed : ternary @name("claimed");
            meta.granted : ternary @name("granted");
            meta.turn    : ternary @name("turn");
        }
        actions = { do_read; do_detour; do_set_delta; do_compare; neither; }
        const entries = {
            (Path.order, _, _, _, GRANTED, _)                                 : do_set_delta();
            (Path.order, _, _, _, GRANTED_BEFORE, _)                          : do_compare();
            (Path.to_service, Content.client, _, _, _, 0x8000 &&& 0x8000)     : do_read();
            (Path.from_server, Content.server, _, _, _, 0x8000 &&& 0x8000)    : do_read();
            (Path.from_server, Content.server, _, _, _, _)                    : do_detour();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

control SpliceValue2(in pin_slot_t slot, in headers_t hdr, in metadata_t meta, inout bit<32> value,
                     inout bit<1> detour) {
    @id(REGISTER_SPLICE_VALUE_2)
    Register<bit<32>, pin_slot_t>(CONNECTION_SLOTS, 0) splice_value_2;

    RegisterAction<bit<32>, pin_slot_t, bit<32>>(splice_value_2) read = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };
    RegisterAction<bit<32>, pin_slot_t, bit<32>>(splice_value_2) set_delta = {
        void apply(inout bit<32> cell) {
            cell = hdr.splice.delta;
        }
    };
    RegisterAction<bit<32>, pin_slot_t, bit<32>>(splice_value_2) compare = {
        void apply(inout bit<32> cell, out bit<32> compared) {
            compared = this.predicate(cell == hdr.splice.delta);
        }
    };

    @hidden
    action do_read() {
        value = read.execute(slot);
    }

    @hidden
    action do_detour() {
        detour = 1;
    }

    @hidden
    action do_set_delta() {
        set_delta.execute(slot);
    }

    @hidden
    action do_compare() {
        value = compare.execute(slot);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = {
            meta.path    : ternary @name("path");
            meta.content : ternary @name("content");
            meta.event   : ternary @name("event");
            meta.claimed : ternary @name("claimed");
            meta.granted : ternary @name("granted");
            meta.turn    : ternary @name("turn");
        }
        actions = { do_read; do_detour; do_set_delta; do_compare; neither; }
        const entries = {
            (Path.order, _, _, _, GRANTED, _)                                 : do_set_delta();
            (Path.order, _, _, _, GRANTED_BEFORE, _)                          : do_compare();
            (Path.to_service, Content.client, _, _, _, 0x8000 &&& 0x8000)     : do_read();
            (Path.from_server, Content.server, _, _, _, 0x8000 &&& 0x8000)    : do_read();
            (Path.from_server, Content.server, _, _, _, _)                    : do_detour();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

#endif
