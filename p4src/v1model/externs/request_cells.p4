// The registers of requests: a cell a destination, 32 bits, cumulative; they wrap, and whoever takes differences minds it.
#ifndef SLUICE_V1MODEL_REQUEST_CELLS_P4
#define SLUICE_V1MODEL_REQUEST_CELLS_P4

control RequestCells(in metadata_t meta, in decided_t decided) {
    @id(0x16000021)
    register<bit<32>>(DESTINATIONS) requests_offered;
    @id(0x16000022)
    register<bit<32>>(DESTINATIONS) requests_admitted;
    @id(0x16000023)
    register<bit<32>>(DESTINATIONS) requests_refused;
    @id(0x16000024)
    register<bit<32>>(DESTINATIONS) requests_returning; // of those admitted

    apply {
        bit<32> cell = (bit<32>)decided.destination;
        bit<32> count;
        requests_offered.read(count, cell);
        requests_offered.write(cell, count + 1);
        if (decided.refused == REFUSED && meta.pinned == 0) {
            requests_refused.read(count, cell);
            requests_refused.write(cell, count + 1);
        } else {
            requests_admitted.read(count, cell);
            requests_admitted.write(cell, count + 1);
            if (decided.returning == 1) {
                requests_returning.read(count, cell);
                requests_returning.write(cell, count + 1);
            }
        }
    }
}

#endif
