// Writes translated addresses and ports into the headers, also of the packet inside an ICMP error. The destination address of a
// request is already written by the table of the stage translate.
#ifndef SLUICE_V1MODEL_REWRITE_P4
#define SLUICE_V1MODEL_REWRITE_P4

control Rewrite(inout headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.path == Path.to_service) {
            meta.replaced = meta.flow.dst;
            meta.replaced_port = meta.flow.dst_port;
            if (hdr.tcp.isValid()) {
                hdr.tcp.dst_port = meta.endpoint_port;
            } else if (hdr.udp.isValid()) {
                hdr.udp.dst_port = meta.endpoint_port;
            } else {
                hdr.inner_ipv4.src = meta.endpoint;
                hdr.inner_transport.src_port = meta.endpoint_port;
            }
        } else if (meta.path == Path.from_server) {
            meta.replaced = meta.flow.src;
            meta.replaced_port = meta.flow.src_port;
            if (hdr.ipv4.src == meta.flow.src) {
                hdr.ipv4.src = meta.endpoint;
            }
            if (hdr.tcp.isValid()) {
                hdr.tcp.src_port = meta.endpoint_port;
            } else if (hdr.udp.isValid()) {
                hdr.udp.src_port = meta.endpoint_port;
            } else {
                hdr.inner_ipv4.dst = meta.endpoint;
                hdr.inner_transport.dst_port = meta.endpoint_port;
            }
        }
    }
}

#endif
