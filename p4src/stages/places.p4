// Places: computes the two slots in which the connection table may store a packet's connection, and the slots' time-out.
//
//   reads  event, pass, payload, now, preferred, decided
//          server: of an answer
//          connection
//          flow, endpoint, endpoint_port: on Tofino 1 in place of connection
//   writes place: for connections
//   keys   timers: none; the times are parameters of its default action
//
// The time-out depends on the connection's state; after the time-out any SYN may claim the slot. See docs/reference/pipeline.md.
#ifndef SLUICE_STAGES_PLACES_P4
#define SLUICE_STAGES_PLACES_P4

#include <externs/steps.p4>
#include <externs/pins.p4>

struct place_t {
    pin_slot_t    slot_1;
    pin_slot_t    slot_2;
    fingerprint_t fingerprint;
    step_t        step;           // what the packet changes in the slot
}

control Places(in metadata_t meta, in decided_t decided, out place_t place) {
    PinHash() pin_hash;
    Steps() steps;

    times_t times;

    // Time-outs of a slot, by the connection's state; in ticks of TICK_US, each below TICK_BASE.
    @id(ACTION_SET_TIMERS)
    action set_timers(ticks_t idle_time, ticks_t pending_time, ticks_t answered_time, ticks_t half_closed_time, ticks_t linger_time) {
        times.idle = idle_time;
        times.pending = pending_time;
        times.answered = answered_time;
        times.half_closed = half_closed_time;
        times.linger = linger_time;
    }

    // The default times (idle, pending, answered, half-closed, linger) are 300, 10, 60, 240 and 2 s.
    @id(TABLE_TIMERS)
    table timers {
        actions = { set_timers; }
        default_action = set_timers(4578, 153, 916, 3663, 31);
        size = 1;
    }

    apply {
        timers.apply();
        pin_hash.apply(meta, place.slot_1, place.slot_2, place.fingerprint);
        steps.apply(meta, decided, times, place.step);
    }
}

#endif
