// Requests: what became of every SYN towards inside, in counts that never go back.
//
//   reads  destination, returning, verdict
//   writes the cells of requests_* (one a destination; cell 0: all that have no entry)
//
// Behind the connection table, which has the last word on a refused SYN. A SYN is counted in its first pass only.
#ifndef SLUICE_STAGES_REQUESTS_P4
#define SLUICE_STAGES_REQUESTS_P4

control Requests(in metadata_t meta) {
    RequestCells() cells;

    apply {
        bit<1> refused = meta.verdict.drop == DropReason.admission_refused ? 1w1 : 1w0;
        cells.apply(meta.destination, refused, meta.returning);
    }
}

#endif
