// Tests registers of several widths, counters, meters, hashes, random numbers, digests, checksums, value sets, varbit.
#include <core.p4>
#include <v1model.p4>

error { TooLong }

header request_h {
    bit<8>  what;
    bit<32> index;
    bit<8>  length;
}
header options_h { varbit<64> data; }
header answer_h {
    bit<64>  value;
    bit<128> wide;
    bit<8>   flags;
}
header sum_h {
    bit<16> sum;
    bit<32> covered;
}

struct headers_t {
    request_h request;
    options_h options;
    sum_h     sum;
    answer_h  answer;
}

struct learnt_t {
    bit<32> index;
    bit<9>  port;
}

struct metadata_t { bit<1> in_set; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<8>>(4) wanted;

    state start {
        packet.extract(hdr.request);
        verify(hdr.request.length <= 8, error.TooLong);
        packet.extract(hdr.options, (bit<32>)hdr.request.length * 8);
        packet.extract(hdr.sum);
        transition select(hdr.request.what) {
            wanted : in_set;
            default : accept;
        }
    }
    state in_set {
        meta.in_set = 1;
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum(hdr.sum.isValid(), { hdr.options.data, hdr.sum.covered }, hdr.sum.sum, HashAlgorithm.csum16); }
}
control U(inout headers_t hdr, inout metadata_t meta) {
    apply { update_checksum(hdr.sum.isValid(), { hdr.options.data, hdr.sum.covered }, hdr.sum.sum, HashAlgorithm.csum16); }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<7>>(10) narrow;
    register<bit<64>>(10) full;
    register<bit<128>>(10) wide;
    counter(10, CounterType.packets_and_bytes) packets;
    meter(10, MeterType.packets) rate;
    meter(10, MeterType.bytes) byte_rate;

    apply {
        hdr.answer.setValid();
        hdr.answer.flags = (bit<8>)(meta.in_set ++ standard.checksum_error ++ (bit<1>)(bit<8>)(standard.parser_error == error.TooLong ? 8w1 : 8w0));
        bit<32> index = hdr.request.index;
        if (hdr.request.what == 1) {
            bit<7> old;
            narrow.read(old, index);
            narrow.write(index, old + 1);
            hdr.answer.value = (bit<64>)old;
        } else if (hdr.request.what == 2) {
            full.read(hdr.answer.value, index);
            full.write(index, hdr.answer.value - 1);
        } else if (hdr.request.what == 3) {
            wide.read(hdr.answer.wide, index);
            wide.write(index, hdr.answer.wide + 0x1_0000_0000_0000_0001);
        } else if (hdr.request.what == 4) {
            packets.count(index);
        } else if (hdr.request.what == 5) {
            bit<2> colour;
            rate.execute_meter(index, colour);
            hdr.answer.value = (bit<64>)colour;
        } else if (hdr.request.what == 6) {
            bit<2> colour;
            byte_rate.execute_meter(index, colour);
            hdr.answer.value = (bit<64>)colour;
        } else if (hdr.request.what == 7) {
            hash(hdr.answer.value, HashAlgorithm.crc16, 16w5, { index, hdr.request.what }, 32w1000);
        } else if (hdr.request.what == 8) {
            random(hdr.answer.value, 10, 20);
        } else if (hdr.request.what == 9) {
            digest<learnt_t>(1, { index, standard.ingress_port });
        } else if (hdr.request.what == 10) {
            assert(index != 3);
        } else if (hdr.request.what == 11) {
            hdr.answer.value = (bit<64>)standard.ingress_global_timestamp;
        }
        standard.egress_spec = 1;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
