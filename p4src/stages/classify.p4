// Classify: decides whether the packet is for a service, from a server, or neither.
//
//   reads  flow
//   writes path, service, shares, connection
//          server, endpoint, endpoint_port: of a server's packet
//          content, generation, remember_time: if the service has content switching
//   keys   services: destination address, protocol, port -> the service and its shares; for a server's own endpoint: a refusal
//                    for content switching also: the content service, or a group and the endpoint of its content service
//          origins:  source address, protocol, port -> server, its service and that service's endpoint; and whether the service is one
//                    of a content service's groups
//   drops  direct_to_server
//
// An ICMP error to the sender of the packet inside the error is looked up by the inner packet's reversed 5-tuple, so the error
// takes the same path as an answer to the inner packet. Any other ICMP error is looked up by the error's own addresses, without
// ports. The tables services and origins are independent of the connection table: a server's answer is translated also if its
// connection has no slot.
#ifndef SLUICE_STAGES_CLASSIFY_P4
#define SLUICE_STAGES_CLASSIFY_P4

control Classify(inout metadata_t meta, inout DropReason drop) {
    @id(ACTION_TO_SERVICE)
    action to_service(service_id_t service, weight_t shares) {
        meta.service = service;
        meta.shares = shares;
        meta.path = Path.to_service;
        meta.connection.client = meta.flow.src;
        meta.connection.client_port = meta.flow.src_port;
        meta.connection.service = meta.flow.dst;
        meta.connection.service_port = meta.flow.dst_port;
        meta.connection.protocol = meta.flow.protocol;
    }

#if defined(CONTENT)
    @id(ACTION_TO_CONTENT)
    action to_content(service_id_t service, bit<8> generation, ticks_t remember_time) {
        to_service(service, 0);
        meta.content = Content.client;
        meta.generation = generation;
        meta.remember_time = remember_time;
    }

    // The connections of a group (the servers for one kind of content) are pinned under the address and port of the content
    // service, because the client's packets are addressed to the content service and must find the pin.
    @id(ACTION_TO_GROUP)
    action to_group(service_id_t service, weight_t shares, ipv4_t address, l4_port_t port) {
        to_service(service, shares);
        meta.connection.service = address;
        meta.connection.service_port = port;
        meta.content = Content.agent;
    }
#endif

    @id(ACTION_DENY_DIRECT)
    action deny_direct() {
        drop = DropReason.direct_to_server;
    }

    @id(ACTION_FROM_SERVER)
    action from_server(server_id_t server, service_id_t service, ipv4_t address, l4_port_t port) {
        meta.server = server;
        meta.service = service;
        meta.endpoint = address;
        meta.endpoint_port = port;
        meta.path = Path.from_server;
        meta.connection.client = meta.flow.dst;
        meta.connection.client_port = meta.flow.dst_port;
        meta.connection.service = address;
        meta.connection.service_port = port;
        meta.connection.protocol = meta.flow.protocol;
    }

#if defined(CONTENT)
    @id(ACTION_FROM_CONTENT)
    action from_content(server_id_t server, service_id_t service, ipv4_t address, l4_port_t port) {
        from_server(server, service, address, port);
        meta.content = Content.server;
    }
#endif

    @id(ACTION_NEITHER)
    action neither() { }

    @id(TABLE_SERVICES)
    table services {
        key = {
            meta.flow.dst      : exact @name("address");
            meta.flow.protocol : exact @name("protocol");
            meta.flow.dst_port : exact @name("port");
        }
        actions = {
            to_service;
#if defined(CONTENT)
            to_content;
            to_group;
#endif
            deny_direct;
            @defaultonly neither;
        }
        const default_action = neither;
        size = SERVICE_ENDPOINTS;
    }

    @id(TABLE_ORIGINS)
    table origins {
        key = {
            meta.flow.src      : exact @name("address");
            meta.flow.protocol : exact @name("protocol");
            meta.flow.src_port : exact @name("port");
        }
        actions = {
            from_server;
#if defined(CONTENT)
            from_content;
#endif
            @defaultonly neither;
        }
        const default_action = neither;
        size = SERVERS;
    }

    apply {
        if (!services.apply().hit) {
            origins.apply();
        }
    }
}

#endif
