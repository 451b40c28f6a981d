// Token buckets. A bucket that is not configured always returns green. Green and yellow packets are admitted, red ones are
// refused.
#ifndef SLUICE_V1MODEL_METERS_P4
#define SLUICE_V1MODEL_METERS_P4

const bit<8> REFUSED = 2;              // the value that a meter returns for red

// Limits the new connections to each service.
control AdmissionMeter(in service_id_t service, out bit<8> refused) {
    @id(METER_ADMISSION)
    meter(SERVICES, MeterType.packets) admission;

    apply {
        bit<2> colour;
        admission.execute_meter((bit<32>)service, colour);
        refused = (bit<8>)colour;
    }
}

// Limits the new connections to each destination, from all clients together.
control DestinationMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_DESTINATION_LIMIT)
    meter(DESTINATIONS, MeterType.packets) destination_limit;

    apply {
        bit<2> colour;
        destination_limit.execute_meter((bit<32>)destination, colour);
        refused = (bit<8>)colour;
    }
}

// If the destination's limit is exceeded: limits the new connections of clients that the destination has admitted before.
control ReturningMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_RETURNING_LIMIT)
    meter(DESTINATIONS, MeterType.packets) returning_limit;

    apply {
        bit<2> colour;
        returning_limit.execute_meter((bit<32>)destination, colour);
        refused = (bit<8>)colour;
    }
}

// Limits the packets to the controller, by their PuntReason.
control PuntMeter(in PuntReason reason, out bit<1> limited) {
    @id(METER_PUNT_LIMIT)
    meter(REASONS, MeterType.packets) punt_limit;

    apply {
        bit<2> colour;
        punt_limit.execute_meter((bit<32>)(bit<8>)reason, colour);
        limited = 0;
        if (colour == 2) {
            limited = 1;
        }
    }
}

#endif
