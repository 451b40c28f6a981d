// The clock of clock.p4 in ticks only, two stages earlier: a register counts the turns in ticks, so that the time is a sum, and compares
// the upper 32 bits of the nanoseconds as they are.
#ifndef SLUICE_TNA_TICKS_P4
#define SLUICE_TNA_TICKS_P4

const bit<32> TURN = 0x400000;    // ticks of 2^26 ns in 2^48 ns

struct turns_t {
    bit<32> last;                 // the clock at the latest packet, in 2^16 ns
    bit<32> ticks;                // of all turns, and TICK_BASE
}

control Ticks(in bit<48> nanoseconds, out ticks_t now) {
    bit<32> ticks;
    bit<32> turns;

    Register<turns_t, bit<1>>(1, { 0, TICK_BASE }) clock_turns;
    RegisterAction<turns_t, bit<1>, bit<32>>(clock_turns) count_turns = {
        // Later as a serial number, and yet a smaller one: the clock has wrapped. What is given is the count before, as in clock.p4.
        void apply(inout turns_t cell, out bit<32> result) {
            result = cell.ticks;
            if (nanoseconds[47:16] < cell.last && (int<32>)(nanoseconds[47:16] - cell.last) > 0) {
                cell.ticks = cell.ticks + TURN;
            }
            if ((int<32>)(nanoseconds[47:16] - cell.last) > 0) {
                cell.last = nanoseconds[47:16];
            }
        }
    };

    @hidden
    action shorten() {
        @in_hash { ticks = 10w0 ++ nanoseconds[47:26]; }
    }

    @hidden
    action add() {
        now = turns + ticks;
    }

    apply {
        shorten();
        turns = count_turns.execute(0);
        add();
    }
}

#endif
