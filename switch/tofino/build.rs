//! Compiles the messages of BF Runtime; `google.rpc` is the P4Runtime crate's.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["bfruntime.proto"], ["proto", "../p4runtime/proto"])?;
    tonic_prost_build::configure()
        .extern_path(".google.rpc", "::sluice_p4runtime::proto::google::rpc")
        .compile_fds(descriptors)?;
    Ok(())
}
