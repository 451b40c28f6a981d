//! Determines which controller is primary: the rules of P4Runtime's chapter on client arbitration, as a state machine
//! without input or output.

use std::collections::{BTreeMap, HashMap};

use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;

/// Limit on the length of a role's name, in bytes.
const ROLE_NAME: usize = 256;

/// The number of an open stream, which is unique in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// An arbitration message, with the stream that must receive it.
#[derive(Debug, PartialEq)]
pub struct Notice {
    /// The stream that must receive the message.
    pub to: StreamId,
    /// The content of the message.
    pub message: p4::MasterArbitrationUpdate,
}

#[derive(Debug)]
struct Client {
    role: String,
    election: Option<u128>,
}

/// The state of the election: every stream that sent a bid, and the highest election id of each role. The highest id
/// remains when the stream that bid it closes.
#[derive(Debug)]
pub struct Arbiter {
    device_id: u64,
    clients: HashMap<StreamId, Client>,
    highest: BTreeMap<String, Option<u128>>,
}

/// Returns an election id, which consists of two 64-bit fields, as one number.
pub fn election(id: Option<&p4::Uint128>) -> Option<u128> {
    id.map(|id| u128::from(id.high) << 64 | u128::from(id.low))
}

fn encode_election(id: u128) -> p4::Uint128 {
    p4::Uint128 { high: (id >> 64) as u64, low: id as u64 }
}

impl Arbiter {
    /// Returns an arbiter without streams. It contains the default role, which always exists.
    pub fn new(device_id: u64) -> Self {
        Self { device_id, clients: HashMap::new(), highest: BTreeMap::from([(String::new(), None)]) }
    }

    /// Processes a stream's bid (its role and election id). Returns the notices to send.
    ///
    /// # Errors
    /// The status with which the server must close the stream.
    #[allow(clippy::result_large_err)]
    pub fn update(&mut self, stream: StreamId, bid: &p4::MasterArbitrationUpdate) -> Result<Vec<Notice>, Status> {
        let role = bid.role.as_ref();
        let name = role.map_or("", |role| role.name.as_str());
        let known_client = self.clients.get(&stream);
        if bid.device_id != self.device_id {
            let text = format!("there is no device {}; give {}", bid.device_id, self.device_id);
            return Err(match known_client {
                None => Status::not_found(text),
                Some(_) => Status::failed_precondition(text),
            });
        }
        if role.is_some_and(|role| role.id != 0 && role.name.is_empty()) {
            return Err(Status::invalid_argument("role.id is deprecated; give the role a name"));
        }
        if name.len() > ROLE_NAME {
            let text = format!("the role's name has {} bytes; give at most {ROLE_NAME}", name.len());
            return Err(Status::invalid_argument(text));
        }
        if role.is_some_and(|role| role.config.is_some()) {
            return Err(Status::invalid_argument(
                "no scheme of role configs is agreed upon; leave role.config unset for full access",
            ));
        }
        if let Some(client) = known_client.filter(|client| client.role != name) {
            return Err(Status::failed_precondition(format!(
                "this stream has the role {:?}; open another one for the role {name:?}",
                client.role
            )));
        }
        let election = election(bid.election_id.as_ref());
        let taken =
            |(id, client): (&StreamId, &Client)| *id != stream && client.role == name && client.election == election;
        if election.is_some() && self.clients.iter().any(taken) {
            return Err(Status::invalid_argument(format!(
                "the election id {} is in use by another controller of this role; give another",
                election.unwrap_or_default()
            )));
        }
        let was_primary = self.primary(name) == Some(stream);
        self.clients.insert(stream, Client { role: name.to_owned(), election });
        let highest = self.highest.entry(name.to_owned()).or_default();
        let is_primary = election.is_some() && election >= *highest;
        if is_primary {
            *highest = election;
        }
        if is_primary || was_primary {
            return Ok(self.notices(name));
        }
        Ok(vec![self.notice(name, stream)])
    }

    /// Removes a stream. If it was the primary of its role, returns the notices for the other streams of the role.
    pub fn close(&mut self, stream: StreamId) -> Vec<Notice> {
        let Some(client) = self.clients.get(&stream) else { return Vec::new() };
        let role = client.role.clone();
        let was_primary = self.primary(&role) == Some(stream);
        self.clients.remove(&stream);
        // A role without an election id is removed with its last stream, except the default role.
        let unused = self.highest.get(&role) == Some(&None) && self.clients.values().all(|client| client.role != role);
        if unused && !role.is_empty() {
            self.highest.remove(&role);
        }
        if was_primary { self.notices(&role) } else { Vec::new() }
    }

    /// Returns the highest election id of each role, including ids that only closed streams bid.
    pub fn highest(&self) -> BTreeMap<String, u128> {
        self.highest.iter().filter_map(|(role, id)| Some((role.clone(), (*id)?))).collect()
    }

    /// Restores the roles' highest election ids after a restart of this server during which the switch kept its state
    /// (P4Runtime 1.5, section 16.2).
    pub fn remember(&mut self, highest: &BTreeMap<String, u128>) {
        self.highest.extend(highest.iter().map(|(role, id)| (role.clone(), Some(*id))));
    }

    /// Discards the election ids of closed streams, as P4Runtime requires after a restart in which the switch lost its
    /// state. Returns the notices for the open streams of the roles whose highest id changes.
    pub fn forget_past(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        for role in self.highest.keys().cloned().collect::<Vec<_>>() {
            let clients = || self.clients.values().filter(|client| client.role == role);
            let live = clients().filter_map(|client| client.election).max();
            let is_used = role.is_empty() || clients().next().is_some();
            let old = if is_used { self.highest.insert(role.clone(), live) } else { self.highest.remove(&role) };
            if old != Some(live) {
                notices.extend(self.notices(&role));
            }
        }
        notices
    }

    /// Returns the primary of a role: the open stream that bid the role's highest election id.
    pub fn primary(&self, role: &str) -> Option<StreamId> {
        let highest = (*self.highest.get(role)?)?;
        let is_primary = |client: &Client| client.role == role && client.election == Some(highest);
        self.clients.iter().find(|(_, client)| is_primary(client)).map(|(stream, _)| *stream)
    }

    /// Returns the primaries of all roles.
    pub fn primaries(&self) -> Vec<StreamId> {
        self.highest.keys().filter_map(|role| self.primary(role)).collect()
    }

    /// Returns whether the stream is the primary of its role.
    pub fn is_primary(&self, stream: StreamId) -> bool {
        self.clients.get(&stream).is_some_and(|client| self.primary(&client.role) == Some(stream))
    }

    /// Returns `Ok` if the sender of a request is the primary of `role`.
    ///
    /// # Errors
    /// `NOT_FOUND` for a role for which no stream has bid, `PERMISSION_DENIED` if the sender is not the role's primary.
    #[allow(clippy::result_large_err)]
    pub fn check_primary(&self, role: &str, election_id: Option<&p4::Uint128>) -> Result<(), Status> {
        let highest = self
            .highest
            .get(role)
            .ok_or_else(|| Status::not_found(format!("there is no role {role:?}; bid for it on a stream first")))?;
        let requested = election(election_id);
        if requested.is_some() && requested == *highest && self.primary(role).is_some() {
            return Ok(());
        }
        Err(Status::permission_denied(match (requested, self.primary(role)) {
            (None, _) => "not primary: the request has no election id; give that of your stream".to_owned(),
            (Some(requested), None) => {
                format!(
                    "not primary: the role has no primary now, and {requested} is not the id of an open stream; bid on a stream first"
                )
            }
            (Some(requested), Some(_)) => {
                format!(
                    "not primary: the primary's election id is {}, not {requested}; bid a higher one to take over",
                    highest.unwrap_or_default()
                )
            }
        }))
    }

    fn notices(&self, role: &str) -> Vec<Notice> {
        let mut streams: Vec<_> =
            self.clients.iter().filter(|(_, client)| client.role == role).map(|(stream, _)| *stream).collect();
        streams.sort_unstable();
        // The new primary is notified last, when all other controllers know that they are not primary.
        let primary = self.primary(role);
        streams.sort_by_key(|stream| Some(*stream) == primary);
        streams.into_iter().map(|stream| self.notice(role, stream)).collect()
    }

    fn notice(&self, role: &str, to: StreamId) -> Notice {
        let (code, text) = match self.primary(role) {
            Some(primary) if primary == to => (Code::Ok, "you are primary"),
            Some(_) => (Code::AlreadyExists, "another controller is primary"),
            None => (Code::NotFound, "there is no primary"),
        };
        let highest = self.highest.get(role).copied().flatten();
        Notice {
            to,
            message: p4::MasterArbitrationUpdate {
                device_id: self.device_id,
                role: (!role.is_empty()).then(|| p4::Role { name: role.to_owned(), ..Default::default() }),
                election_id: highest.map(encode_election),
                status: Some(rpc::Status { code: code as i32, message: text.to_owned(), details: Vec::new() }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(1);
    const B: StreamId = StreamId(2);
    const C: StreamId = StreamId(3);

    fn bid(election: Option<u128>) -> p4::MasterArbitrationUpdate {
        p4::MasterArbitrationUpdate { device_id: 5, election_id: election.map(encode_election), ..Default::default() }
    }

    fn role_bid(role: &str, election: u128) -> p4::MasterArbitrationUpdate {
        let role = p4::Role { name: role.to_owned(), ..Default::default() };
        p4::MasterArbitrationUpdate { role: Some(role), ..bid(Some(election)) }
    }

    /// Returns the stream, status code and highest election id of each notice.
    fn summaries(notices: &[Notice]) -> Vec<(StreamId, Code, Option<u128>)> {
        let summary = |notice: &Notice| {
            let status = notice.message.status.as_ref().unwrap();
            (notice.to, Code::from_i32(status.code), election(notice.message.election_id.as_ref()))
        };
        notices.iter().map(summary).collect()
    }

    #[test]
    fn the_highest_id_is_primary() {
        let mut arbiter = Arbiter::new(5);
        let notices = arbiter.update(A, &bid(Some(10))).unwrap();
        assert_eq!(summaries(&notices), [(A, Code::Ok, Some(10))]);
        let notices = arbiter.update(B, &bid(Some(9))).unwrap();
        assert_eq!(summaries(&notices), [(B, Code::AlreadyExists, Some(10))]);
        let notices = arbiter.update(C, &bid(Some(u128::MAX))).unwrap();
        let max = Some(u128::MAX);
        assert_eq!(
            summaries(&notices),
            [(A, Code::AlreadyExists, max), (B, Code::AlreadyExists, max), (C, Code::Ok, max)]
        );
        assert_eq!(arbiter.primaries(), [C]);
    }

    #[test]
    fn a_bid_without_an_election_id_never_becomes_primary() {
        let mut arbiter = Arbiter::new(5);
        assert_eq!(summaries(&arbiter.update(A, &bid(None)).unwrap()), [(A, Code::NotFound, None)]);
        arbiter.update(B, &bid(Some(0))).unwrap();
        assert_eq!(arbiter.primary(""), Some(B));
    }

    #[test]
    fn a_role_has_no_primary_after_its_primary_closed_its_stream_or_bid_lower() {
        let mut arbiter = Arbiter::new(5);
        arbiter.update(A, &bid(Some(10))).unwrap();
        arbiter.update(B, &bid(Some(9))).unwrap();
        assert_eq!(summaries(&arbiter.close(A)), [(B, Code::NotFound, Some(10))]);
        assert!(arbiter.check_primary("", Some(&encode_election(10))).is_err());
        assert_eq!(summaries(&arbiter.update(B, &bid(Some(10))).unwrap()), [(B, Code::Ok, Some(10))]);
        arbiter.update(C, &bid(None)).unwrap();
        let notices = arbiter.update(B, &bid(Some(3))).unwrap();
        assert_eq!(summaries(&notices), [(B, Code::NotFound, Some(10)), (C, Code::NotFound, Some(10))]);
        assert_eq!(arbiter.close(C), []);
    }

    #[test]
    fn election_ids_outlive_a_restart_unless_the_switch_has_lost_its_state() {
        let mut before = Arbiter::new(5);
        before.update(A, &bid(Some(10))).unwrap();
        before.update(B, &role_bid("acl", 7)).unwrap();
        let mut arbiter = Arbiter::new(5);
        arbiter.remember(&before.highest());
        assert_eq!(summaries(&arbiter.update(A, &bid(Some(9))).unwrap()), [(A, Code::NotFound, Some(10))]);
        assert_eq!(summaries(&arbiter.update(B, &bid(Some(8))).unwrap()), [(B, Code::NotFound, Some(10))]);
        let notices = arbiter.forget_past();
        assert_eq!(summaries(&notices), [(B, Code::AlreadyExists, Some(9)), (A, Code::Ok, Some(9))]);
        assert_eq!(arbiter.forget_past(), []);
        assert_eq!(arbiter.highest(), BTreeMap::from([(String::new(), 9)]), "the role acl has no stream");
    }

    #[test]
    fn roles_have_separate_primaries() {
        let mut arbiter = Arbiter::new(5);
        arbiter.update(A, &bid(Some(10))).unwrap();
        let notices = arbiter.update(B, &role_bid("acl", 1)).unwrap();
        assert_eq!(summaries(&notices), [(B, Code::Ok, Some(1))]);
        assert_eq!(notices[0].message.role.as_ref().unwrap().name, "acl");
        assert_eq!(arbiter.primaries(), [A, B]);
        assert!(arbiter.check_primary("acl", Some(&encode_election(1))).is_ok());
        let code = |role: &str, id: Option<u128>| {
            arbiter.check_primary(role, id.map(encode_election).as_ref()).unwrap_err().code()
        };
        assert_eq!(code("acl", Some(10)), Code::PermissionDenied);
        assert_eq!(code("", None), Code::PermissionDenied);
        assert_eq!(code("other", Some(1)), Code::NotFound);
    }

    #[test]
    fn role_names_are_limited_and_a_role_without_election_id_ends_with_its_last_stream() {
        let mut arbiter = Arbiter::new(5);
        let listen = |role: &str| p4::MasterArbitrationUpdate { election_id: None, ..role_bid(role, 0) };
        let long = arbiter.update(A, &role_bid(&"r".repeat(257), 1)).unwrap_err();
        assert_eq!(long.code(), Code::InvalidArgument);
        arbiter.update(A, &role_bid(&"r".repeat(256), 1)).unwrap();
        arbiter.update(B, &listen("acl")).unwrap();
        arbiter.update(C, &listen("acl")).unwrap();
        arbiter.close(B);
        assert!(arbiter.highest.contains_key("acl"));
        arbiter.close(C);
        arbiter.close(A);
        assert_eq!(arbiter.highest.keys().map(String::len).collect::<Vec<_>>(), [0, 256]);
    }

    #[test]
    fn invalid_bids_end_the_stream() {
        let mut arbiter = Arbiter::new(5);
        arbiter.update(A, &bid(Some(10))).unwrap();
        let wrong_device = p4::MasterArbitrationUpdate { device_id: 6, ..bid(Some(1)) };
        let mut code = |stream, bid: &_| arbiter.update(stream, bid).unwrap_err().code();
        assert_eq!(code(B, &wrong_device), Code::NotFound);
        assert_eq!(code(A, &wrong_device), Code::FailedPrecondition);
        assert_eq!(code(B, &bid(Some(10))), Code::InvalidArgument);
        assert_eq!(code(A, &role_bid("acl", 10)), Code::FailedPrecondition);
        let config = p4::Role { config: Some(prost_types::Any::default()), ..Default::default() };
        assert_eq!(code(B, &p4::MasterArbitrationUpdate { role: Some(config), ..bid(Some(1)) }), Code::InvalidArgument);
    }
}
