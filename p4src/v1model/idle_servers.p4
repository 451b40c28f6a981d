// Idle servers: maintains each service's queue of idle servers, for new connections (Lu et al., Join-Idle-Queue, 2011).
//
//                                   head        tail
//     new connection <--- server 3 --- | 3 | 1 | 4 | <--- server 7 takes the ticket `tail`: its FIN ends its last open connection
//
//   reads  service, server, path, event, loads.load
//          change: of the server's load
//   writes more.idle, more.seeks
//          the cells of idle_*
//   keys   idle_members: service, and word of 32 servers -> the servers that may be selected; whether they are always preferred
//
// An entry is valid while its server has the entry's number as ticket; the server's next connection deletes the ticket. A SYN
// that finds an invalid head, or a head that may not be selected, removes the head from the queue. Idle servers without an entry
// are selected only by draws: at first all servers, later the servers removed from the queue, and the servers whose last open
// connection ended by a RST or was found stale by the controller. A RST adds no entry, because servers without their program send
// RSTs, and hosts can forge RSTs.
#ifndef SLUICE_V1MODEL_IDLE_SERVERS_P4
#define SLUICE_V1MODEL_IDLE_SERVERS_P4

typedef bit<32> idle_ends_t;
#define IDLE_HEAD 31:16
#define IDLE_TAIL 15:0
#define IDLE_PLACE (IDLE_PLACE_BITS - 1):0
#define IDLE_WORD 15:5
#define IDLE_BIT 4:0

// If `change` is 0, selects an idle server for a SYN; otherwise updates the queue after the load of the packet's server has
// changed by `change`.
control IdleServers(inout metadata_t meta, in bit<32> change) {
    @id(REGISTER_IDLE_ENDS)
    register<idle_ends_t>(SERVICES) idle_ends;
    @id(REGISTER_IDLE_QUEUE)
    register<server_id_t>(IDLE_PLACES) idle_queue;
    @id(REGISTER_IDLE_TICKET_FIRST)
    register<bit<32>>(SERVERS) idle_ticket_first;
    @id(REGISTER_IDLE_TICKET_HEAD)
    register<bit<32>>(SERVERS) idle_ticket_head;
    @id(REGISTER_STALE_IDLE)
    register<bit<32>>(SERVERS) stale_idle;

    server_id_t front = 0;                     // the server at the queue's head
    bit<32> members = 0;

    @id(ACTION_SEEK_IDLE)
    action seek_idle(bit<32> servers, bit<1> before_any) {
        members = servers;
        meta.more.seeks = before_any;
    }

    @defaultonly
    @id(ACTION_SEEK_NOBODY)
    action seek_nobody() { }

    @id(TABLE_IDLE_MEMBERS)
    table idle_members {
        key = {
            meta.service     : exact @name("service");
            front[IDLE_WORD] : exact @name("word");
        }
        actions = { seek_idle; seek_nobody; }
        const default_action = seek_nobody;
        size = SERVERS;
    }

    apply {
        bit<32> service = (bit<32>)meta.service;
        bit<32> server = (bit<32>)meta.server;
        idle_ends_t ends;
        bit<32> ticket;
        bit<32> stale;
        meta.more.idle = 0;
        meta.more.seeks = 0;
        idle_ends.read(ends, service);
        idle_ticket_first.read(ticket, server);
        stale_idle.read(stale, server);
        bit<32> open = meta.loads.load - stale;              // below 0 while `stale` is outdated
        bool idle = open == 0 || open[31:31] == 1;
        bool empty = ends[IDLE_HEAD] == ends[IDLE_TAIL];
        if (change == 0) {
            if (!empty) {
                bit<32> head_ticket;
                idle_queue.read(front, (service << IDLE_PLACE_BITS) + (bit<32>)ends[31:16][IDLE_PLACE]);
                idle_ticket_head.read(head_ticket, (bit<32>)front);
                idle_members.apply();
                members = members >> front[IDLE_BIT];
                if (head_ticket != 16w1 ++ ends[IDLE_HEAD] || members[0:0] == 0) {
                    ends[IDLE_HEAD] = ends[IDLE_HEAD] + 1;
                    idle_ends.write(service, ends);
                } else if (meta.more.seeks == 1 && idle
                           && (ticket == 0 || ticket[15:0] - ends[IDLE_HEAD] >= ends[IDLE_TAIL] - ends[IDLE_HEAD])) {
                    meta.more.idle = meta.server;            // the first server drawn has been idle for longer than the queue's
                                                             // servers
                } else {
                    meta.more.idle = front;
                }
            }
        } else if (!idle) {
            idle_ticket_first.write(server, 0);
            idle_ticket_head.write(server, 0);
            idle_queue.read(front, (service << IDLE_PLACE_BITS) + (bit<32>)ends[31:16][IDLE_PLACE]);
            if (!empty && front == meta.server) {
                ends[IDLE_HEAD] = ends[IDLE_HEAD] + 1;
                idle_ends.write(service, ends);
            }
        } else if (ticket == 0 && meta.path == Path.from_server && meta.event == Event.fin) {
            idle_ticket_first.write(server, 16w1 ++ ends[IDLE_TAIL]);
            idle_ticket_head.write(server, 16w1 ++ ends[IDLE_TAIL]);
            idle_queue.write((service << IDLE_PLACE_BITS) + (bit<32>)ends[IDLE_PLACE], meta.server);
            ends[IDLE_TAIL] = ends[IDLE_TAIL] + 1;
            if (ends[IDLE_TAIL] - ends[IDLE_HEAD] > 1 << IDLE_PLACE_BITS) {
                ends[IDLE_HEAD] = ends[IDLE_HEAD] + 1;       // the oldest entry is overwritten
            }
            idle_ends.write(service, ends);
        }
    }
}

#endif
