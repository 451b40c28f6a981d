// Converts windows to bytes and bytes to windows. There is one action for each scale, because an action shifts by a constant.
#ifndef SLUICE_TNA2_CAP_WINDOW_P4
#define SLUICE_TNA2_CAP_WINDOW_P4

#define CAP_SHIFT(name_, field_, operator_, bits_) \
    @hidden \
    action name_() { \
        field_ = field_ operator_ bits_; \
    }

#define CAP_SHIFTS(field_, operator_) \
    CAP_SHIFT(by_1, field_, operator_, 1) \
    CAP_SHIFT(by_2, field_, operator_, 2) \
    CAP_SHIFT(by_3, field_, operator_, 3) \
    CAP_SHIFT(by_4, field_, operator_, 4) \
    CAP_SHIFT(by_5, field_, operator_, 5) \
    CAP_SHIFT(by_6, field_, operator_, 6) \
    CAP_SHIFT(by_7, field_, operator_, 7) \
    CAP_SHIFT(by_8, field_, operator_, 8) \
    CAP_SHIFT(by_9, field_, operator_, 9) \
    CAP_SHIFT(by_10, field_, operator_, 10) \
    CAP_SHIFT(by_11, field_, operator_, 11) \
    CAP_SHIFT(by_12, field_, operator_, 12) \
    CAP_SHIFT(by_13, field_, operator_, 13) \
    CAP_SHIFT(by_14, field_, operator_, 14) \
    @hidden \
    action by_0() { } \
    @hidden \
    table shifts { \
        key = { scale : exact @name("scale"); } \
        actions = { by_0; by_1; by_2; by_3; by_4; by_5; by_6; by_7; by_8; by_9; by_10; by_11; by_12; by_13; by_14; } \
        const entries = { \
            1  : by_1(); \
            2  : by_2(); \
            3  : by_3(); \
            4  : by_4(); \
            5  : by_5(); \
            6  : by_6(); \
            7  : by_7(); \
            8  : by_8(); \
            9  : by_9(); \
            10 : by_10(); \
            11 : by_11(); \
            12 : by_12(); \
            13 : by_13(); \
            14 : by_14(); \
        } \
        const default_action = by_0(); \
    }

// Computes the size in bytes of a segment's window.
control CapBytes(in headers_t hdr, in bit<8> scale, out bit<32> bytes) {
    @hidden
    action widen() {
        @in_hash { bytes = 16w0 ++ hdr.tcp.window; }
    }

    CAP_SHIFTS(bytes, <<)

    apply {
        widen();
        shifts.apply();
    }
}

// Writes into a segment's window field how many bytes the receiver of the segment may still send. A client's segment that
// acknowledges more than the server's stored right edge is not changed.
control CapWindow(inout headers_t hdr, in CapOp op, in compared_t known, in bit<8> scale, inout bit<32> remaining, inout bit<1> changed) {
    CAP_SHIFTS(remaining, >>)

    @hidden
    action change() {
        changed = 1;
    }

    @hidden
    action neither() { }

    @hidden
    @no_gateway_conversion
    table changes {
        key = {
            op    : ternary @name("op");
            known : ternary @name("known");
        }
        actions = { change; neither; }
        const entries = {
            (CapOp.client, EQUAL)             : change();
            (CapOp.client, NOT_LATER)         : change();
            (CapOp.client, NOT_LATER_WRAPPED) : change();
            (CapOp.server, _)                 : change();
        }
        const default_action = neither();
    }

    @hidden
    action narrow() {
        @in_hash { hdr.tcp.window = remaining[15:0]; }
    }

    apply {
        changes.apply();
        shifts.apply();
        if (changed == 1) {
            narrow();
        }
    }
}

#endif
