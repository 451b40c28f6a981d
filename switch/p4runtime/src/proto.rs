//! The P4Runtime messages, generated from `proto/`.
#![allow(missing_docs, clippy::all, clippy::pedantic, deprecated)]

/// `p4.*`
pub mod p4 {
    /// `p4.v1`
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
    /// `p4.config.v1`
    pub mod config {
        #[allow(missing_docs)]
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

/// `google.rpc`
pub mod google {
    #[allow(missing_docs)]
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// Bytes above which a message of many parts is sent and the next one begun; clients refuse more than 4 MB by default.
pub const LARGE: usize = 1 << 20;

/// The `FileDescriptorSet` of all messages, serialised.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
