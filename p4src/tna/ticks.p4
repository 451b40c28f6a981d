// The clock of clock.p4 in ticks only, and two stages earlier: the register counts the turns in ticks, so that the time is a sum.
#ifndef SLUICE_TNA_TICKS_P4
#define SLUICE_TNA_TICKS_P4

const bit<32> TURN = 0x400000;    // ticks of 2^26 ns in 2^48 ns

struct turns_t {
    bit<32> last;                 // the clock at the latest packet, in 2^20 ns: 28 bits
    bit<32> ticks;                // of all turns, and TICK_BASE
}

control Ticks(in bit<48> nanoseconds, out ticks_t now) {
    bit<32> ticks;
    bit<32> turns;

    Register<turns_t, bit<1>>(1, { 0, TICK_BASE }) clock_turns;
    RegisterAction<turns_t, bit<1>, bit<32>>(clock_turns) count_turns = {
        // As in clock.p4: half a turn behind, the clock has wrapped; half a turn ahead, this packet was overtaken.
        void apply(inout turns_t cell, out bit<32> result) {
            result = cell.ticks;
            if ((int<32>)(cell.last - (bit<32>)nanoseconds[47:20]) > 0x8000000) {
                cell.ticks = cell.ticks + TURN;
            }
            if ((int<32>)((bit<32>)nanoseconds[47:20] - cell.last) <= 0x8000000) {
                cell.last = (bit<32>)nanoseconds[47:20];
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
