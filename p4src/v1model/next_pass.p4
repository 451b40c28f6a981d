// Next pass: sends the packet through ingress once more. A SYN that claims a slot in the next pass claims it for the preferred
// server.
//
//   reads  next_pass, content, choice, other, attempt, refused_by, loads.read_only
//          what second_look reads
//   writes preferred, pass
//          what second_look writes
#ifndef SLUICE_V1MODEL_NEXT_PASS_P4
#define SLUICE_V1MODEL_NEXT_PASS_P4

control NextPass(inout metadata_t meta) {
    @name(".SluiceIngress.stale")
    Stale() stale;
    @name(".SluiceIngress.prefer")
    Prefer() prefer;

    apply {
        if (meta.next_pass == Pass.claim && meta.content != Content.client) {
            meta.preferred = meta.choice;
            if (meta.attempt != 0) {
                // An agent's further attempt does not compare loads, because a server that refuses connections has the least
                // load.
                if (meta.choice == meta.refused_by && meta.other != 0)      meta.preferred = meta.other;
            } else if (meta.loads.read_only == 1) {
                stale.apply(meta);
                prefer.apply(meta);
            }
        }
        meta.pass = meta.next_pass;
        resubmit_preserving_field_list(1);
    }
}

#endif
