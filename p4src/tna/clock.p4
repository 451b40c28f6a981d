// TNA's clock counts nanoseconds in 48 bits and wraps after 78 hours. A register counts the turns, so that the times of the stages last
// as long as they do elsewhere; what they count is a little longer: ticks of 2^26 ns (67.1 ms, not 65.5), and for the response rates
// 2^20 ns (1.049 ms, not 1.024).
#ifndef SLUICE_TNA_CLOCK_P4
#define SLUICE_TNA_CLOCK_P4

// Where the count of turns begins, so that no time is before TICK_BASE: four turns of 2^22 ticks are just that.
const bit<32> FIRST_TURN = 4;

struct turns_t {
    bit<32> last;                 // the clock at the latest packet, in 2^20 ns: 28 bits
    bit<32> turns;
}

control Clock(in bit<48> nanoseconds, out ticks_t now, out rate_time_t clock) {
    bit<32> time;
    bit<32> turns;

    Register<turns_t, bit<1>>(1, { 0, FIRST_TURN }) clock_turns;
    RegisterAction<turns_t, bit<1>, bit<32>>(clock_turns) count_turns = {
        // Half a turn behind: the clock has wrapped. Half a turn ahead: this packet was overtaken by one from behind the wrap. What is given
        // is the count before: a unit gives 0 for a word that it might have changed and has not. So the first packet of a turn
        // is taken for one of 78 hours ago.
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

    // A table takes 32 bits of hashes: each has its own.
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
