// The registers of the second look: a cell a server, 32 bits. Open connections, twice, for two servers are looked at in one pass
// and a register is touched once; of them, those that are known not to be open any more.
#ifndef SLUICE_TNA_LOAD_CELLS_P4
#define SLUICE_TNA_LOAD_CELLS_P4

// Adds `change` to the connections of a server, in both copies; or, with a change of 0, reads those of two.
control LoadCells(in server_id_t server, in server_id_t other, in bit<32> change,
                  out bit<32> load, out bit<32> other_load) {
    @id(0x30)
    Register<bit<32>, server_id_t>(SERVERS, 0) load_first;
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_first) add_first = {
        void apply(inout bit<32> cell, out bit<32> result) {
            cell = cell + change;
            result = cell;
        }
    };
    @id(0x31)
    Register<bit<32>, server_id_t>(SERVERS, 0) load_other;
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_other) add_other = {
        void apply(inout bit<32> cell, out bit<32> result) {
            cell = cell + change;
            result = cell;
        }
    };

    apply {
        load = add_first.execute(server);
        other_load = add_other.execute(other);
    }
}

// Connections in the loads that ended unseen. Written by the controller, both alike.
control StaleCells(in server_id_t server, in server_id_t other, out bit<32> stale, out bit<32> other_stale) {
    @id(0x32)
    Register<bit<32>, server_id_t>(SERVERS, 0) stale_first;
    RegisterAction<bit<32>, server_id_t, bit<32>>(stale_first) read_first = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };
    @id(0x33)
    Register<bit<32>, server_id_t>(SERVERS, 0) stale_other;
    RegisterAction<bit<32>, server_id_t, bit<32>>(stale_other) read_other = {
        void apply(inout bit<32> cell, out bit<32> result) {
            result = cell;
        }
    };

    apply {
        stale = read_first.execute(server);
        other_stale = read_other.execute(other);
    }
}

// Connections whose slot was claimed by another one before they had ended; cumulative. The controller takes them for stale.
control EvictedCells(in server_id_t server) {
    @id(0x34)
    Register<bit<32>, server_id_t>(SERVERS, 0) load_evicted;
    RegisterAction<bit<32>, server_id_t, bit<32>>(load_evicted) one_evicted = {
        void apply(inout bit<32> cell) {
            cell = cell + 1;
        }
    };

    apply {
        one_evicted.execute(server);
    }
}

#endif
