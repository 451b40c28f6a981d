// Orders: computes the splice-turn register's new value from a splice order, and checks that the sender is an agent of the
// service.
//
//   reads  splice, agent, findings.agent, drop
//   writes turn, undecided
//   drops  not_an_agent
#ifndef SLUICE_TNA2_ORDERS_P4
#define SLUICE_TNA2_ORDERS_P4

// Computes turn and shift of the new value. SignOrder adds the agent's number after the look-up of the sender in the table
// `agents`.
control ReadOrder(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action read_order() {
        @in_hash { meta.turn = 1w1 ++ hdr.splice.shift[4:0] ++ 10w0; }
    }

    apply {
        if (hdr.splice.isValid()) {
            read_order();
        }
    }
}

control SignOrder(in headers_t hdr, inout metadata_t meta) {
    @hidden
    action sign_order() {
        meta.turn = meta.turn | meta.agent;
    }

    apply {
        if (hdr.splice.isValid()) {
            sign_order();
        }
    }
}

control AgentCheck(in findings_t findings, inout verdict_t verdict, inout decided_t decided) {
    @hidden
    action not_an_agent() {
        verdict.drop = DropReason.not_an_agent;
        decided.undecided = 0;
    }

    @hidden
    action as_found() { }

    // A table replaces a condition, because p4c's assembly of a condition over two bytes fails with "Didn't cover all bytes".
    @hidden
    @no_gateway_conversion
    table agent_check {
        key = {
            findings.agent : ternary @name("agent");
            verdict.drop   : ternary @name("drop");
        }
        actions = { not_an_agent; as_found; }
        const entries = {
            (DropReason.none, _) : as_found();
            (_, DropReason.none) : not_an_agent();
        }
        const default_action = as_found();
    }

    apply {
        agent_check.apply();
    }
}

#endif
