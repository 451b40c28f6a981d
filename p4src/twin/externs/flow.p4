// Flow, as on Tofino.
#include "../../tna/externs/flow.p4"
