//! The engine's settings, which are fixed at its start, and the configuration that the controller sends.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};

use sluice_ports::counters::Counter;

use crate::cookie::CookieKey;
use crate::policy::ServicePolicy;
use crate::wire::Mac;

/// Settings that stay fixed while the engine runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The agent's hardware address.
    pub mac: Mac,
    /// The agent's IPv4 address.
    pub address: Ipv4Addr,
    /// The router's IPv4 address.
    pub gateway: Ipv4Addr,
    /// The Unix time in seconds at time zero of the clock.
    pub epoch_s: u64,
    /// Memory for connections, in bytes.
    pub budget: usize,
}

/// A configuration from the controller. It replaces the previous configuration completely.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The content services.
    pub services: Vec<Arc<Service>>,
    /// The generation of the rules, modulo 256.
    pub generation: u8,
    /// The current key of SYN cookies.
    pub key: CookieKey,
    /// The previous key. Clients may still acknowledge cookies that were made with this key.
    pub former_key: Option<CookieKey>,
}

/// A content service. A connection uses the service and rules that were configured when the connection began.
#[derive(Debug)]
pub struct Service {
    /// The service's name.
    pub name: String,
    /// The address and port to which clients connect.
    pub address: SocketAddrV4,
    /// The agent's TCP port to which the switch translates this service's address and port.
    pub agent_port: u16,
    /// The groups of servers among which the rules select.
    pub groups: Vec<Group>,
    /// The rules that select a group for a request.
    pub rules: Arc<dyn ServicePolicy>,
    /// Whether the data plane may connect a remembered client to the server of its previous connection, before the
    /// request of the new connection is read (a guess).
    pub guess: bool,
    /// For each rule, the number of requests that it matched.
    pub hits: Vec<Arc<Counter>>,
    /// The service's counters, except the hits of the rules.
    pub counters: Arc<Counters>,
}

impl Service {
    /// Creates a service whose counters are zero.
    pub fn new(
        name: String,
        address: SocketAddrV4,
        agent_port: u16,
        groups: Vec<(String, SocketAddrV4)>,
        rules: Arc<dyn ServicePolicy>,
    ) -> Service {
        let group = |(name, address)| Group {
            name,
            address,
            servers: Vec::new(),
            opened: Arc::default(),
            failed: Arc::default(),
        };
        let hits = (0..rules.rules()).map(|_| Arc::default()).collect();
        let counters = Arc::default();
        let groups = groups.into_iter().map(group).collect();
        Service { name, address, agent_port, groups, rules, guess: false, hits, counters }
    }

    /// Continues the counters of the service's previous configuration `before`: those of the service itself, and of the
    /// groups and rules that have the same name in the previous configuration and in this one. `rules` are the names of
    /// the rules in this configuration, `rules_before` those in the previous one.
    pub fn continue_counters(&mut self, rules: &[String], (before, rules_before): (&Service, &[String])) {
        self.counters = Arc::clone(&before.counters);
        for group in &mut self.groups {
            if let Some(same) = before.groups.iter().find(|same| same.name == group.name) {
                (group.opened, group.failed) = (Arc::clone(&same.opened), Arc::clone(&same.failed));
            }
        }
        let hits_before: HashMap<_, _> = rules_before.iter().zip(&before.hits).collect();
        for (name, hits) in rules.iter().zip(&mut self.hits) {
            if let Some(same) = hits_before.get(name) {
                *hits = Arc::clone(same);
            }
        }
    }
}

/// A group of servers. In the switch, the group is a service with an internal address.
#[derive(Debug)]
pub struct Group {
    /// The group's name.
    pub name: String,
    /// The internal address to which the agent sends a SYN for one of the group's servers.
    pub address: SocketAddrV4,
    /// The numbers that the group's servers have in the data plane.
    pub servers: Vec<u16>,
    /// The number of connections opened to the group's servers.
    pub opened: Arc<Counter>,
    /// The number of connection attempts that the group's servers refused or did not answer.
    pub failed: Arc<Counter>,
}

/// The counters of a service. The engine's thread writes them; any thread may read them.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests that no rule matched, so that the default decided.
    pub by_default: Counter,
    /// SYNs that were answered.
    pub handshakes: Counter,
    /// Connections that the data plane took over.
    pub spliced: Counter,
    /// Splice orders that were sent again.
    pub orders_repeated: Counter,
    /// Splice orders that the data plane refused or did not confirm.
    pub orders_failed: Counter,
    /// Connections that a client or server reset while the agent forwarded them.
    pub resets: Counter,
    /// Connections that were lost after the agent had acknowledged bytes of the client, or because the agent that
    /// handled them before is gone.
    pub lost: Counter,
    /// Segments that belong to no connection, for example with an invalid cookie.
    pub strays: Counter,
    /// Guessed connections whose server is in the group that the rules select.
    pub guesses_right: Counter,
    /// Guessed connections whose server is in another group.
    pub guesses_wrong: Counter,
    /// Guessed connections that were reset because the guessed server had already sent data, so that neither another
    /// server nor the agent could answer.
    pub guesses_reset: Counter,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Counts a refusal for the reason `why`.
    pub fn refuse(&self, why: &'static str) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_default() += 1;
    }

    /// Returns the number of refusals by reason.
    pub fn refused(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
