// Tests parser features: lookahead, advance, masks over several fields, stack.last and lastIndex, errors.
#include <core.p4>
#include <v1model.p4>

header kind_h {
    bit<8> kind;
    bit<8> length;
}
header item_h {
    bit<8> flags;
    bit<8> value;
}
header answer_h {
    bit<8>  way;
    bit<8>  failure;
    bit<72> ahead;
    bit<32> last;
}

struct headers_t {
    answer_h answer;
    kind_h   kind;
    item_h[3] items;
}
struct metadata_t {
    bit<8>  way;
    bit<72> ahead;
    bit<32> last;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(packet.lookahead<bit<4>>()) {
            1       : items;
            2       : skip;
            3       : peek;
            4       : two;
            5       : bytes;
            6       : odd_bytes;
            default : accept;
        }
    }
    /// Each item has a flag (0x80) that is set if another item follows.
    state items {
        packet.extract(hdr.kind);
        meta.way = 1;
        transition item;
    }
    state item {
        packet.extract(hdr.items.next);
        meta.last = hdr.items.lastIndex;
        transition select(hdr.items.last.flags) {
            0x80 &&& 0x80 : item;
            default       : accept;
        }
    }
    /// Skips two bytes, and then as many half bytes as the field `length` of the packet states.
    state skip {
        packet.extract(hdr.kind);
        packet.advance(16);
        packet.advance((bit<32>)hdr.kind.length * 4);
        meta.way = 2;
        meta.ahead = (bit<72>)packet.lookahead<bit<16>>();
        transition accept;
    }
    /// A lookahead of 68 bits, which are more than a word and do not end at a byte boundary.
    state peek {
        meta.way = 3;
        meta.ahead = (bit<72>)packet.lookahead<bit<68>>();
        transition accept;
    }
    /// Lookaheads of whole bytes: 9 bytes exceed a word (`bytes`), and no integer type has 7 bytes (`odd_bytes`).
    state bytes {
        packet.extract(hdr.kind);
        meta.way = 7;
        meta.ahead = packet.lookahead<bit<72>>();
        transition accept;
    }
    state odd_bytes {
        meta.way = 8;
        meta.ahead = (bit<72>)packet.lookahead<bit<56>>();
        transition accept;
    }
    state two {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind, hdr.kind.length) {
            (0x40 &&& 0xfc, 0x00 &&& 0x0f) : way4;
            (_, 5 .. 9)                    : way5;
            (0x4f, _)                      : way6;
            default                        : accept;
        }
    }
    state way4 { meta.way = 4; transition accept; }
    state way5 { meta.way = 5; transition accept; }
    state way6 { meta.way = 6; transition accept; }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.answer.setValid();
        hdr.answer.way = meta.way;
        hdr.answer.ahead = meta.ahead;
        hdr.answer.last = meta.last;
        if (standard.parser_error == error.StackOutOfBounds) { hdr.answer.failure = 1; }
        else if (standard.parser_error == error.PacketTooShort) { hdr.answer.failure = 2; }
        else if (standard.parser_error == error.ParserInvalidArgument) { hdr.answer.failure = 3; }
        else if (standard.parser_error != error.NoError) { hdr.answer.failure = 9; }
        standard.egress_spec = 1;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
