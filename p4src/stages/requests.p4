// Requests: what became of every SYN towards inside, in counts that never go back.
//
//   reads  decided, pinned
//   writes the cells of requests_* (one a destination; cell 0: all that have no entry)
//
// Behind the connection table, which has the last word on a service's refused SYN. A SYN is counted once.
#ifndef SLUICE_STAGES_REQUESTS_P4
#define SLUICE_STAGES_REQUESTS_P4

// What is routed has no connection table in front of it: refused is dropped.
//
//   reads  refused
//   drops  admission_refused
control RefuseRouted(inout metadata_t meta, in decided_t decided) {
    apply {
        if (decided.refused == 1) {
            meta.verdict.drop = DropReason.admission_refused;
            meta.path = Path.done;
        }
    }
}

control Requests(in metadata_t meta, in decided_t decided) {
    RequestCells() cells;

    apply {
        bit<1> refused = 0;
        if (decided.refused == 1 && meta.pinned == 0) {
            refused = 1;
        }
        cells.apply(decided.destination, refused, decided.returning);
    }
}

#endif
