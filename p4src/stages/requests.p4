// Requests: what became of every SYN towards inside, in counts that never go back.
//
//   reads  destination, refused, returning, path, verdict
//   writes the cells of requests_* (one a destination; cell 0: all that have no entry)
//   drops  admission_refused: a routed SYN; a service's is dropped already
//
// Behind the connection table, which has the last word on a refused SYN. A SYN is counted in its first pass only.
#ifndef SLUICE_STAGES_REQUESTS_P4
#define SLUICE_STAGES_REQUESTS_P4

control Requests(inout metadata_t meta) {
    RequestCells() cells;

    apply {
        bit<1> refused = 0;
        if (meta.path == Path.routed && meta.refused == 1) {
            meta.verdict.drop = DropReason.admission_refused;
            meta.path = Path.done;
            refused = 1;
        } else if (meta.verdict.drop == DropReason.admission_refused) {
            refused = 1;
        }
        cells.apply(meta.destination, refused, meta.returning);
    }
}

#endif
