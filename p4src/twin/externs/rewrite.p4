// Rewrites translated headers by Tofino's control, and also sets the fields that the checksums of the v1model program need.
#ifndef SLUICE_TWIN_REWRITE_P4
#define SLUICE_TWIN_REWRITE_P4

#define Rewrite RewriteOfTofino
#include "../../tna/externs/rewrite.p4"
#undef Rewrite

control Rewrite(inout headers_t hdr, inout metadata_t meta) {
    RewriteOfTofino() rewrite;

    apply {
        if (meta.path == Path.to_service) {
            meta.replaced = meta.flow.dst;
            meta.replaced_port = meta.flow.dst_port;
        } else if (meta.path == Path.from_server) {
            meta.replaced = meta.flow.src;
            meta.replaced_port = meta.flow.src_port;
        }
        rewrite.apply(hdr, meta);
    }
}

#endif
