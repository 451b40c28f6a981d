// Groups for every hash algorithm, used by `python -m tools.differential --selectors`: created member by member, and one-shot.
//
// A frame contains the number of a table and of a group. The hash is over the 51 bits of the header's remaining fields, without
// `unused`. The selected member sends the frame by the member's port.
#include <core.p4>
#include <v1model.p4>

header key_h {
    bit<8>  number;
    bit<8>  group;
    bit<32> source;
    bit<3>  kind;
    bit<5>  unused;
    bit<16> port;
}

struct headers_t { key_h key; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

#define CHOICE(NAME, ALGORITHM) \
    action_selector(HashAlgorithm.ALGORITHM, 4096, 16) NAME##_profile; \
    table NAME { \
        key = { \
            hdr.key.group : exact @name("group"); \
            hdr.key.source : selector; \
            hdr.key.kind : selector; \
            hdr.key.port : selector; \
        } \
        actions = { forward; NoAction; } \
        implementation = NAME##_profile; \
        size = 1024; \
    }

#define BOTH(NAME) \
    CHOICE(NAME, NAME) \
    CHOICE(NAME##_one_shot, NAME)

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) { standard.egress_spec = port; }

    BOTH(crc32)
    BOTH(crc32_custom)
    BOTH(crc16)
    BOTH(crc16_custom)
    BOTH(csum16)
    BOTH(xor16)
    BOTH(identity)

    apply {
        mark_to_drop(standard);
        if (hdr.key.number == 0) { crc32.apply(); }
        else if (hdr.key.number == 1) { crc32_custom.apply(); }
        else if (hdr.key.number == 2) { crc16.apply(); }
        else if (hdr.key.number == 3) { crc16_custom.apply(); }
        else if (hdr.key.number == 4) { csum16.apply(); }
        else if (hdr.key.number == 5) { xor16.apply(); }
        else if (hdr.key.number == 6) { identity.apply(); }
        else if (hdr.key.number == 7) { crc32_one_shot.apply(); }
        else if (hdr.key.number == 8) { crc32_custom_one_shot.apply(); }
        else if (hdr.key.number == 9) { crc16_one_shot.apply(); }
        else if (hdr.key.number == 10) { crc16_custom_one_shot.apply(); }
        else if (hdr.key.number == 11) { csum16_one_shot.apply(); }
        else if (hdr.key.number == 12) { xor16_one_shot.apply(); }
        else if (hdr.key.number == 13) { identity_one_shot.apply(); }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.key); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
