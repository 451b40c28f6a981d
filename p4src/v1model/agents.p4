// Agents: finds the agent behind the ingress port. A packet to a group of a content service is dropped unless the service's agent
// sent it.
//
//   reads  ingress_port, connection
//   writes agent
//          neighbour: of an answer to an agent
//   keys   agents: ingress port, and address and port of the content service -> the agent, as a server of that service
//          agent_hops: agent -> the agent as a neighbour
//   drops  not_an_agent, server_unknown
#ifndef SLUICE_V1MODEL_AGENTS_P4
#define SLUICE_V1MODEL_AGENTS_P4

control Agents(inout metadata_t meta, inout DropReason drop) {
    @id(ACTION_SET_AGENT)
    action set_agent(server_id_t agent) {
        meta.agent = agent;
    }

    @defaultonly
    @id(ACTION_NO_AGENT)
    action no_agent() {
        drop = DropReason.not_an_agent;
    }

    @id(TABLE_AGENTS)
    table agents {
        key = {
            meta.ingress_port             : exact @name("port");
            meta.connection.service       : exact @name("address");
            meta.connection.service_port  : exact @name("service_port");
        }
        actions = { set_agent; no_agent; }
        const default_action = no_agent;
        size = AGENTS;
    }

    apply {
        agents.apply();
    }
}

// Makes an agent the next hop of a server's answer, whose destination is the client. If the agent is no longer configured, the
// answer is dropped: the client's packets go to another agent, which opens the connection again.
control AgentHop(in server_id_t agent, inout verdict_t verdict) {
    @name(".SluiceIngress.splice.set_agent_hop")
    @id(ACTION_SET_AGENT_HOP)
    action set_agent_hop(neighbour_id_t neighbour) {
        verdict.neighbour = neighbour;
    }

    @defaultonly
    @name(".SluiceIngress.splice.no_agent_hop")
    @id(ACTION_NO_AGENT_HOP)
    action no_agent_hop() {
        verdict.drop = DropReason.server_unknown;
    }

    @name(".SluiceIngress.splice.agent_hops")
    @id(TABLE_AGENT_HOPS)
    table agent_hops {
        key = { agent : exact @name("agent"); }
        actions = { set_agent_hop; no_agent_hop; }
        const default_action = no_agent_hop;
        size = AGENTS;
    }

    apply {
        agent_hops.apply();
    }
}

#endif
