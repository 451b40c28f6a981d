// A v1model program that has every kind of P4Runtime entity, for the tests of the server.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_h { bit<9> ingress_port; bit<7> reason; }
@controller_header("packet_out")
header packet_out_h { bit<9> egress_port; bit<4> flags; bit<3> pad; }
header ethernet_h { bit<48> dst; bit<48> src; bit<16> ethertype; }
header label_h { bit<32> value; bit<16> next; }

struct headers_t {
    packet_in_h packet_in;
    packet_out_h packet_out;
    ethernet_h ethernet;
    label_h label;
}
struct learn_t { bit<48> src; bit<9> port; }
struct meta_t { bit<16> hash; bit<2> color; bit<2> direct_color; }

const bit<9> CPU_PORT = 510;

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @id(0x03000001) value_set<bit<16>>(4) labelled;
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu { packet.extract(hdr.packet_out); transition ethernet; }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            labelled: label;
            default: accept;
        }
    }
    state label { packet.extract(hdr.label); transition accept; }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply {} }
control Update(inout headers_t hdr, inout meta_t meta) { apply {} }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @id(0x12000001) counter(8, CounterType.packets_and_bytes) by_port;
    @id(0x14000001) meter(8, MeterType.packets) limit;
    @id(0x16000001) register<bit<48>>(300000) last_source;
    @id(0x16000002) register<bit<32>>(16) seen;
    @id(0x16000003) register<int<8>>(2) balance;
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    direct_meter<bit<2>>(MeterType.bytes) exact_rate;
    @id(0x11000001) action_selector(HashAlgorithm.crc16, 64, 16) pool;
    @id(0x11000002) action_profile(16) plain_pool;

    @id(0x01000001) action drop() { mark_to_drop(std); }
    @id(0x01000002) action forward(bit<9> port) { std.egress_spec = port; }
    @id(0x01000003) action broadcast(bit<16> group) { std.mcast_grp = group; }
    @id(0x01000004) action to_controller(bit<7> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = reason;
        std.egress_spec = CPU_PORT;
    }
    @id(0x01000005) action learn() {
        digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port });
        mark_to_drop(std);
    }
    @id(0x01000006) action mirror(bit<9> port) { std.egress_spec = port; clone(CloneType.I2E, 7); }
    @id(0x01000007) action count_direct(bit<9> port) {
        exact_hits.count();
        exact_rate.read(meta.direct_color);
        std.egress_spec = port;
    }

    @id(0x02000001) table exact_t {
        key = { hdr.ethernet.dst: exact @name("dst"); }
        actions = { count_direct; @tableonly forward; @defaultonly drop; NoAction; }
        default_action = NoAction();
        counters = exact_hits;
        meters = exact_rate;
        size = 4;
        support_timeout = true;
    }
    @id(0x02000002) table lpm_t {
        key = { hdr.label.value: lpm @name("label"); }
        actions = { forward; drop; }
        const default_action = drop();
        size = 1024;
    }
    @id(0x02000003) table ternary_t {
        key = {
            hdr.ethernet.src: ternary @name("src");
            std.ingress_port: optional @name("port");
            hdr.ethernet.ethertype: range @name("type");
        }
        actions = { forward; broadcast; to_controller; learn; mirror; NoAction; }
        default_action = NoAction();
        size = 16384;
    }
    @id(0x02000004) table pool_t {
        key = { hdr.ethernet.dst: exact @name("dst"); hdr.ethernet.src: selector; meta.hash: selector; }
        actions = { forward; drop; NoAction; }
        implementation = pool;
        size = 16;
    }
    @id(0x02000005) table plain_pool_t {
        key = { hdr.ethernet.dst: exact @name("dst"); }
        actions = { forward; drop; NoAction; }
        implementation = plain_pool;
        size = 16;
    }
    @id(0x02000006) table const_t {
        key = { hdr.ethernet.ethertype: exact @name("type"); }
        actions = { forward; NoAction; }
        const default_action = NoAction();
        const entries = {
            0xbeef: forward(9);
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            by_port.count((bit<32>) (bit<3>) std.ingress_port[2:0]);
            limit.execute_meter((bit<32>) (bit<3>) std.ingress_port[2:0], meta.color);
            last_source.write((bit<32>) std.ingress_port, hdr.ethernet.src);
            bit<32> count;
            seen.read(count, (bit<32>) std.ingress_port[3:0]);
            seen.write((bit<32>) std.ingress_port[3:0], count + 1);
            balance.write(0, -1);
            std.egress_spec = 511;
            exact_t.apply();
            if (hdr.label.isValid()) { lpm_t.apply(); }
            ternary_t.apply();
            pool_t.apply();
            plain_pool_t.apply();
            const_t.apply();
            if (meta.color == 2) { mark_to_drop(std); }
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.label);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
