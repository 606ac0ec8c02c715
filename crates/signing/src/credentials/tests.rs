//! Where credentials are looked for, and what is made of what is found there.

use std::collections::HashMap;

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};

use super::*;

/// The environment of a test.
fn env(pairs: &[(&str, &str)]) -> Box<Environment> {
    let pairs: HashMap<String, String> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Box::new(move |name| pairs.get(name).cloned())
}

fn chain(pairs: &[(&str, &str)], profile: Option<&str>) -> Chain {
    Chain {
        options: AwsOptions {
            target: Target {
                region: "eu-central-1".into(),
                service: "execute-api".into(),
            },
            source: CredentialSource::Found {
                profile: profile.map(str::to_owned),
            },
            assume_role: None,
        },
        env: env(pairs),
    }
}

#[tokio::test]
async fn the_environment_comes_first_and_nothing_at_all_says_so() {
    let all = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("AWS_SESSION_TOKEN", "t0ken"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/no/such/file"),
        ("AWS_ROLE_ARN", "arn:x"),
    ];
    let found = chain(&all, None).find().await.ok().unwrap();
    assert_eq!(found.credentials.access_key_id, "AKID");
    assert_eq!(found.credentials.session_token, Some(Secret::new("t0ken")));
    let shown = format!("{:?}", found.credentials);
    assert!(
        !shown.contains("s3cret") && !shown.contains("t0ken"),
        "{shown}"
    );
    let missing = chain(&all[2..], None).find().await.err().unwrap();
    assert!(missing.contains("/no/such/file"), "{missing}");
    let none = chain(
        &[
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ],
        None,
    )
    .find()
    .await
    .err()
    .unwrap();
    assert!(none.starts_with("there are none: "), "{none}");
}

#[test]
fn only_known_machines_are_asked_over_plain_http() {
    let place = |name: &str, value: &str| {
        let env = env(&[(name, value)]);
        container::Place::of(&*env).map(|place| place.is_some())
    };
    let full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    for url in [
        "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials",
        "http://127.0.0.1:9/x",
        "http://[::1]:9/x",
        "https://credentials.example/x",
    ] {
        assert_eq!(place(full, url), Ok(true), "{url}");
    }
    for url in [
        "http://10.0.0.1/",
        "http://credentials.example/",
        "unix:///a",
        "ftp://127.0.0.1/",
    ] {
        assert!(place(full, url).is_err(), "{url}");
    }
    let relative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    assert_eq!(place(relative, "/v2/credentials/x"), Ok(true));
    assert!(place(relative, "@evil.example/").is_err());
    assert_eq!(place("OTHER", ""), Ok(false));
}

#[test]
fn answers_of_containers_and_of_sts_are_read() {
    let json = br#"{"AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2030-01-01T00:00:00Z","RoleArn":"x"}"#;
    let xml = "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials>\
        <AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey>\n<SessionToken> T&amp;lt;/ </SessionToken>\
        <Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
    for (read, token) in [(container::read(json), "T"), (sts::read(xml), "T&lt;/")] {
        let read = read.ok().unwrap();
        assert_eq!(read.credentials.access_key_id, "A");
        assert_eq!(read.credentials.session_token, Some(Secret::new(token)));
        assert_eq!(read.ends.map(crate::clock::seconds), Some(1_893_456_000));
    }
    let error = |read: Result<Temporary, String>| read.err().unwrap();
    assert_eq!(
        error(container::read(b"<html>")),
        "the container's endpoint: its answer is no JSON"
    );
    assert_eq!(
        error(container::read(b"{}")),
        "the container's endpoint: its answer has no `Expiration`"
    );
    assert_eq!(
        error(sts::read("<html>")),
        "STS: its answer has no `Expiration`"
    );
}

#[tokio::test]
async fn a_profile_has_keys_of_its_own() {
    let folder = std::env::temp_dir().join(format!("ogive-signing-profile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("credentials");
    let text = "[default]\naws_access_key_id = OTHER\naws_secret_access_key = x\n[ team ]\n# a comment\n\
        aws_access_key_id=AKID\naws_secret_access_key = a/b=c\n[empty]\n";
    std::fs::write(&file, text).unwrap();
    let env = env(&[("AWS_SHARED_CREDENTIALS_FILE", file.to_str().unwrap())]);
    let read = async |name: &str| profile::read(name, &*env).await;
    let team = read("team").await.ok().unwrap().credentials;
    assert_eq!(
        (&*team.access_key_id, team.secret_access_key.expose()),
        ("AKID", "a/b=c")
    );
    assert!(
        read("empty")
            .await
            .err()
            .unwrap()
            .contains("the profile `empty`")
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A server that answers as it is told to, and what it was asked.
fn server(status: u16, body: &'static str) -> StubSubgraph {
    StubSubgraph::answering(status, "", body)
}

const JSON: &str =
    r#"{"AccessKeyId":"A","SecretAccessKey":"S","Token":"T","Expiration":"2100-01-01T00:00:00Z"}"#;
const XML: &str = "<Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey>\
    <SessionToken>T</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>";

#[tokio::test]
async fn credentials_come_from_the_container_and_are_told_where_to() {
    let container = server(200, JSON);
    let url = format!("{}v1/credentials", container.url());
    let env = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret-token"),
    ];
    let fetched = chain(&env, None).fetch().await.ok().unwrap();
    assert_eq!(fetched.value.access_key_id, "A");
    assert!(
        fetched
            .lives
            .is_some_and(|lives| lives > Duration::from_secs(3_600))
    );
    let request = container.requests().remove(0);
    assert!(
        request.starts_with("GET /v1/credentials HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("authorization: secret-token\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn what_containers_answer_wrongly_is_told() {
    let ended = JSON.replace("2100", "2000");
    for (status, body, why) in [
        (404, "", "the container's endpoint: it answered 404"),
        (
            200,
            "<html>",
            "the container's endpoint: its answer is no JSON",
        ),
        (200, &*ended, "they have ended already"),
    ] {
        let container = StubSubgraph::answering(status, "", body);
        let url = container.url();
        let fetched = chain(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*url)], None)
            .fetch()
            .await
            .err();
        assert_eq!(fetched.as_deref(), Some(why));
    }
}

#[tokio::test]
async fn a_web_identity_is_changed_for_credentials() {
    let sts = server(200, XML);
    let file = std::env::temp_dir().join(format!("ogive-signing-identity-{}", std::process::id()));
    std::fs::write(&file, "a.b.c\n").unwrap();
    let url = sts.url();
    let env = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ENDPOINT_URL_STS", &*url),
    ];
    let fetched = chain(&env, None).fetch().await.ok().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(fetched.value.session_token, Some(Secret::new("T")));
    let request = sts.requests().remove(0);
    let body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&\
        RoleSessionName=ogive&WebIdentityToken=a.b.c";
    assert!(request.ends_with(body), "{request}");
    assert!(!request.contains("authorization: "), "{request}");
}

#[tokio::test]
async fn a_role_is_taken_with_a_signed_request() {
    let sts = server(200, XML);
    let url = sts.url();
    let mut chain = chain(
        &[
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("AWS_ENDPOINT_URL_STS", &*url),
        ],
        None,
    );
    chain.options.assume_role = Some(AssumeRole {
        role_arn: "arn:r".into(),
        session_name: "shop".into(),
        external_id: Some("e".into()),
    });
    assert_eq!(chain.fetch().await.ok().unwrap().value.access_key_id, "A");
    let request = sts.requests().remove(0);
    let body =
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Ar&RoleSessionName=shop&ExternalId=e";
    assert!(request.ends_with(body), "{request}");
    assert!(
        request.contains("Credential=AKID/") && request.contains("/eu-central-1/sts/aws4_request"),
        "{request}"
    );
}

#[tokio::test]
async fn an_instance_is_asked_for_a_token_first() {
    let instance = StubSubgraph::start(|_, request| {
        let has_token = request.contains("x-aws-ec2-metadata-token: t0ken\r\n");
        let body = match request.split(' ').nth(1) {
            Some("/latest/api/token") if request.starts_with("PUT ") => "t0ken",
            Some("/latest/meta-data/iam/security-credentials/") if has_token => "shop-role\n",
            Some("/latest/meta-data/iam/security-credentials/shop-role") if has_token => JSON,
            _ => return Reply::Whole(answer(401, "", b"")),
        };
        Reply::Whole(answer(200, "", body.as_bytes()))
    });
    let url = instance.url();
    let fetched = chain(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*url)], None)
        .fetch()
        .await;
    assert_eq!(fetched.ok().unwrap().value.access_key_id, "A");
    assert_eq!(instance.asked(), 3);
}

#[tokio::test]
async fn no_token_is_sent_to_another_machine_in_the_clear() {
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("AWS_ENDPOINT_URL_STS", "http://sts.example.com/"),
    ];
    let mut sts = chain(&keys, None);
    sts.options.assume_role = Some(AssumeRole {
        role_arn: "arn:r".into(),
        session_name: "shop".into(),
        external_id: None,
    });
    let why = sts.fetch().await.err().unwrap();
    assert!(why.contains("AWS_ENDPOINT_URL_STS"), "{why}");
    let elsewhere = [(
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "http://metadata.example.com",
    )];
    let why = chain(&elsewhere, None).fetch().await.err().unwrap();
    assert!(why.contains("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "{why}");
}
