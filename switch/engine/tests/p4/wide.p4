// Computes with fields of more than 64 bits, in every form that needs several words.
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<8> what;
    bit<8> by;
}
header numbers_h {
    bit<128> a;
    bit<128> b;
    int<200> c;
    int<200> d;
    bit<72>  e;
    bit<8>   f;
}
header item_h { bit<96> value; }

struct headers_t {
    head_h    head;
    numbers_h numbers;
    item_h[2] items;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.head);
        packet.extract(hdr.numbers);
        packet.extract(hdr.items[0]);
        packet.extract(hdr.items[1]);
        transition accept;
    }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> what = hdr.head.what;
        numbers_h n = hdr.numbers;
        if (what == 0) {
            hdr.numbers.a = n.a + n.b;
            hdr.numbers.c = n.c + n.d;
        } else if (what == 1) {
            hdr.numbers.a = n.a - n.b;
            hdr.numbers.c = n.c - n.d;
        } else if (what == 2) {
            hdr.numbers.a = n.a * n.b;
            hdr.numbers.c = n.c * n.d;
        } else if (what == 3) {
            hdr.numbers.a = n.a |+| n.b;
            hdr.numbers.c = n.c |+| n.d;
        } else if (what == 4) {
            hdr.numbers.a = n.a |-| n.b;
            hdr.numbers.c = n.c |-| n.d;
        } else if (what == 5) {
            hdr.numbers.a = n.a << hdr.head.by;
            hdr.numbers.c = n.c << hdr.head.by;
        } else if (what == 6) {
            hdr.numbers.a = n.a >> hdr.head.by;
            hdr.numbers.c = n.c >> hdr.head.by;
        } else if (what == 7) {
            hdr.numbers.a = ~n.a & (n.b | (bit<128>)n.e);
            hdr.numbers.c = ~n.c ^ (n.d & -n.c);
        } else if (what == 8) {
            hdr.numbers.a = n.a < n.b ? n.b - n.a : n.a - n.b;
            hdr.numbers.c = n.c < n.d ? n.d - n.c : n.c - n.d;
        } else if (what == 9) {
            hdr.numbers.e = n.a[99:28];
            hdr.numbers.f = (n.a > n.b ? 8w1 : 8w0) | (n.c > n.d ? 8w2 : 8w0) | ((bit<200>)n.c >= (bit<200>)n.d ? 8w4 : 8w0);
        } else if (what == 10) {
            hdr.numbers.a[107:36] = n.e;
            hdr.numbers.c = (int<200>)(int<128>)n.b;
        } else if (what == 11) {
            hdr.numbers.f = (bit<8>)((n.a + n.b) >> hdr.head.by);
            hdr.numbers.e = n.e + n.e * (bit<72>)hdr.head.by;
        } else if (what == 12) {
            hdr.items[1].value = hdr.items[hdr.head.by].value * 3 + hdr.items[0].value;
        } else if (what == 13) {
            hdr.numbers.a = (hdr.items[0] == hdr.items[1] ? n.a + n.b : n.a - n.b);
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
