// Computes the parameters of a packet's operation on its slot: the time-outs, and whether a SYN may claim a slot in this pass.
#ifndef SLUICE_V1MODEL_STEPS_P4
#define SLUICE_V1MODEL_STEPS_P4

struct step_t {
    times_t times;
    bit<1>  claims;
}

control Steps(in metadata_t meta, in decided_t decided, in times_t times, out step_t step) {
    apply {
        step.times = times;
        step.claims = 0;
        if (decided.refused != REFUSED && decided.looks == 0) {
            step.claims = 1;
        }
    }
}

#endif
