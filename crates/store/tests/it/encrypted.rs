//! TLS, with certificates of an authority of our own, also of the client.

use std::{fs, path::PathBuf};

use ogive_store::StoreTls;
use ogive_testbase::left_out;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::{
    MISSING, Process, options, passed, quota,
    server::{Server, free_port},
};

struct Files(PathBuf);

impl Files {
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_server_is_trusted_by_its_authority_and_shown_a_certificate() {
    let files = Files(std::env::temp_dir().join(format!("ogive-redis-tls-{}", std::process::id())));
    fs::create_dir_all(&files.0).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let signed = || {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        // Another name than that of the authority.
        params.distinguished_name.push(DnType::CommonName, "redis");
        let certificate = params.signed_by(&key, &issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let (certificate, key) = signed();
    let paths = [
        files.write("server.pem", &certificate),
        files.write("server.key", &key),
        files.write("authority.pem", &authority),
    ];
    let more = [
        "--tls-cert-file",
        &paths[0],
        "--tls-key-file",
        &paths[1],
        "--tls-ca-cert-file",
        &paths[2],
        "--tls-auth-clients",
        "yes",
    ];
    let Some(server) = Server::encrypted(free_port(), &more) else {
        return left_out(MISSING);
    };
    let (certificate, key) = signed();
    let one = |authorities: &str, identity: Option<(&str, &str)>| {
        let mut options = options(vec![format!("rediss://127.0.0.1:{}", server.port)]);
        options.tls = StoreTls {
            authorities: Some(authorities.as_bytes().to_vec()),
            identity: identity.map(|(chain, key)| (chain.into(), key.into())),
        };
        Process::new(options)
    };
    let quota = quota(100, 36_000);
    let good = one(&authority, Some((&certificate, &key))).connected();
    assert_eq!(passed(std::slice::from_ref(&good), 150, quota), 100);
    assert!(!good.store.is_away());
    // Others count by themselves: nobody knows whom they speak to, or who they are.
    let (stranger, _) = signed();
    for other in [
        one(&stranger, Some((&certificate, &key))),
        one(&authority, None),
    ] {
        assert_eq!(passed(std::slice::from_ref(&other), 150, quota), 100);
        assert!(other.store.is_away());
    }
    let _ = fs::remove_dir_all(&files.0);
}
