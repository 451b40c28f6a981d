//! Tests the access of controllers and its limits: Unix sockets, TLS, numbers of connections, sizes of requests.

use std::path::Path;
use std::time::Duration;

use crate::common::{Switch, in_runtime};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use sluice_p4runtime::proto::p4::v1 as p4;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

use p4::p4_runtime_client::P4RuntimeClient;

/// Queries the version of the API. A reply shows that the client has access.
async fn version(channel: Channel) -> Result<String, Status> {
    let answer = P4RuntimeClient::new(channel).capabilities(p4::CapabilitiesRequest::default()).await?;
    Ok(answer.into_inner().p4runtime_api_version)
}

/// Connects and queries the version of the API. Returns an error of either step as text.
async fn query(endpoint: Endpoint) -> Result<String, String> {
    let channel = endpoint.timeout(Duration::from_secs(60)).connect().await.map_err(|error| error.to_string())?;
    version(channel).await.map_err(|status| status.to_string())
}

fn endpoint(uri: String) -> Endpoint {
    Endpoint::from_shared(uri).unwrap()
}

#[test]
fn a_unix_socket_comes_and_goes_with_the_switch() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p4rt.sock");
    let flags = format!("--no-p4 --grpc-server-addr unix:{}", path.display());
    let switch = Switch::start(&flags);
    assert_eq!(switch.address(), format!("unix:{}", path.display()));
    let uri = format!("unix://{}", path.display());
    assert_eq!(in_runtime(query(endpoint(uri.clone()))), Ok("1.5.0".to_owned()));
    let (code, err) = Switch::spawn(Path::new("."), &flags).end();
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot serve P4Runtime on unix:") && err.contains("in use"), "{err}");
    switch.stop(libc::SIGTERM);
    assert!(!path.exists());
    // A switch must replace the socket file that a killed switch has left.
    Switch::start(&flags).stop(libc::SIGKILL);
    assert!(path.exists());
    let switch = Switch::start(&flags);
    assert_eq!(in_runtime(query(endpoint(uri))), Ok("1.5.0".to_owned()));
    drop(switch);
}

/// A certification authority, and a certificate for one name with its key, all in PEM.
struct Pki {
    ca: String,
    certificate: String,
    key: String,
}

fn pki(name: &str) -> Pki {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    Pki { ca: issuer.pem(), certificate: certificate.pem(), key: key.serialize_pem() }
}

#[test]
fn mutual_tls_admits_only_clients_with_a_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let (server, client, stranger) = (pki("switch"), pki("controller"), pki("stranger"));
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (file("server.pem", &server.certificate), file("server.key", &server.key));
    let tls = format!(
        "--no-p4 -- --grpc-server-addr 127.0.0.1:0 --grpc-server-ssl --grpc-server-cert {cert} --grpc-server-key {key}"
    );
    let trusting = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&server.ca)).domain_name("switch");
    let query_over_tls = |switch: &Switch, tls: ClientTlsConfig| {
        in_runtime(query(endpoint(format!("https://{}", switch.address())).tls_config(tls).unwrap()))
    };
    let identity_of = |pki: &Pki| trusting.clone().identity(Identity::from_pem(&pki.certificate, &pki.key));

    let switch = Switch::start(&tls);
    assert_eq!(query_over_tls(&switch, trusting.clone()), Ok("1.5.0".to_owned()));
    assert!(in_runtime(query(endpoint(format!("http://{}", switch.address())))).is_err(), "in without TLS");
    drop(switch);

    let ca = file("clients.pem", &client.ca);
    let switch = Switch::start(&format!("{tls} --grpc-server-with-client-auth --grpc-server-cacert {ca}"));
    assert_eq!(query_over_tls(&switch, identity_of(&client)), Ok("1.5.0".to_owned()));
    assert!(query_over_tls(&switch, trusting.clone()).is_err(), "in without a certificate");
    assert!(query_over_tls(&switch, identity_of(&stranger)).is_err(), "in with a stranger's certificate");
    assert_eq!(query_over_tls(&switch, identity_of(&client)), Ok("1.5.0".to_owned()));
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let wrong = directory.path().join("wrong.pem");
    std::fs::write(&wrong, "nothing of the kind").unwrap();
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    let other_pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let own_pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, own_pair.cert.pem()).unwrap();
    std::fs::write(&key, other_pair.signing_key.serialize_pem()).unwrap();
    let (wrong, certificate, key) = (wrong.display(), certificate.display(), key.display());
    for (cert, key, text) in [
        ("/nonexistent.pem".to_owned(), &key, "cannot read a certificate /nonexistent.pem: No such file"),
        (wrong.to_string(), &key, "wrong.pem: it has to be a certificate in PEM (-----BEGIN ...CERTIFICATE-----)"),
        (certificate.to_string(), &wrong, "wrong.pem: it has to be a key in PEM (-----BEGIN ...PRIVATE KEY-----)"),
        (certificate.to_string(), &key, "give a certificate and the key that belongs to it"),
    ] {
        let flags = format!("--no-p4 --grpc-server-ssl --grpc-server-cert {cert} --grpc-server-key {key}");
        let (code, err) = Switch::spawn(directory.path(), &flags).end();
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains(text), "«{err}» does not contain «{text}»");
    }
}

#[test]
fn connections_are_limited() {
    let switch = Switch::start("--no-p4 --grpc-server-addr 127.0.0.1:0 --max-connections 1");
    let uri = format!("http://{}", switch.address());
    in_runtime(async {
        let first = endpoint(uri.clone()).connect().await.unwrap();
        assert!(version(first.clone()).await.is_ok());
        assert!(query(endpoint(uri.clone())).await.is_err(), "a second connection got in");
        assert!(version(first.clone()).await.is_ok());
        drop(first);
        for attempt in 0.. {
            if query(endpoint(uri.clone())).await.is_ok() {
                break;
            }
            assert!(attempt < 500, "the place is not free again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn requests_are_limited() {
    let switch = Switch::start("--no-p4 --grpc-server-addr 127.0.0.1:0 --max-request-mib 1");
    let uri = format!("http://{}", switch.address());
    in_runtime(async {
        let mut client = P4RuntimeClient::connect(uri).await.unwrap();
        let mut push = async |bytes| {
            let config = p4::ForwardingPipelineConfig { p4_device_config: vec![0; bytes], ..Default::default() };
            let request = p4::SetForwardingPipelineConfigRequest { config: Some(config), ..Default::default() };
            client.set_forwarding_pipeline_config(request).await.unwrap_err()
        };
        let status = push(2 << 20).await;
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
        assert!(status.message().contains("1048576"), "{status}");
        // A smaller request passes the check of its size, and is refused only because its sender is not the primary
        // controller.
        assert_eq!(push(1 << 19).await.code(), Code::PermissionDenied);
    });
}
