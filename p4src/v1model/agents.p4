// Agents: finds the agent behind the ingress port. A packet to a group of a content service is dropped unless the service's agent
// sent it.
//
//   reads  ingress_port, connection
//   writes agent, agent_neighbour
//   keys   agents: ingress port, and address and port of the content service -> the agent, as a server of that service, and as a neighbour
//   drops  not_an_agent
#ifndef SLUICE_V1MODEL_AGENTS_P4
#define SLUICE_V1MODEL_AGENTS_P4

control Agents(inout metadata_t meta, inout DropReason drop) {
    @id(ACTION_SET_AGENT)
    action set_agent(server_id_t agent, neighbour_id_t neighbour) {
        meta.agent = agent;
        meta.agent_neighbour = neighbour;
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

#endif
