// TNA's clock counts nanoseconds in 48 bits and wraps after 78 hours. A register counts the wraps, so that the stages' times last as long as
// on other targets. The units are slightly longer: ticks of 2^26 ns (67.1 ms instead of 65.5 ms), and 2^20 ns for the response rates (1.049
// ms instead of 1.024 ms).
#ifndef SLUICE_TNA_CLOCK_P4
#define SLUICE_TNA_CLOCK_P4

// Initial count of wraps, so that no time is before TICK_BASE: four periods of 2^22 ticks are equal to TICK_BASE.
const bit<32> FIRST_TURN = 4;

struct turns_t {
    bit<32> last;                 // clock at the latest packet, in units of 2^20 ns: 28 bits
    bit<32> turns;                // number of wraps
}

control Clock(in bit<48> nanoseconds, out ticks_t now, out rate_time_t clock) {
    bit<32> time;
    bit<32> turns;

    Register<turns_t, bit<1>>(1, { 0, FIRST_TURN }) clock_turns;
    RegisterAction<turns_t, bit<1>, bit<32>>(clock_turns) count_turns = {
        // A clock half a period behind the last one has wrapped. A clock half a period ahead belongs to a packet that was
        // overtaken by one from after the wrap. The result is the count before this packet, since a stateful unit returns 0 for a
        // word that it could have changed but did not. So the first packet of a period gets a time that is 78 hours too early.
        void apply(inout turns_t cell, out bit<32> result) {
            result = cell.turns;
            if ((int<32>)(cell.last - time) > 0x8000000) {
                cell.turns = cell.turns + 1;
            }
            if ((int<32>)(time - cell.last) <= 0x8000000) {
                cell.last = time;
            }
        }
    };

    @hidden
    action shorten() {
        @in_hash { time = 4w0 ++ nanoseconds[47:20]; }
    }

    // A table computes at most 32 bits of hashes, so each of these actions has a table of its own.
    @hidden
    action join_now() {
        @in_hash { now = turns[9:0] ++ nanoseconds[47:26]; }
    }

    @hidden
    action join_clock() {
        @in_hash { clock = turns[3:0] ++ nanoseconds[47:20]; }
    }

    apply {
        shorten();
        turns = count_turns.execute(0);
        join_now();
        join_clock();
    }
}

#endif
