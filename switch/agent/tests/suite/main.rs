//! The agent as clients, servers, the switch and the controller meet it.

mod cases;
mod control;
mod ending;
mod fuzz;
mod guarding;
mod guessed_transfers;
mod guesses;
mod hostile;
mod mail;
mod mail_guarding;
mod mail_hostile;
mod mail_transfers;
mod metrics;
mod moments;
mod pauses;
mod pools;
mod signals;
mod support;
mod transfers;
