// Options: replaces the options of a content connection's SYN or SYN-ACK by those in kept_options_h. No other option may be
// negotiated, because the agent or switch that later takes over the connection could not continue, for example, the connection's
// timestamps.
//
//   reads  options, payload, ipv4.ihl
//   writes kept_options, tcp, ipv4.total_length, rebuilt
#ifndef SLUICE_V1MODEL_OPTIONS_P4
#define SLUICE_V1MODEL_OPTIONS_P4

control RebuildOptions(inout headers_t hdr, inout metadata_t meta) {
    apply {
        hdr.kept_options.setValid();
        hdr.kept_options.mss_lead = 0x0204;
        hdr.kept_options.mss = meta.options.mss;
        hdr.kept_options.sack = 0x01010101;
        if (meta.options.sack == 1) {
            hdr.kept_options.sack = 0x01010402;
        }
        hdr.kept_options.scale_lead = 0x010101;
        hdr.kept_options.scale = 1;
        if (meta.options.scale != 0) {
            hdr.kept_options.scale_lead = 0x010303;
            hdr.kept_options.scale = (bit<8>)meta.options.scale - 1;
        }
        meta.rebuilt = 32 + meta.payload;
        hdr.ipv4.total_length = ((bit<16>)hdr.ipv4.ihl << 2) + meta.rebuilt;
        hdr.tcp.data_offset = 8;
        // Nor may the connection negotiate ECN (RFC 3168, section 6.1.1), because the agent or switch could not continue it.
        hdr.tcp.ece = 0;
        hdr.tcp.cwr = 0;
    }
}

#endif
