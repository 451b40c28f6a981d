// The registers of the second look: a cell a server, 32 bits. Open connections, twice, for two servers are looked at in one pass
// and a register is touched once; of them, those that are known not to be open any more.
#ifndef SLUICE_V1MODEL_LOAD_CELLS_P4
#define SLUICE_V1MODEL_LOAD_CELLS_P4

// Adds `change` to the connections of a server, in both copies; or, with a change of 0, reads those of two.
control LoadCells(in server_id_t server, in server_id_t other, in bit<32> change,
                  out bit<32> load, out bit<32> other_load) {
    @id(0x16000030)
    register<bit<32>>(SERVERS) load_first;
    @id(0x16000031)
    register<bit<32>>(SERVERS) load_other;

    apply {
        load_first.read(load, (bit<32>)server);
        load = load + change;
        load_first.write((bit<32>)server, load);
        load_other.read(other_load, (bit<32>)other);
        other_load = other_load + change;
        load_other.write((bit<32>)other, other_load);
    }
}

// Connections in the loads that ended unseen. Written by the controller, both alike.
control StaleCells(in server_id_t server, in server_id_t other, out bit<32> stale, out bit<32> other_stale) {
    @id(0x16000032)
    register<bit<32>>(SERVERS) stale_first;
    @id(0x16000033)
    register<bit<32>>(SERVERS) stale_other;

    apply {
        stale_first.read(stale, (bit<32>)server);
        stale_other.read(other_stale, (bit<32>)other);
    }
}

// Connections whose slot was claimed by another one before they had ended; cumulative. The controller takes them for stale.
control EvictedCells(in server_id_t server) {
    @id(0x16000034)
    register<bit<32>>(SERVERS) load_evicted;

    apply {
        bit<32> count;
        load_evicted.read(count, (bit<32>)server);
        load_evicted.write((bit<32>)server, count + 1);
    }
}

// Whether the other server, with one connection more, has less to do for its weight than the first has with one more: less by an
// eighth, or the rounding of weights (86, 85, 85) would decide what the draw is to decide. (Where there is no multiplication, the
// difference of two logarithms from a table does.) A load below zero is for a moment behind the truth: 0.
control Lighter(in bit<32> load, in weight_t weight, in bit<32> other_load, in weight_t other_weight, out bit<1> other_is) {
    apply {
        bit<32> first = load;
        bit<32> second = other_load;
        if (first[31:31] == 1) {
            first = 0;
        }
        if (second[31:31] == 1) {
            second = 0;
        }
        bit<48> work = ((bit<48>)first + 1) * (bit<48>)other_weight;
        bit<48> other_work = ((bit<48>)second + 1) * (bit<48>)weight;
        other_is = other_work + (other_work >> 3) < work ? 1w1 : 1w0;
    }
}

#endif
