// Stores which clients were admitted, and when, by one read-modify-write with at most two comparisons.
#ifndef SLUICE_V1MODEL_CLIENTS_P4
#define SLUICE_V1MODEL_CLIENTS_P4

// A cell for a client of a destination: fingerprint in the upper bits, time of the client's last admitted SYN in the lower bits.
typedef bit<(32 - ADMITTED_CLIENT_BITS)> client_fingerprint_t;
typedef bit<(64 - ADMITTED_CLIENT_BITS)> admitted_client_t;
#define CLIENT_FINGERPRINT 63 - ADMITTED_CLIENT_BITS:32
#define CLIENT_STAMP 31:0

// A client that is not refused overwrites the cell of its hash, so that the newest clients are stored. A refused client is known
// if the cell contains this client with a time that is not before `oldest`; the time is then updated. One CRC-32 yields both cell
// and fingerprint. For one destination the CRC is a bijection of the client's address, so that no two clients of a destination
// are mistaken for each other.
control AdmittedClients(in ipv4_t client, in ipv4_t destination, in bit<1> remembers, in bit<8> refused, in ticks_t oldest, in ticks_t now,
                        out bit<1> known) {
    @id(REGISTER_ADMITTED_CLIENTS)
    register<admitted_client_t>(ADMITTED_CLIENTS) admitted_clients;

    apply {
        known = 0;
        if (remembers == 1) {
            bit<32> key;
            hash(key, HashAlgorithm.crc32, 32w0, { client, destination }, 64w0x100000000);
            client_slot_t slot = (client_slot_t)key;
            client_fingerprint_t fingerprint = key[31:ADMITTED_CLIENT_BITS];
            admitted_client_t cell;
            admitted_clients.read(cell, (bit<32>)slot);
            if (refused == REFUSED && cell[CLIENT_FINGERPRINT] == fingerprint && !later(oldest, cell[CLIENT_STAMP])) {
                known = 1;
            }
            if (refused != REFUSED || known == 1) {
                cell = fingerprint ++ now;
            }
            admitted_clients.write((bit<32>)slot, cell);
        }
    }
}

#endif
