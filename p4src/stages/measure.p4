// Measure: computes by how many bytes a packet is shorter than its headers state, and the length of its payload.
//
//   reads  ipv4, tcp, udp, icmp, ipv4_room
//   writes lengths, payload
//
// A saturating subtraction (|-|) determines which of two lengths is larger, because the hardware can test whether a field is
// larger than a constant, but not whether it is larger than another field. Each action does one arithmetic step.
#ifndef SLUICE_STAGES_MEASURE_P4
#define SLUICE_STAGES_MEASURE_P4

#include <externs/lengths.p4>

control Measure(in headers_t hdr, inout metadata_t meta) {
    Bytes() of_header;
    Bytes() of_tcp_header;
    FrameMissing() frame;
    TransportMissing() transport;

    bit<16> header_length;
    bit<16> tcp_length;

    @hidden
    action open_packet() {
        meta.lengths.header_missing = header_length |-| hdr.ipv4.total_length;
        meta.lengths.body = hdr.ipv4.total_length - header_length;
    }

    apply {
        of_header.apply(hdr.ipv4.ihl, header_length);
        of_tcp_header.apply(hdr.tcp.data_offset, tcp_length);
        frame.apply(hdr, meta);
        open_packet();
        transport.apply(hdr, tcp_length, meta);
    }
}

#endif
