// Content path: empty. The twin applies the stages of Tofino 1, which has no content switching.
#ifndef SLUICE_TWIN_CONTENT_PATH_P4
#define SLUICE_TWIN_CONTENT_PATH_P4

struct spliced_t { }

control ContentPath(inout headers_t hdr, inout metadata_t meta, in place_t place, in decided_t decided, inout verdict_t verdict,
                    out spliced_t spliced) {
    apply { }
}

control BehindTranslation(inout metadata_t meta, in spliced_t spliced, inout DropReason server_drop) {
    apply { }
}

control Confirm(inout headers_t hdr, inout metadata_t meta, inout verdict_t verdict) {
    apply { }
}

control Guessed(inout headers_t hdr) {
    apply { }
}

#endif
