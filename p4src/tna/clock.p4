// Extends TNA's clock, which counts nanoseconds in 48 bits and wraps after 78 hours. A register counts the wraps, so that the
// stages' times wrap as late as on other targets. The units of time are slightly longer than on other targets: a tick is 2^26 ns
// (67.1 ms instead of 65.5 ms), and the unit of the response rates is 2^20 ns (1.049 ms instead of 1.024 ms).
#ifndef SLUICE_TNA_CLOCK_P4
#define SLUICE_TNA_CLOCK_P4

// Initial number of wraps: four periods of the clock, each 2^22 ticks, are equal to TICK_BASE, so no time is before TICK_BASE.
const bit<32> FIRST_TURN = 4;

struct turns_t {
    bit<32> last;                 // time of the latest packet, in units of 2^20 ns, 28 bits
    bit<32> turns;                // number of wraps, plus FIRST_TURN
}

control Clock(in bit<48> nanoseconds, out ticks_t now, out rate_time_t clock) {
    bit<32> time;
    bit<32> turns;

    Register<turns_t, bit<1>>(1, { 0, FIRST_TURN }) clock_turns;
    RegisterAction<turns_t, bit<1>, bit<32>>(clock_turns) count_turns = {
        // The clock has wrapped if its value is below the latest packet's time by more than half a period. If its value is above
        // that time by more than half a period, a packet from after the wrap has overtaken this packet. The result is the number
        // of wraps before this packet increases it: a stateful unit that returned the increased number would return 0 whenever
        // the condition of the increase does not hold. So the first packet of a period gets a time that is 78 hours too early.
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

    // Two actions for two results, because a hardware table computes at most 32 bits of hashes.
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
