// Destinations: counts and limits requests (SYNs to a service, and routed SYNs from outside) by the address that the client
// requested: a service, a server, or a host that belongs to no service.
//
//   reads  event, inward, flow, refused, pass, now
//   writes request, destination, refused, returning, answer_reset
//   keys   destinations: destination address -> its number, whether a refused SYN gets a RST, how long clients are remembered
//
// A later stage drops a refused SYN: `connections` if the SYN goes to a service (a SYN of a pinned connection is not dropped),
// and `requests` if the SYN goes to another destination.
//
//     destination_limit: green ---------------> admitted, and its client remembered
//            |
//           red --> client in memory? --- no --> refused
//                        | yes
//                   returning_limit: green ----> admitted ("returning")
//                                    red ------> refused
//
// Two token buckets in series replace one bucket with two colours, so that a refused unknown client takes no token that a known
// client could have taken. The sum of the two limits is the destination's limit.
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

    // `remember_time`: ticks for which an admitted client is remembered, below TICK_BASE; 0: clients are not remembered.
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

    // Each step repeats its condition instead of being nested in the previous step, because on hardware a nested block would
    // delay the tables after the block.
    apply {
        bit<1> remembers = 0;       // the stage `admission` did not refuse the SYN, and the destination remembers clients
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
