// v1model checksums: verifies and computes the IPv4 header's checksum, and adjusts the checksums of TCP, of UDP and of ICMP
// errors by the words that changed, because the switch does not read the payload: HC' = ~(~HC + ~m + m')
// (RFC 1624, eq. 3).
//
//   reads  ipv4, ipv4_options, tcp, udp, icmp, inner_ipv4, inner_transport, kept_options
//          endpoint, endpoint_port, replaced, replaced_port, respliced, icmp_error: the words that changed
//          rebuilt, reset: which segments get a newly computed checksum
//   writes ipv4.checksum, tcp.checksum, udp.checksum, icmp.checksum, inner_ipv4.checksum, inner_transport.fourth
#ifndef SLUICE_V1MODEL_CHECKSUMS_P4
#define SLUICE_V1MODEL_CHECKSUMS_P4

#include "words.p4"

control SluiceVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.data },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control SluiceComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4_options.data },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        // Computes the TCP checksum of a SYN or SYN-ACK whose options were replaced.
        update_checksum_with_payload(meta.rebuilt != 0,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.rebuilt,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
              hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.cwr, hdr.tcp.ece, hdr.tcp.urg, hdr.tcp.ack, hdr.tcp.psh,
              hdr.tcp.rst, hdr.tcp.syn, hdr.tcp.fin, hdr.tcp.window, hdr.tcp.urgent,
              hdr.kept_options.mss_lead, hdr.kept_options.mss, hdr.kept_options.sack, hdr.kept_options.scale_lead, hdr.kept_options.scale },
            hdr.tcp.checksum, HashAlgorithm.csum16);
        // Computes the TCP checksum of a segment that the switch itself generates: a RST, or a repeated FIN with timestamps.
        update_checksum(meta.reset == 1,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, 10w0, hdr.tcp.data_offset, 2w0,
              hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement,
              hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.cwr, hdr.tcp.ece, hdr.tcp.urg, hdr.tcp.ack, hdr.tcp.psh,
              hdr.tcp.rst, hdr.tcp.syn, hdr.tcp.fin, hdr.tcp.window, hdr.tcp.urgent,
              hdr.kept_options.mss_lead, hdr.kept_options.mss, hdr.kept_options.sack, hdr.kept_options.scale_lead, hdr.kept_options.scale },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}

// Returns a checksum adjusted by `change`, a sum of 16-bit words that is below 2^24.
bit<16> adjusted(in bit<16> checksum, in bit<32> change) {
    bit<32> sum = (bit<32>)(~checksum) + change;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum[15:0];
}

// Adjusts checksums after the stages splice and translate, which replace the address `replaced` by `endpoint`.
control AdjustChecksums(inout headers_t hdr, in metadata_t meta) {
    apply {
        bit<32> address = word_change(meta.replaced[31:16], meta.endpoint[31:16])
                        + word_change(meta.replaced[15:0], meta.endpoint[15:0]);
        bit<32> port = word_change(meta.replaced_port, meta.endpoint_port);
        if (hdr.tcp.isValid()) {
            hdr.tcp.checksum = adjusted(hdr.tcp.checksum, address + port + meta.respliced);
        } else if (hdr.udp.isValid()) {
            if (hdr.udp.checksum != 0) {                     // 0: the packet has no checksum
                hdr.udp.checksum = adjusted(hdr.udp.checksum, address + port);
                if (hdr.udp.checksum == 0) {
                    hdr.udp.checksum = 0xffff;               // 0 would mean no checksum (RFC 768)
                }
            }
        } else if (meta.icmp_error == 1) {
            bit<16> before = hdr.inner_ipv4.checksum;
            hdr.inner_ipv4.checksum = adjusted(before, address);
            bit<32> change = address + port + meta.respliced + word_change(before, hdr.inner_ipv4.checksum);
            if (hdr.inner_ipv4.protocol == PROTOCOL_UDP && hdr.inner_transport.fourth != 0) {
                before = hdr.inner_transport.fourth;
                hdr.inner_transport.fourth = adjusted(before, address + port);
                if (hdr.inner_transport.fourth == 0) {
                    hdr.inner_transport.fourth = 0xffff;
                }
                change = change + word_change(before, hdr.inner_transport.fourth);
            }
            hdr.icmp.checksum = adjusted(hdr.icmp.checksum, change);
        }
    }
}

#endif
