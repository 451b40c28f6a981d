// Writes translated addresses and ports into the headers, also of the packet inside an ICMP error. The destination address of a
// request is already written by the table of the stage translate.
#ifndef SLUICE_TNA_REWRITE_P4
#define SLUICE_TNA_REWRITE_P4

control Rewrite(inout headers_t hdr, inout metadata_t meta) {
    @hidden
    action request_segment() {
        hdr.tcp.dst_port = meta.endpoint_port;
    }

    @hidden
    action request_datagram() {
        hdr.udp.dst_port = meta.endpoint_port;
    }

    @hidden
    action request_error() {
        hdr.inner_ipv4.src = meta.endpoint;
        hdr.inner_transport.src_port = meta.endpoint_port;
    }

    @hidden
    action answer_segment() {
        hdr.ipv4.src = meta.endpoint;
        hdr.tcp.src_port = meta.endpoint_port;
    }

    @hidden
    action answer_datagram() {
        hdr.ipv4.src = meta.endpoint;
        hdr.udp.src_port = meta.endpoint_port;
    }

    @hidden
    action answer_error() {
        hdr.inner_ipv4.dst = meta.endpoint;
        hdr.inner_transport.dst_port = meta.endpoint_port;
    }

    // For an ICMP error that is sent by the server itself, not by a router between server and switch.
    @hidden
    action answer_own_error() {
        answer_error();
        hdr.ipv4.src = meta.endpoint;
    }

    @hidden
    action neither() { }

    @hidden
    table rewrite {
        key = {
            meta.path         : ternary @name("path");
            hdr.tcp.isValid() : ternary @name("tcp");
            hdr.udp.isValid() : ternary @name("udp");
            meta.itself       : ternary @name("itself");
        }
        actions = {
            request_segment; request_datagram; request_error; answer_segment; answer_datagram; answer_error; answer_own_error;
            neither;
        }
        const entries = {
            (Path.to_service, true, _, _)  : request_segment();
            (Path.to_service, _, true, _)  : request_datagram();
            (Path.to_service, _, _, _)     : request_error();
            (Path.from_server, true, _, _) : answer_segment();
            (Path.from_server, _, true, _) : answer_datagram();
            (Path.from_server, _, _, 1)    : answer_own_error();
            (Path.from_server, _, _, _)    : answer_error();
        }
        const default_action = neither();
    }

    apply {
        rewrite.apply();
    }
}

#endif
