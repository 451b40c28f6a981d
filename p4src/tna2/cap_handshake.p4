// Stores the window parameters that the handshakes announced, in a 16-bit cell for each slot and each side (client, server):
//
//     bit 15..4  the largest segment that the side accepts, in units of 16 bytes; 0: unknown
//         3..0   the window scale of the side, or NO_SCALE
//
// A SYN writes the client's cell, and the low bits of the number that the SYN-ACK must acknowledge. The matching SYN-ACK writes
// the server's cell. Windows are capped as soon as both cells are written.
#ifndef SLUICE_TNA2_CAP_HANDSHAKE_P4
#define SLUICE_TNA2_CAP_HANDSHAKE_P4

typedef bit<16> window_facts_t;

// Computes a cell's value from the options of a SYN or SYN-ACK.
control CapOptions(in offered_options_t options, out window_facts_t facts) {
    @hidden
    action join() {
        @in_hash { facts = options.mss[15:4] ++ options.scale[3:0]; }
    }

    apply {
        join();
    }
}

struct cap_asked_t {
    bit<16>        number;
    window_facts_t facts;
}

// Accesses the client's cell: the window parameters of the SYN, and the number that the SYN-ACK must acknowledge.
control CapAsked(in flow_index_t index, in CapOp op, in bit<16> number, in window_facts_t announced, inout window_facts_t facts) {
    @name(".SluiceIngress.caps.cap_asked")
    @id(REGISTER_CAP_ASKED)
    Register<cap_asked_t, flow_index_t>(SPLICES, { 0, 0 }) cap_asked;

    RegisterAction<cap_asked_t, flow_index_t, window_facts_t>(cap_asked) ask = {
        void apply(inout cap_asked_t cell) {
            cell.number = number + 1;
            cell.facts = announced;
        }
    };
    // Invalidates the client's cell if the SYN-ACK acknowledges another SYN.
    RegisterAction<cap_asked_t, flow_index_t, window_facts_t>(cap_asked) agree = {
        void apply(inout cap_asked_t cell) {
            if (cell.number != number) {
                cell.facts = 0;
            }
        }
    };
    RegisterAction<cap_asked_t, flow_index_t, window_facts_t>(cap_asked) give = {
        void apply(inout cap_asked_t cell, out window_facts_t value) {
            value = cell.facts;
        }
    };

    @hidden
    action do_ask() {
        ask.execute(index);
    }

    @hidden
    action do_agree() {
        agree.execute(index);
    }

    @hidden
    action do_give() {
        facts = give.execute(index);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { op : ternary @name("op"); }
        actions = { do_ask; do_agree; do_give; neither; }
        const entries = {
            CapOp.ask    : do_ask();
            CapOp.agree  : do_agree();
            CapOp.client : do_give();
            CapOp.server : do_give();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

// Accesses the server's cell: the window parameters of the SYN-ACK.
control CapAgreed(in flow_index_t index, in CapOp op, in window_facts_t announced, inout window_facts_t facts) {
    @name(".SluiceIngress.caps.cap_agreed")
    @id(REGISTER_CAP_AGREED)
    Register<window_facts_t, flow_index_t>(SPLICES, 0) cap_agreed;

    RegisterAction<window_facts_t, flow_index_t, window_facts_t>(cap_agreed) forget = {
        void apply(inout window_facts_t cell) {
            cell = 0;
        }
    };
    RegisterAction<window_facts_t, flow_index_t, window_facts_t>(cap_agreed) agree = {
        void apply(inout window_facts_t cell) {
            cell = announced;
        }
    };
    RegisterAction<window_facts_t, flow_index_t, window_facts_t>(cap_agreed) give = {
        void apply(inout window_facts_t cell, out window_facts_t value) {
            value = cell;
        }
    };

    @hidden
    action do_forget() {
        forget.execute(index);
    }

    @hidden
    action do_agree() {
        agree.execute(index);
    }

    @hidden
    action do_give() {
        facts = give.execute(index);
    }

    @hidden
    action neither() { }

    @hidden
    table operation {
        key = { op : ternary @name("op"); }
        actions = { do_forget; do_agree; do_give; neither; }
        const entries = {
            CapOp.ask    : do_forget();
            CapOp.end    : do_forget();
            CapOp.agree  : do_agree();
            CapOp.client : do_give();
            CapOp.server : do_give();
        }
        const default_action = neither();
    }

    apply {
        operation.apply();
    }
}

// Computes the window scale of a segment's sender, the summand `rest` that rounds bytes up to a window's unit, and the least cap,
// `floor`: four segments of the smaller of the two segment sizes, a multiple of 64 bytes. If one side announces no scale, windows
// of both sides are unscaled (RFC 7323, section 1.3). `agreed` is `op`, or CapOp.none if one of the two cells is not written.
control CapScale(in CapOp op, in window_facts_t client, in window_facts_t server, out CapOp agreed, out bit<8> scale, out bit<32> rest,
                 out bit<32> floor) {
    window_facts_t least;

    @hidden
    action lesser() {
        least = min(client, server);
    }

    @hidden
    action widen() {
        @in_hash { floor = 14w0 ++ least[15:4] ++ 6w0; }
    }

    @hidden
    action is(bit<8> value, bit<32> below) {
        scale = value;
        rest = below;
        agreed = op;
    }

    @hidden
    action not_agreed() {
        agreed = CapOp.none;
        scale = 0;
        rest = 0;
    }

    #define SCALES(scale_, rest_) \
            (CapOp.client, scale_ &&& 0x000f, _) : is(scale_, rest_); \
            (CapOp.server, _, scale_ &&& 0x000f) : is(scale_, rest_);

    @hidden
    table scales {
        key = {
            op     : ternary @name("op");
            client : ternary @name("client");
            server : ternary @name("server");
        }
        actions = { is; not_agreed; }
        const entries = {
            (CapOp.agree, _, _)   : is(0, 0);
            (_, 0 &&& 0xfff0, _)  : not_agreed();
            (_, _, 0 &&& 0xfff0)  : not_agreed();
            (_, 15 &&& 0x000f, _) : is(0, 0);
            (_, _, 15 &&& 0x000f) : is(0, 0);
            SCALES(0, 0)
            SCALES(1, 0x1)
            SCALES(2, 0x3)
            SCALES(3, 0x7)
            SCALES(4, 0xf)
            SCALES(5, 0x1f)
            SCALES(6, 0x3f)
            SCALES(7, 0x7f)
            SCALES(8, 0xff)
            SCALES(9, 0x1ff)
            SCALES(10, 0x3ff)
            SCALES(11, 0x7ff)
            SCALES(12, 0xfff)
            SCALES(13, 0x1fff)
            SCALES(14, 0x3fff)
        }
        const default_action = not_agreed();
    }

    apply {
        lesser();
        scales.apply();
        widen();
    }
}

#endif
