//! TLS towards a subgraph on real sockets: how connections end, from either side.

use std::sync::Arc;

use ogive_net::{ClientTls, ClientTlsOptions, Http2, Identity, Pem, ServerTls, ServerTlsOptions};
use ogive_transport::{Client, Endpoint, HeaderRules, Traffic};
use rcgen::{CertificateParams, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::coop::{consume_budget, has_budget_remaining},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{OK, send};

/// A client and its connection to a subgraph, idle after one request, and the subgraph's side of it.
async fn idle() -> (Client, Endpoint, TlsStream<TcpStream>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let tls = ServerTls::load(ServerTlsOptions {
        identity: Identity {
            chain: Pem::Text(params.self_signed(&key).unwrap().pem()),
            key: Pem::Text(key.serialize_pem()),
        },
        client_authorities: None,
        client_required: false,
        http2: false,
    });
    let acceptor = TlsAcceptor::from(tls.unwrap().config());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let mut endpoint = Endpoint::new("a", &url, Traffic::default(), HeaderRules::default());
    let options = ClientTlsOptions {
        insecure_skip_verify: true,
        ..ClientTlsOptions::default()
    };
    let tls = ClientTls::load(options, Http2::Disable).unwrap();
    endpoint.tls = Ok(Some(Arc::new(tls)));
    let answer = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"{a}\"}") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        stream.write_all(OK.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        stream
    };
    let client = Client::new();
    let (answered, stream) = tokio::join!(send(&client, &endpoint, true), answer);
    assert_eq!(&answered.unwrap().body[..], b"{}");
    assert_eq!(client.idle_connections(&endpoint), 1);
    (client, endpoint, stream)
}

#[tokio::test]
async fn the_subgraph_is_told_that_a_connection_ends() {
    let (client, _, mut stream) = idle().await;
    drop(client);
    // Without the alert this is the error `UnexpectedEof`.
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_task_that_has_done_much_still_sees_which_connections_ended() {
    let (client, endpoint, mut stream) = idle().await;
    stream.shutdown().await.unwrap();
    drop(stream);
    // Lets the reactor hear of it.
    tokio::task::yield_now().await;
    while has_budget_remaining() {
        consume_budget().await;
    }
    assert_eq!((client.trim(), client.idle_connections(&endpoint)), (1, 0));
}
