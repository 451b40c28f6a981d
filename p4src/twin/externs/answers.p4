// Answers: Tofino's control.
#include "../../tna/externs/answers.p4"
