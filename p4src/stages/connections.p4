// Connections: pins every connection to its server (stores the server in the connection table), from the first SYN to the end.
//
//            slot_1                          slot_2
//     +-------------------+           +-------------------+
//     | fingerprint, time |           | fingerprint, time |   1  find the connection, or claim a vacant slot
//     | server            |           | server            |   2  keep the pinned server, or take the choice
//     | state             |           | state             |   3  step the state, and return the previous one
//     +-------------------+           +-------------------+
//
//   reads  place, path, event, pass, service, content, attempt, now, choice, stable_choice, preferred, vacant, decided
//          server: of an answer
//          agent, turn: of a splice order, on Tofino 2
//   writes has_slot, pinned, claimed, way, state, next_state, evicted, vacant, moved, refused_by, next_pass, decided.undecided
//          server: of a request
//          turn, granted: of a content connection, on Tofino 2
//   drops  admission_refused, no_server
//
// A pass accesses each register once. The target decides which cells share a register, and the order of accesses
// (externs/ways.p4).
#ifndef SLUICE_STAGES_CONNECTIONS_P4
#define SLUICE_STAGES_CONNECTIONS_P4

#include <externs/ways.p4>
#include <externs/counters.p4>

control Connections(inout metadata_t meta, in place_t place, inout decided_t decided, inout DropReason drop) {
    @name(".SluiceIngress.connections")
    Pins() pins;                  // the controller finds the control's registers under this stage's name
    ConnectionCounters() counters;

    apply {
        pins.apply(meta, place, decided);
        if (meta.path == Path.to_service && meta.has_slot == 0) {
            if (meta.event == Event.syn && decided.refused == REFUSED) {
                drop = DropReason.admission_refused;
            } else if (meta.event == Event.syn && decided.undecided == 1) {
                meta.next_pass = Pass.claim;
            } else if (meta.stable_choice == 0) {
                drop = DropReason.no_server;
            }
        }
        if (meta.path == Path.to_service) {
            counters.apply(meta, decided);
        }
    }
}

#endif
