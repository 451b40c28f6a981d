//! Runs the gateway's executable in a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use crate::common::{Controller, DEVICE};

/// A gateway process, which is killed when this value is dropped.
pub struct Process {
    child: Child,
    address: String,
    driver: String,
    log: PathBuf,
}

impl Process {
    /// Starts a gateway in front of the driver with this URI. `folder` contains the journal, `words` are further
    /// arguments.
    pub fn start(driver: &str, folder: &Path, words: &[&str]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self::at(&free.to_string(), driver, folder, words)
    }

    fn at(address: &str, driver: &str, folder: &Path, words: &[&str]) -> Self {
        let log = folder.join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-tofino"));
        command.args(words).args(["--grpc-server-addr", address, "--driver", driver]);
        command.args(["--device-id", &DEVICE.to_string(), "--state"]).arg(folder);
        Self::run(command, address, driver, log)
    }

    /// Starts a gateway with this command. `address` and `driver` are the addresses in the command's arguments; `log`
    /// is the file for the command's output.
    pub fn run(mut command: Command, address: &str, driver: &str, log: PathBuf) -> Self {
        command.stdin(Stdio::null()).stdout(File::create(&log).unwrap()).stderr(Stdio::inherit());
        let child = command.spawn().unwrap();
        Self { child, address: address.to_owned(), driver: driver.to_owned(), log }
    }

    /// Returns the URI of the driver.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Returns the text of the process's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills the process and starts another one with the same journal and driver.
    pub fn restarted(self, folder: &Path) -> Self {
        let driver = self.driver.clone();
        self.restarted_before(&driver, folder)
    }

    /// Kills the process and starts another one with the same journal in front of this driver.
    pub fn restarted_before(self, driver: &str, folder: &Path) -> Self {
        let address = self.address.clone();
        drop(self);
        Self::at(&address, driver, folder, &[])
    }

    /// Opens a stream and bids with this election id. Also returns the reply to the bid.
    pub async fn bid(&self, election: u64) -> (Controller, p4::MasterArbitrationUpdate) {
        let address = format!("http://{}", self.address);
        let connected = async {
            loop {
                match Controller::at(&address, election).await {
                    Ok(connected) => return connected,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), connected).await.expect("a gateway that serves")
    }

    /// Connects a controller with this election id.
    pub async fn controller(&self, election: u64) -> Controller {
        self.bid(election).await.0
    }

    /// Waits until the gateway is connected to the driver, and has restored or discarded its state. Returns the config
    /// of the committed program, if there is one.
    pub async fn wait_for_program(&self, controller: &mut Controller) -> Option<p4::ForwardingPipelineConfig> {
        let answered = async {
            loop {
                match controller.try_pushed().await {
                    Ok(config) => break config,
                    Err(status) => assert_eq!(status.code(), Code::Unavailable, "{}", status.message()),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let config = tokio::time::timeout(Duration::from_secs(60), answered).await.expect("a driver that answers");
        // The gateway may return the config before it has sent the pending updates, so the test waits until reads
        // succeed too.
        while controller
            .try_read(p4::entity::Entity::TableEntry(p4::TableEntry::default()))
            .await
            .is_err_and(|status| status.code() == Code::Unavailable)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        config
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
