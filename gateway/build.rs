//! Compiles the messages of BF Runtime and the records of the journal. The messages of P4Runtime and `google.rpc` to
//! which these refer come from the crate `sluice_p4runtime`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=../crates/p4runtime/proto");
    let folders = ["proto", "../crates/p4runtime/proto"];
    tonic_prost_build::configure()
        .extern_path(".google.rpc", "::sluice_p4runtime::proto::google::rpc")
        .compile_fds(protox::compile(["bfruntime.proto"], folders)?)?;
    // The records need a separate folder: the generator also writes a file for each package with an `extern_path`, and
    // such a file could replace one that was generated above.
    let folder = PathBuf::from(std::env::var("OUT_DIR")?).join("journal");
    std::fs::create_dir_all(&folder)?;
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .out_dir(folder)
        .extern_path(".google", "::sluice_p4runtime::proto::google")
        .extern_path(".p4", "::sluice_p4runtime::proto::p4")
        .extern_path(".bfrt_proto", "crate::proto")
        .compile_fds(protox::compile(["journal.proto"], folders)?)?;
    Ok(())
}
