//! Generates Rust code for the messages between controller and agent, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    tonic_prost_build::configure().compile_fds(protox::compile(["agent.proto"], ["proto"])?)?;
    Ok(())
}
