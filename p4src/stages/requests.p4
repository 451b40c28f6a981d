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
control RefuseRouted(in decided_t decided, inout DropReason drop) {
    apply {
        if (decided.refused == REFUSED) {
            drop = DropReason.admission_refused;
        }
    }
}

control Requests(in metadata_t meta, in decided_t decided) {
    RequestCells() cells;

    apply {
        cells.apply(meta, decided);
    }
}

#endif
