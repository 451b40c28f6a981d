//! The P4Runtime messages, generated from `proto/`.
#![allow(missing_docs, clippy::all, clippy::pedantic, deprecated)]

/// The protobuf package `p4`.
pub mod p4 {
    /// The protobuf package `p4.v1`.
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
    /// The protobuf package `p4.config`.
    pub mod config {
        #[allow(missing_docs)]
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

/// The protobuf package `google`.
pub mod google {
    #[allow(missing_docs)]
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// Encoded size in bytes at which a message with several entities or notifications is full; the following ones are sent
/// in a further message. Clients refuse messages above 4 MB by default.
pub const LARGE: usize = 1 << 20;

/// The serialised `FileDescriptorSet` of all messages.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
