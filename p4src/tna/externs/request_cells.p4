// The registers of requests: a cell a destination, 32 bits, cumulative; they wrap, and whoever takes differences minds it.
#ifndef SLUICE_TNA_REQUEST_CELLS_P4
#define SLUICE_TNA_REQUEST_CELLS_P4

control RequestCells(in metadata_t meta, in decided_t decided) {
    @id(0x21)
    Register<bit<32>, destination_id_t>(DESTINATIONS, 0) requests_offered;
    RegisterAction<bit<32>, destination_id_t, bit<32>>(requests_offered) one_requests_offered = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x22)
    Register<bit<32>, destination_id_t>(DESTINATIONS, 0) requests_admitted;
    RegisterAction<bit<32>, destination_id_t, bit<32>>(requests_admitted) one_requests_admitted = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x23)
    Register<bit<32>, destination_id_t>(DESTINATIONS, 0) requests_refused;
    RegisterAction<bit<32>, destination_id_t, bit<32>>(requests_refused) one_requests_refused = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };
    @id(0x24)
    Register<bit<32>, destination_id_t>(DESTINATIONS, 0) requests_returning; // of those admitted
    RegisterAction<bit<32>, destination_id_t, bit<32>>(requests_returning) one_requests_returning = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };

    apply {
        one_requests_offered.execute(decided.destination);
        if (decided.refused == REFUSED && meta.pinned == 0) {
            one_requests_refused.execute(decided.destination);
        } else {
            one_requests_admitted.execute(decided.destination);
            if (decided.returning == 1) {
                one_requests_returning.execute(decided.destination);
            }
        }
    }
}

#endif
