// Stores which clients were admitted, and when. A stateful unit has two inputs of 32 bits, but an access needs three:
// fingerprint, time and oldest time. So fingerprints and times are in two registers, and the second access depends on the first.
#ifndef SLUICE_TNA_CLIENTS_P4
#define SLUICE_TNA_CLIENTS_P4

typedef bit<(32 - ADMITTED_CLIENT_BITS)> client_fingerprint_t;

// A client that is not refused overwrites the cell of its hash, so that the newest clients are stored. A refused client is known
// if the cell contains this client with a time that is not before `oldest`; the time is then updated. One CRC-32 yields both cell
// and fingerprint. For one destination the CRC is a bijection of the client's address, so that no two clients of a destination
// are mistaken for each other.
control AdmittedClients(in ipv4_t client, in ipv4_t destination, in bit<1> remembers, in bit<8> refused, in ticks_t oldest, in ticks_t now,
                        out bit<1> known) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    bit<32> key;
    client_fingerprint_t before;

    @id(REGISTER_ADMITTED_CLIENTS)
    Register<client_fingerprint_t, client_slot_t>(ADMITTED_CLIENTS, 0) admitted_clients;
    RegisterAction<client_fingerprint_t, client_slot_t, client_fingerprint_t>(admitted_clients) read_client = {
        void apply(inout client_fingerprint_t cell, out client_fingerprint_t result) {
            result = cell;
        }
    };
    RegisterAction<client_fingerprint_t, client_slot_t, client_fingerprint_t>(admitted_clients) write_client = {
        void apply(inout client_fingerprint_t cell) {
            cell = key[31:ADMITTED_CLIENT_BITS];
        }
    };

    @id(REGISTER_ADMITTED_STAMPS)
    Register<bit<32>, client_slot_t>(ADMITTED_CLIENTS, 0) admitted_stamps;
    RegisterAction<bit<32>, client_slot_t, bit<1>>(admitted_stamps) write_stamp = {
        void apply(inout bit<32> cell) {
            cell = now;
        }
    };
    RegisterAction<bit<32>, client_slot_t, bit<1>>(admitted_stamps) renew_stamp = {
        void apply(inout bit<32> cell, out bit<1> result) {
            result = 0;
            if ((int<32>)(cell - oldest) >= 0) {
                cell = now;
                result = 1;
            }
        }
    };

    apply {
        known = 0;
        key = hash.get({ client, destination });
        if (remembers == 1) {
            if (refused == REFUSED) {
                before = read_client.execute(key[ADMITTED_CLIENT_BITS - 1:0]);
            } else {
                write_client.execute(key[ADMITTED_CLIENT_BITS - 1:0]);
            }
        }
        if (remembers == 1) {
            if (refused != REFUSED) {
                write_stamp.execute(key[ADMITTED_CLIENT_BITS - 1:0]);
            } else if (before == key[31:ADMITTED_CLIENT_BITS]) {
                known = renew_stamp.execute(key[ADMITTED_CLIENT_BITS - 1:0]);
            }
        }
    }
}

#endif
