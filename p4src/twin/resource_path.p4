// Resource path: empty. The twin applies the stages of Tofino 1, which does not manage servers' TCP resources.
#ifndef SLUICE_TWIN_RESOURCE_PATH_P4
#define SLUICE_TWIN_RESOURCE_PATH_P4

control ResourcePath(inout headers_t hdr, inout metadata_t meta, in place_t place, inout verdict_t outcome, in bit<48> now) {
    apply { }
}

#endif
