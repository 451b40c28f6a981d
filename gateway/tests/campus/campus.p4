// A small switch program for the gateway's tests, with features that sluice's own program lacks: ternary and range keys with
// priorities, direct counters and meters, idle timeouts, an action selector, a parser value set, multicast, mirroring, a
// register, a digest, and packets from and to a controller.
//
// `make -C gateway/tests/campus` compiles the program; p4c-barefoot and bfas must be on PATH.
#include <core.p4>
#include <tna.p4>

typedef bit<9>  port_t;
typedef bit<48> mac_t;
typedef bit<32> ipv4_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
// Value of the lowest bit of a port's metadata for the CPU port, whose frames begin with the packet-out header.
const bit<1> FROM_CPU = 1;
const bit<3> NEW_HOST = 1;      // value of digest_type for a new host
const bit<3> MIRRORED = 1;      // value of mirror_type for a mirrored frame
const bit<8> RED = 3;

@controller_header("packet_in")
header packet_in_h {
    port_t ingress_port;
    bit<7> unused;
}

@controller_header("packet_out")
header packet_out_h {
    port_t egress_port;
    bit<7> unused;
}

header ethernet_h {
    mac_t   destination;
    mac_t   source;
    bit<16> type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  source;
    ipv4_t  destination;
}

// Bridge header in front of every frame between ingress and egress, because a mirrored frame must have a header there.
header internal_h {
    bit<8> type;
}

struct headers_t {
    internal_h   internal;
    packet_in_h  packet_in;
    packet_out_h packet_out;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
}

struct metadata_t {
    port_t     ingress_port;
    MirrorId_t session;
    bit<8>     mirrored;
    bit<8>     colour;
}

struct new_host_t {
    mac_t  source;
    port_t port;
}

struct egress_headers_t { }
struct egress_metadata_t { internal_h internal; }

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    // Further EtherTypes of frames that are parsed as IPv4, in addition to 0x0800.
    value_set<bit<16>>(4) ipv4_types;

    state start {
        packet.extract(intrinsic);
        meta.ingress_port = intrinsic.ingress_port;
        meta.session = 0;
        meta.mirrored = 1;
        meta.colour = 0;
        bit<64> port = packet.lookahead<bit<64>>();
        packet.advance(PORT_METADATA_SIZE);
        transition select(port[0:0]) {
            FROM_CPU : parse_packet_out;
            default  : parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4 : parse_ipv4;
            ipv4_types     : parse_ipv4;
            default        : accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    // Number of received frames of each ingress port.
    Register<bit<32>, port_t>(512) arrivals;
    RegisterAction<bit<32>, port_t, bit<32>>(arrivals) arrive = {
        void apply(inout bit<32> count) { count = count + 1; }
    };

    // Known source addresses of each ingress port. An idle timeout reports an idle address, and a digest a new address.
    action known() { }
    action learn() { for_deparser.digest_type = NEW_HOST; }
    table hosts {
        key = { hdr.ethernet.source : exact; meta.ingress_port : exact; }
        actions = { known; @defaultonly learn; }
        const default_action = learn();
        size = 1024;
        idle_timeout = true;
    }

    // Access rules for IPv4 packets.
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) acl_hits;
    action permit() { acl_hits.count(); }
    action deny() { acl_hits.count(); for_deparser.drop_ctl = 1; }
    action punt() { acl_hits.count(); for_tm.copy_to_cpu = 1; hdr.packet_in.setValid(); hdr.packet_in.ingress_port = meta.ingress_port; }
    action mirror(MirrorId_t session) { acl_hits.count(); for_deparser.mirror_type = MIRRORED; meta.session = session; }
    table acl {
        key = { hdr.ipv4.source : ternary; hdr.ipv4.protocol : ternary; hdr.ipv4.total_length : range; }
        actions = { permit; deny; punt; mirror; }
        default_action = permit();
        counters = acl_hits;
        size = 512;
    }

    // Rate limits of hosts, by source address.
    DirectMeter(MeterType_t.BYTES) rate;
    action limited() { meta.colour = (bit<8>)rate.execute(); }
    table limits {
        key = { hdr.ipv4.source : exact; }
        actions = { limited; @defaultonly NoAction; }
        const default_action = NoAction();
        meters = rate;
        size = 256;
    }

    // IPv4 routes: a hash of source address and identification selects one port of a group.
    Hash<bit<14>>(HashAlgorithm_t.CRC16) hash;
    ActionProfile(64) ports;
    ActionSelector(ports, hash, SelectorMode_t.FAIR, 16, 16) uplinks;
    action send(port_t port) { for_tm.ucast_egress_port = port; }
    table routes {
        key = { hdr.ipv4.destination : lpm; hdr.ipv4.source : selector; hdr.ipv4.identification : selector; }
        actions = { send; NoAction; }
        const default_action = NoAction();
        implementation = uplinks;
        size = 256;
    }

    // Egress ports of frames that are not parsed as IPv4, by destination address.
    action flood(bit<16> group) { for_tm.mcast_grp_a = group; }
    action forward(port_t port) { for_tm.ucast_egress_port = port; }
    table stations {
        key = { hdr.ethernet.destination : exact; }
        actions = { flood; forward; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        hdr.internal.setValid();
        hdr.internal.type = 0;
        if (hdr.packet_out.isValid()) {
            for_tm.ucast_egress_port = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            arrive.execute(meta.ingress_port);
            hosts.apply();
            if (hdr.ipv4.isValid()) {
                acl.apply();
                limits.apply();
                routes.apply();
            } else {
                stations.apply();
            }
            if (meta.colour == RED) { for_deparser.drop_ctl = 1; }
        }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Digest<new_host_t>(NEW_HOST) new_host;
    Mirror() mirror;  // without the type MIRRORED: p4c at commit 34b86e9 rejects it with "Inconsistent mirror selectors"

    apply {
        if (for_deparser.digest_type == NEW_HOST) { new_host.pack({hdr.ethernet.source, meta.ingress_port}); }
        if (for_deparser.mirror_type == MIRRORED) { mirror.emit<internal_h>(meta.session, {meta.mirrored}); }
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(meta.internal);
        transition accept;
    }
}

control Egress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { packet.emit(hdr); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
