// Token buckets. A bucket that is not configured always returns green. Green and yellow packets are admitted, RED ones are
// refused.
#ifndef SLUICE_TNA_METERS_P4
#define SLUICE_TNA_METERS_P4

// Limits the new connections to each service.
control AdmissionMeter(in service_id_t service, out bit<8> refused) {
    @id(METER_ADMISSION)
    Meter<service_id_t>(SERVICES, MeterType_t.PACKETS) admission;

    apply {
        refused = admission.execute(service);
    }
}

// Limits the new connections to each destination, from all clients together.
control DestinationMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_DESTINATION_LIMIT)
    Meter<destination_id_t>(DESTINATIONS, MeterType_t.PACKETS) destination_limit;

    apply {
        refused = destination_limit.execute(destination);
    }
}

// If the destination's limit is exceeded: limits the new connections of clients that the destination has admitted before.
control ReturningMeter(in destination_id_t destination, out bit<8> refused) {
    @id(METER_RETURNING_LIMIT)
    Meter<destination_id_t>(DESTINATIONS, MeterType_t.PACKETS) returning_limit;

    apply {
        refused = returning_limit.execute(destination);
    }
}

// Limits the packets to the controller, by their PuntReason. (The output is the colour, because a separate action that turns the
// colour into one bit would cost a stage.)
control PuntMeter(in PuntReason reason, out bit<8> colour) {
    @id(METER_PUNT_LIMIT)
    Meter<bit<8>>(REASONS, MeterType_t.PACKETS) punt_limit;

    apply {
        colour = punt_limit.execute((bit<8>)reason);
    }
}

#endif
