// Every size of the program, each with its reason. Widths of indices are derived from the sizes. tools/p4.py defines LARGE for
// the large build, TOFINO for Tofino 1 and 2, and also TOFINO2 for Tofino 2. This file includes no file of a target.
#ifndef SLUICE_COMMON_SIZES_P4
#define SLUICE_COMMON_SIZES_P4

// Switches on content switching and the management of servers' TCP resources. Tofino 1's pipe has no room for these functions.
// The twin, a v1model program that is compared with Tofino's program, omits them as well. (Tofino 2's program has part of both
// functions: tools/p4.py compiles it with -DCONTENT and -DRESOURCES.)
#if !defined(TOFINO) && !defined(TWIN)
#define CONTENT
#define RESOURCES
#endif

// Switches on a third and a fourth server of the second look (the comparison of servers' loads). Not on Tofino 1 and 2, where
// each further server that a packet compares needs one more copy of the registers of loads.
#if !defined(TOFINO)
#define MORE_LOOKS
#endif

const bit<32> SERVICES         = 1024;   // services of a switch; also the number of admission meters
const bit<32> SERVERS          = 1024;   // servers of all services; also the number of cells in each register of the stage
                                         // `ledger`
const bit<32> SERVICE_ENDPOINTS = 2048;  // addresses and ports of services, and one entry of action deny_direct for each server

// Number of slots in each of the two ways (hash arrays) of the connection table, as a power of two.
#if defined(LARGE)
const int CONNECTION_SLOT_BITS = 21;     // for 2^20 live connections; at most 1.2 % of them find no slot
#elif defined(TOFINO2)
const int CONNECTION_SLOT_BITS = 15;     // a register uses only half of a stage: 2^15 cells of 64 bits take 17 of 24 map
                                         // RAMs
#elif defined(TOFINO)
const int CONNECTION_SLOT_BITS = 16;     // a register uses one stage: 2^16 cells of 64 bits take 33 of the stage's 48 map RAMs
#else
const int CONNECTION_SLOT_BITS = 17;     // for 65,536 live connections; at most 1.2 % of them find no slot (with 2^15 slots 23 %,
                                         // with 2^18 slots 0.2 %)
#endif
const bit<32> CONNECTION_SLOTS = 1 << CONNECTION_SLOT_BITS;

const bit<32> SPLICES          = 2 << CONNECTION_SLOT_BITS; // one cell for each slot of both ways
const bit<32> CLOSING_HINTS    = 4096;   // cells, each for a hint that a connection has become idle; several times the number of
                                         // connections that become idle between two polls by the controller
const int PAUSE_LENGTH_BITS    = 4;      // 16 classes of pauses within responses, by powers of two of the pause's length, up to
                                         // 18 minutes
const bit<32> CLOSING_PAUSES   = 1024 << PAUSE_LENGTH_BITS; // one cell for each server and class of pauses

// 2^16 cells, each with the last server of a content service's client: as many as ADMITTED_CLIENTS below, which also has a cell
// for each recent client.
const int REMEMBERED_CLIENT_BITS = 16;
const bit<32> REMEMBERED_CLIENTS = 1 << REMEMBERED_CLIENT_BITS;

// Number of transfers that can be sampled at the same time, few enough for a controller to read their cells every second.
const int TRANSFER_BITS = 12;
const bit<32> TRANSFERS        = 1 << TRANSFER_BITS;

const bit<32> CANDIDATES       = 16384;  // simultaneous handshakes of clients that reuse the port of a pinned connection whose
                                         // server takes no new connections

// Largest sum of all weights in each of the two action selectors `choose` and `choose_stable`: at least 32 for each of SERVERS
// servers.
#if defined(TOFINO2)
const bit<32> SELECTOR_SIZE    = 32768;  // half a stage has 40 SRAM blocks, and 2^16 members with their selector need 42
#else
const bit<32> SELECTOR_SIZE    = 65536;
#endif
const bit<32> OTHERS           = 2048;   // groups of servers for the second look: one for each server of a small pool, and one
                                         // for each larger pool

// Largest sum of the weights in the groups of the second look.
#if defined(TOFINO2)
const bit<32> OTHERS_SIZE      = 65536;  // 2^16 members with their selector need 51 SRAM blocks, more than half a stage
#elif defined(TOFINO)
const bit<32> OTHERS_SIZE      = 131072; // 2^18 members with their selector do not fit in the 80 SRAM blocks of a stage
#else
const bit<32> OTHERS_SIZE      = 262144; // 1,024 groups of small pools, with weights whose sum is 256 in each group
#endif

// Number of places in each service's queue of idle servers, as a power of two. Servers are queued in the order of becoming idle.
const int IDLE_PLACE_BITS = 5;
const bit<32> IDLE_PLACES      = 1024 << IDLE_PLACE_BITS;

const bit<32> AGENTS           = 256;    // one entry for each agent of each content service
const bit<32> PORTS            = 512;    // all values of a 9-bit port number
const bit<32> OWNED_ADDRESSES  = 2048;   // addresses of the router's interfaces, and one address for each service
const bit<32> DESTINATIONS     = 1024;   // service addresses and protected hosts that have separate counts and limits

// 2^16 cells. Of 6,000 clients (100 new clients a second, each stored for a minute), 1 in 11 is overwritten within this minute.
const int ADMITTED_CLIENT_BITS = 16;
const bit<32> ADMITTED_CLIENTS = 1 << ADMITTED_CLIENT_BITS;

// Number of responses whose rates can be measured at the same time: the fastest tenth of 4,096 responses is enough for a mean.
const int RATE_FLOW_BITS = 12;
const bit<32> RATE_FLOWS       = 1 << RATE_FLOW_BITS;

// Number of sampled destinations that the ring stores between two polls by the controller.
const int SAMPLE_BITS = 10;
const bit<32> SAMPLES          = 1 << SAMPLE_BITS;

const bit<32> NEIGHBOURS       = 4096;   // entries for all servers, gateways and directly attached hosts
#if defined(LARGE)
const bit<32> PREFIXES         = 126976; // room for 10^5 prefixes
#else
const bit<32> PREFIXES         = 4096;   // configured routes and the interfaces' subnets
#endif
const bit<32> ROUTES           = PREFIXES + NEIGHBOURS; // each neighbour may also have a host route
const bit<32> REASONS          = 256;    // cells of a counter by reason: an 8-bit reason has 256 values

#endif
