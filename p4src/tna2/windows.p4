// Shifts a window left or right by the shift in a splice turn. The result is at most 65,535, and 0 only if the window was 0. An
// action shifts by a constant, and a stage has only 32 actions. So the first table shifts by 4, 8 or 12 bits, and the second by
// the rest.
#ifndef SLUICE_TNA2_WINDOWS_P4
#define SLUICE_TNA2_WINDOWS_P4

#define SHIFT(name_, operator_, bits_) \
    @hidden \
    action name_() { \
        hdr.tcp.window = hdr.tcp.window operator_ bits_; \
    }

control Windows(inout headers_t hdr, in turn_t turn) {
    bit<1> is_done = 0;

    SHIFT(up_4, <<, 4)
    SHIFT(up_8, <<, 8)
    SHIFT(up_12, <<, 12)
    SHIFT(down_4, >>, 4)
    SHIFT(down_8, >>, 8)
    SHIFT(down_12, >>, 12)

    SHIFT(up_1, <<, 1)
    SHIFT(up_2, <<, 2)
    SHIFT(up_3, <<, 3)
    SHIFT(down_1, >>, 1)
    SHIFT(down_2, >>, 2)
    SHIFT(down_3, >>, 3)

    @hidden
    action all() {
        hdr.tcp.window = 0xffff;
        is_done = 1;
    }

    @hidden
    action smallest() {
        hdr.tcp.window = 1;
        is_done = 1;
    }

    @hidden
    action neither() { }

    @hidden
    table first {
        key = {
            turn           : ternary @name("turn");
            hdr.tcp.window : ternary @name("window");
        }
        actions = { up_4; up_8; up_12; down_4; down_8; down_12; all; smallest; neither; }
        const entries = {
            (0x8400 &&& 0xfc00, 0 &&& 0x8000) : neither();
            (0x8400 &&& 0xfc00, _) : all();
            (0x8800 &&& 0xfc00, 0 &&& 0xc000) : neither();
            (0x8800 &&& 0xfc00, _) : all();
            (0x8c00 &&& 0xfc00, 0 &&& 0xe000) : neither();
            (0x8c00 &&& 0xfc00, _) : all();
            (0x9000 &&& 0xfc00, 0 &&& 0xf000) : up_4();
            (0x9000 &&& 0xfc00, _) : all();
            (0x9400 &&& 0xfc00, 0 &&& 0xf800) : up_4();
            (0x9400 &&& 0xfc00, _) : all();
            (0x9800 &&& 0xfc00, 0 &&& 0xfc00) : up_4();
            (0x9800 &&& 0xfc00, _) : all();
            (0x9c00 &&& 0xfc00, 0 &&& 0xfe00) : up_4();
            (0x9c00 &&& 0xfc00, _) : all();
            (0xa000 &&& 0xfc00, 0 &&& 0xff00) : up_8();
            (0xa000 &&& 0xfc00, _) : all();
            (0xa400 &&& 0xfc00, 0 &&& 0xff80) : up_8();
            (0xa400 &&& 0xfc00, _) : all();
            (0xa800 &&& 0xfc00, 0 &&& 0xffc0) : up_8();
            (0xa800 &&& 0xfc00, _) : all();
            (0xac00 &&& 0xfc00, 0 &&& 0xffe0) : up_8();
            (0xac00 &&& 0xfc00, _) : all();
            (0xb000 &&& 0xfc00, 0 &&& 0xfff0) : up_12();
            (0xb000 &&& 0xfc00, _) : all();
            (0xb400 &&& 0xfc00, 0 &&& 0xfff8) : up_12();
            (0xb400 &&& 0xfc00, _) : all();
            (0xb800 &&& 0xfc00, 0 &&& 0xfffc) : up_12();
            (0xb800 &&& 0xfc00, _) : all();
            (0xfc00 &&& 0xfc00, 0) : neither();
            (0xfc00 &&& 0xfc00, 0 &&& 0xfffe) : smallest();
            (0xfc00 &&& 0xfc00, _) : neither();
            (0xf800 &&& 0xfc00, 0) : neither();
            (0xf800 &&& 0xfc00, 0 &&& 0xfffc) : smallest();
            (0xf800 &&& 0xfc00, _) : neither();
            (0xf400 &&& 0xfc00, 0) : neither();
            (0xf400 &&& 0xfc00, 0 &&& 0xfff8) : smallest();
            (0xf400 &&& 0xfc00, _) : neither();
            (0xf000 &&& 0xfc00, 0) : neither();
            (0xf000 &&& 0xfc00, 0 &&& 0xfff0) : smallest();
            (0xf000 &&& 0xfc00, _) : down_4();
            (0xec00 &&& 0xfc00, 0) : neither();
            (0xec00 &&& 0xfc00, 0 &&& 0xffe0) : smallest();
            (0xec00 &&& 0xfc00, _) : down_4();
            (0xe800 &&& 0xfc00, 0) : neither();
            (0xe800 &&& 0xfc00, 0 &&& 0xffc0) : smallest();
            (0xe800 &&& 0xfc00, _) : down_4();
            (0xe400 &&& 0xfc00, 0) : neither();
            (0xe400 &&& 0xfc00, 0 &&& 0xff80) : smallest();
            (0xe400 &&& 0xfc00, _) : down_4();
            (0xe000 &&& 0xfc00, 0) : neither();
            (0xe000 &&& 0xfc00, 0 &&& 0xff00) : smallest();
            (0xe000 &&& 0xfc00, _) : down_8();
            (0xdc00 &&& 0xfc00, 0) : neither();
            (0xdc00 &&& 0xfc00, 0 &&& 0xfe00) : smallest();
            (0xdc00 &&& 0xfc00, _) : down_8();
            (0xd800 &&& 0xfc00, 0) : neither();
            (0xd800 &&& 0xfc00, 0 &&& 0xfc00) : smallest();
            (0xd800 &&& 0xfc00, _) : down_8();
            (0xd400 &&& 0xfc00, 0) : neither();
            (0xd400 &&& 0xfc00, 0 &&& 0xf800) : smallest();
            (0xd400 &&& 0xfc00, _) : down_8();
            (0xd000 &&& 0xfc00, 0) : neither();
            (0xd000 &&& 0xfc00, 0 &&& 0xf000) : smallest();
            (0xd000 &&& 0xfc00, _) : down_12();
            (0xcc00 &&& 0xfc00, 0) : neither();
            (0xcc00 &&& 0xfc00, 0 &&& 0xe000) : smallest();
            (0xcc00 &&& 0xfc00, _) : down_12();
            (0xc800 &&& 0xfc00, 0) : neither();
            (0xc800 &&& 0xfc00, 0 &&& 0xc000) : smallest();
            (0xc800 &&& 0xfc00, _) : down_12();
        }
        const default_action = neither();
    }

    @hidden
    table second {
        key = {
            is_done : ternary @name("done");
            turn    : ternary @name("turn");
        }
        actions = { up_1; up_2; up_3; down_1; down_2; down_3; neither; }
        const entries = {
            (0, 0x8400 &&& 0xfc00) : up_1();
            (0, 0x8800 &&& 0xfc00) : up_2();
            (0, 0x8c00 &&& 0xfc00) : up_3();
            (0, 0x9400 &&& 0xfc00) : up_1();
            (0, 0x9800 &&& 0xfc00) : up_2();
            (0, 0x9c00 &&& 0xfc00) : up_3();
            (0, 0xa400 &&& 0xfc00) : up_1();
            (0, 0xa800 &&& 0xfc00) : up_2();
            (0, 0xac00 &&& 0xfc00) : up_3();
            (0, 0xb400 &&& 0xfc00) : up_1();
            (0, 0xb800 &&& 0xfc00) : up_2();
            (0, 0xfc00 &&& 0xfc00) : down_1();
            (0, 0xf800 &&& 0xfc00) : down_2();
            (0, 0xf400 &&& 0xfc00) : down_3();
            (0, 0xec00 &&& 0xfc00) : down_1();
            (0, 0xe800 &&& 0xfc00) : down_2();
            (0, 0xe400 &&& 0xfc00) : down_3();
            (0, 0xdc00 &&& 0xfc00) : down_1();
            (0, 0xd800 &&& 0xfc00) : down_2();
            (0, 0xd400 &&& 0xfc00) : down_3();
            (0, 0xcc00 &&& 0xfc00) : down_1();
            (0, 0xc800 &&& 0xfc00) : down_2();
        }
        const default_action = neither();
    }

    apply {
        first.apply();
        second.apply();
    }
}

#endif
