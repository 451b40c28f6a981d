// Answers, as on Tofino.
#include "../../tna/externs/answers.p4"
