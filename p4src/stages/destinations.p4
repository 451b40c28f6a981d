// Destinations: requests (SYNs towards inside) are counted and limited by the address that the client asked for, be it a
// service, one server, or a host that is no service at all.
//
//   reads  event, inward, flow, refused, pass, now
//   writes request, destination, refused, returning, answer_reset
//   keys   destinations: destination address -> its number, what a refused SYN gets, how long clients are remembered
//
// What is refused is dropped later: of a service by connections, for a pinned connection's SYN passes; of others by requests.
//
//     destination_limit: green ---------------> admitted, and its client remembered
//            |
//           red --> client in memory? --- no --> refused
//                        | yes
//                   returning_limit: green ----> admitted ("returning")
//                                    red ------> refused
//
// Two buckets in a row, not one of two colours: a refused stranger takes no token that a known client could have had.
// Both together are the destination's limit.
#ifndef SLUICE_STAGES_DESTINATIONS_P4
#define SLUICE_STAGES_DESTINATIONS_P4

#include <externs/meters.p4>
#include <externs/clients.p4>

control Destinations(in metadata_t meta, inout decided_t decided) {
    DestinationMeter() anybody;
    AdmittedClients() clients;
    ReturningMeter() known_clients;

    bit<1> listed = 0;
    ticks_t remember = 0;
    ticks_t oldest;

    // `remember_time` in ticks, below TICK_BASE; 0: clients are not remembered.
    @id(ACTION_LIMIT_DESTINATION)
    action limit_destination(destination_id_t id, bit<1> answer_reset, ticks_t remember_time) {
        decided.destination = id;
        decided.answer_reset = answer_reset;
        remember = remember_time;
        listed = 1;
    }

    @defaultonly
    @id(ACTION_UNLISTED)
    action unlisted() { }

    @id(TABLE_DESTINATIONS)
    table destinations {
        key = { meta.flow.dst : exact @name("address"); }
        actions = { limit_destination; unlisted; }
        const default_action = unlisted;
        size = DESTINATIONS;
    }

    @hidden
    action age() {
        oldest = meta.now - remember;
    }

    // One step after the other, each with its own condition: a block would hold back, on hardware, what stands behind it.
    apply {
        bit<1> remembers = 0;       // its service's admission has let it pass, and who is let in is remembered
        if (meta.inward == 1 && meta.event == Event.syn && meta.pass == Pass.first) {
            decided.request = 1;
            destinations.apply();
        }
        age();
        if (listed == 1 && decided.refused != REFUSED) {
            anybody.apply(decided.destination, decided.refused);
            if (remember != 0) {
                remembers = 1;
            }
        }
        bit<1> known = 0;
        clients.apply(meta.flow.src, meta.flow.dst, remembers, decided.refused, oldest, meta.now, known);
        if (known == 1) {
            known_clients.apply(decided.destination, decided.refused);
            decided.returning = 1;
        }
    }
}

#endif
