// The two ways (hash arrays) of the connection table, and how packets access the ways.
#ifndef SLUICE_V1MODEL_WAYS_P4
#define SLUICE_V1MODEL_WAYS_P4

// Looks up a server's packet in one way. The slot's server is read first, because only packets of the slot's server change the
// key.
control AnswerLookup(register<pin_key_t> pin_key, register<server_id_t> pin_server, in metadata_t meta, in place_t place, in pin_slot_t slot,
                     inout server_id_t pin, inout found_t outcome) {
    pin_key_t before;
    pin_key_t key;

    apply {
        bit<1> own = 0;
        pin_server.read(pin, (bit<32>)slot);
        if (pin == meta.server) {
            own = 1;
        }
        pin_key.read(before, (bit<32>)slot);
        key = before;
        step_answer(own, meta.pass, meta.event, place.fingerprint, meta.now, key, outcome);
        if (key != before) {
            pin_key.write((bit<32>)slot, key);
        }
    }
}

// Looks up a SYN to a service in one way; with `claims`, the SYN claims a vacant slot.
control SynLookup(register<pin_key_t> pin_key, in metadata_t meta, in place_t place, in pin_slot_t slot, in bit<1> claims,
                  inout pin_key_t before, inout found_t outcome) {
    pin_key_t key;

    apply {
        pin_key.read(before, (bit<32>)slot);
        key = before;
        step_syn(claims, meta.content, place.fingerprint, meta.now, place.step.times, key, outcome);
        if (key != before) {
            pin_key.write((bit<32>)slot, key);
        }
    }
}

// Writes the SYN's choice as the server of the slot that the SYN claims. `evicted` is the server of the slot's previous
// connection.
control ClaimedPin(register<server_id_t> pin_server, inout metadata_t meta, in pin_slot_t slot, inout bit<1> claimed) {
    apply {
        pin_server.read(meta.evicted, (bit<32>)slot);
        pin_server.write((bit<32>)slot, meta.choice);
        claimed = 1;
    }
}

// For a further attempt of an agent: reads the server that has refused the connection, if the slot belonged to this connection.
control RefusedPin(register<server_id_t> pin_server, inout metadata_t meta, in place_t place, in pin_slot_t slot, in pin_key_t before) {
    apply {
        if (meta.attempt != 0 && before[KEY_FINGERPRINT] == place.fingerprint) {
            pin_server.read(meta.refused_by, (bit<32>)slot);
        }
    }
}

// Looks up a SYN in way 2. The SYN claims a slot there only in its second pass, if its first pass found way 1 taken and way 2
// vacant. `vacant`: the slot is vacant and was not claimed.
control SynInWay2(register<pin_key_t> pin_key, register<server_id_t> pin_server, inout metadata_t meta, in place_t place,
                  inout pin_key_t before, inout server_id_t pin, inout bit<1> claimed, inout bool vacant, inout found_t outcome) {
    SynLookup() lookup;
    ClaimedPin() claimed_pin;
    RefusedPin() refused_pin;

    apply {
        lookup.apply(pin_key, meta, place, place.slot_2, meta.vacant[1:1], before, outcome);
        if (outcome.hit == 1) {
            meta.way = 1;
            pin_server.read(pin, (bit<32>)place.slot_2);
        } else if (outcome.vacant == 1) {
            if (meta.vacant == 2) {
                meta.way = 1;
                claimed_pin.apply(pin_server, meta, place.slot_2, claimed);
            } else {
                vacant = true;
                refused_pin.apply(pin_server, meta, place, place.slot_2, before);
            }
        }
    }
}

// Looks up a SYN in way 1 if its connection is not in way 2, and claims a vacant slot there if place.step.claims is 1.
// `vacant_2`: the slot in way 2 is vacant, so that the SYN may claim it in a second pass.
control SynInWay1(register<pin_key_t> pin_key, register<server_id_t> pin_server, inout metadata_t meta, in place_t place,
                  inout pin_key_t before, inout server_id_t pin, inout bit<1> claimed, in bool vacant_2, inout found_t outcome) {
    SynLookup() lookup;
    ClaimedPin() claimed_pin;
    RefusedPin() refused_pin;

    apply {
        lookup.apply(pin_key, meta, place, place.slot_1, place.step.claims, before, outcome);
        if (outcome.hit == 1) {
            pin_server.read(pin, (bit<32>)place.slot_1);
        } else if (outcome.vacant == 1 && place.step.claims == 1) {
            claimed_pin.apply(pin_server, meta, place.slot_1, claimed);
        } else if (outcome.vacant == 1) {
            meta.vacant = 1;
            refused_pin.apply(pin_server, meta, place, place.slot_1, before);
        } else if (vacant_2) {
            meta.vacant = 2;
        }
    }
}

// Looks up a packet to a service, other than a SYN, in one way.
control RequestLookup(register<pin_key_t> pin_key, in metadata_t meta, in place_t place, in pin_slot_t slot, inout found_t outcome) {
    pin_key_t before;
    pin_key_t key;

    apply {
        pin_key.read(before, (bit<32>)slot);
        key = before;
        if (meta.pass == Pass.move) {
            step_move(place.fingerprint, meta.now, key, outcome);
        } else {
            step_request(meta.event, meta.content, place.fingerprint, meta.now, key, outcome);
        }
        if (key != before) {
            pin_key.write((bit<32>)slot, key);
        }
    }
}

// Reads the server from the slot of a request's connection. A pass `move` writes the preferred server into the slot first.
control RequestPin(register<server_id_t> pin_server, in metadata_t meta, in pin_slot_t slot, inout server_id_t pin) {
    apply {
        pin_server.read(pin, (bit<32>)slot);
        if (meta.pass == Pass.move) {
            pin = meta.preferred;
            pin_server.write((bit<32>)slot, pin);
        }
    }
}

// Completes a SYN's claim of a slot for its choice. If the SYN claims the slot of its own connection again before the handshake
// has ended, and its choice is not the slot's previous server, the connection has moved to another server.
control Claim(inout metadata_t meta, in place_t place, in pin_key_t before, in pin_state_t state_before, inout server_id_t pin) {
    apply {
        pin = meta.choice;
        meta.claimed = 1;
        if (state_before >= SERVER_CLOSING) {
            meta.evicted = 0;         // the previous connection had ended
        } else if (before[KEY_FINGERPRINT] == place.fingerprint && meta.evicted != 0 && meta.evicted != meta.choice
                   && (state_before <= ANSWERED || state_before == REOPENING)) {
            meta.moved = 1;           // the handshake with the previous server had not ended
        }
    }
}

// Writes the look-up's result for later stages: the connection's state and server, and whether the connection is pinned to this
// server.
control LookupResult(inout metadata_t meta, in found_t outcome, in bit<1> claimed, in bit<1> undecided, in server_id_t pin) {
    apply {
        if (outcome.hit == 1 || claimed == 1) {
            meta.has_slot = 1;
            meta.state = (PinState)(bit<8>)outcome.before;
            meta.next_state = (PinState)(bit<8>)outcome.after;
            if (meta.path != Path.from_server) {
                meta.server = pin;
            }
            if (pin == meta.server) {
                meta.pinned = 1;
            }
        } else if (meta.path == Path.to_service) {
            if (meta.event == Event.syn && undecided == 1) {
                meta.server = meta.choice;
            } else {
                meta.server = meta.stable_choice;
            }
        }
    }
}

// Finds a packet's connection in one of two ways or claims a slot for it, reads or writes the slot's server, and updates the
// state. A request goes to the server to which its connection is pinned. Without a pin, a request goes to `stable_choice`, except
// that a SYN which needs a second pass goes to `choice`.
//
// A SYN is looked up in way 2 before it claims a slot in way 1, because its connection may be in way 2 while way 1 has become
// vacant. A pass accesses way 2 only once, so a SYN that finds way 1 taken and way 2 vacant claims its slot in way 2 in a second
// pass.
control Pins(inout metadata_t meta, in place_t place, inout decided_t decided) {
    @name(".SluiceIngress.connections.key_1.pin_key_1")
    @id(REGISTER_PIN_KEY_1)
    register<pin_key_t>(CONNECTION_SLOTS) pin_key_1;
    @name(".SluiceIngress.connections.key_2.pin_key_2")
    @id(REGISTER_PIN_KEY_2)
    register<pin_key_t>(CONNECTION_SLOTS) pin_key_2;
    @name(".SluiceIngress.connections.server_1.pin_server_1")
    @id(REGISTER_PIN_SERVER_1)
    register<server_id_t>(CONNECTION_SLOTS) pin_server_1;
    @name(".SluiceIngress.connections.server_2.pin_server_2")
    @id(REGISTER_PIN_SERVER_2)
    register<server_id_t>(CONNECTION_SLOTS) pin_server_2;

    AnswerLookup() answer_1;
    AnswerLookup() answer_2;
    SynInWay1() syn_1;
    SynInWay2() syn_2;
    RequestLookup() request_1;
    RequestLookup() request_2;
    RequestPin() pin_of_1;
    RequestPin() pin_of_2;
    Claim() claim;
    LookupResult() result;

    pin_key_t before;                // the key before a SYN changed it
    server_id_t pin;
    bit<1> claimed;
    bool vacant_2;                   // the slot in way 2 is vacant and not claimed: a SYN may claim it in its second pass
    found_t outcome;

    apply {
        pin = 0;
        outcome = { 0, 0, PENDING, PENDING };
        claimed = 0;

        if (meta.path == Path.from_server) {
            if (meta.event != Event.syn) {        // a SYN of a server opens no connection of its service
                answer_1.apply(pin_key_1, pin_server_1, meta, place, place.slot_1, pin, outcome);
                if (outcome.hit == 0) {
                    meta.way = 1;
                    answer_2.apply(pin_key_2, pin_server_2, meta, place, place.slot_2, pin, outcome);
                }
            }
        } else if (meta.event == Event.syn) {
            before = 0;
            vacant_2 = false;
            if (meta.vacant != 1)                                           syn_2.apply(pin_key_2, pin_server_2, meta, place, before, pin, claimed, vacant_2, outcome);
            if (outcome.hit == 0 && meta.vacant != 2)                         syn_1.apply(pin_key_1, pin_server_1, meta, place, before, pin, claimed, vacant_2, outcome);
            if (claimed == 1)                                               claim.apply(meta, place, before, outcome.before, pin);
            if (meta.vacant == 0)                                           decided.undecided = 0;    // a second pass would find no slot either
        } else {
            request_1.apply(pin_key_1, meta, place, place.slot_1, outcome);
            if (outcome.hit == 1)                                             pin_of_1.apply(pin_server_1, meta, place.slot_1, pin);
            else {
                meta.way = 1;
                request_2.apply(pin_key_2, meta, place, place.slot_2, outcome);
                if (outcome.hit == 1)                                         pin_of_2.apply(pin_server_2, meta, place.slot_2, pin);
            }
        }
        result.apply(meta, outcome, claimed, decided.undecided, pin);
    }
}

#endif
