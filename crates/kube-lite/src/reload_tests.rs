use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::files::tests::make_pipe;
use super::*;
use crate::access::Flags;

/// A server that accepts some tokens. It answers `/watch` with one line and no end, and all else with its name.
#[derive(Clone)]
struct Server {
    name: &'static str,
    address: SocketAddr,
    accepts: Arc<Mutex<BTreeSet<String>>>,
    requests: Arc<Mutex<u32>>,
}

impl Server {
    async fn start(name: &'static str, accepts: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            name,
            address: listener.local_addr().unwrap(),
            accepts: Arc::default(),
            requests: Arc::default(),
        };
        server.accept(accepts);
        let theirs = server.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(theirs.clone().serve(client));
            }
        });
        server
    }

    /// Accepts these tokens and no others.
    fn accept(&self, tokens: &[&str]) {
        *self.accepts.lock().unwrap() = tokens.iter().map(|token| format!("Bearer {token}")).collect();
    }

    fn requests(&self) -> u32 {
        *self.requests.lock().unwrap()
    }

    async fn serve(self, mut client: TcpStream) -> std::io::Result<()> {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await?);
            }
            *self.requests.lock().unwrap() += 1;
            let head = String::from_utf8(head).unwrap();
            let token = head.lines().find_map(|line| line.strip_prefix("authorization: "));
            let known = self.accepts.lock().unwrap().contains(token.unwrap_or_default());
            let answer = if !known {
                "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned()
            } else if head.starts_with("GET /watch") {
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhere\r\n".to_owned()
            } else {
                let name = self.name;
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len())
            };
            client.write_all(answer.as_bytes()).await?;
        }
    }
}

fn write_kubeconfig(path: &Path, server: SocketAddr, user: &str) {
    let text = format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'http://{server}'}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    );
    fs::write(path, text).unwrap();
}

fn open(path: &Path) -> Reloading {
    let source = AccessSource::Kubeconfig {
        path: path.to_owned(),
        context: None,
        flags: Flags::default(),
    };
    Reloading::open("hub", source, "test".into()).unwrap()
}

async fn get(server: &Reloading, path: &str) -> Result<Response, Error> {
    server.send(http::Request::get(path).body(Bytes::new()).unwrap()).await
}

/// The name of the server that answers, or the status code.
async fn ask(server: &Reloading) -> String {
    let mut response = get(server, "/").await.unwrap();
    if response.status != 200 {
        return response.status.to_string();
    }
    let name = response.body.next().await.unwrap().unwrap();
    String::from_utf8(name.to_vec()).unwrap()
}

/// The age at which files are read although nothing has failed.
async fn wait_a_minute() {
    tokio::time::pause();
    tokio::time::advance(MAX_AGE).await;
    tokio::time::resume();
}

async fn wait_a_second() {
    tokio::time::pause();
    tokio::time::advance(MAX_AGE_AFTER_FAILURE).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_kubeconfig_leaves_the_last_one_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let hub = Server::start("hub", &["one", "two"]).await;
    write_kubeconfig(&path, hub.address, "token: one");
    let server = open(&path);
    make_pipe(&path);
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert!(server.unusable.get().is_some());

    fs::remove_file(&path).unwrap();
    write_kubeconfig(&path, hub.address, "token: two");
    hub.accept(&["two"]);
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
}

#[tokio::test]
async fn a_renewed_token_is_used_for_the_request_that_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let hub = Server::start("hub", &["one"]).await;
    write_kubeconfig(&path, hub.address, "token: one");
    let server = open(&path);
    assert_eq!(ask(&server).await, "hub");

    hub.accept(&["two"]);
    wait_a_second().await;
    assert_eq!(ask(&server).await, "401", "there is no other token yet");
    assert_eq!(hub.requests(), 2, "a refused request is not repeated without a reason");
    write_kubeconfig(&path, hub.address, "token: two");
    wait_a_second().await;
    assert_eq!(ask(&server).await, "hub");
}

#[tokio::test]
async fn a_renewed_token_file_is_used_for_the_request_that_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let token = folder.path().join("token");
    let hub = Server::start("hub", &["one"]).await;
    fs::write(&token, "one\n").unwrap();
    write_kubeconfig(&path, hub.address, "tokenFile: token");
    let server = open(&path);
    assert_eq!(ask(&server).await, "hub");
    hub.accept(&["two"]);
    assert_eq!(ask(&server).await, "401");
    fs::write(&token, "two\n").unwrap();
    assert_eq!(ask(&server).await, "hub");
}

#[tokio::test]
async fn a_replaced_kubeconfig_is_used_within_a_minute_and_watches_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let hub = Server::start("hub", &["one", "two"]).await;
    write_kubeconfig(&path, hub.address, "token: one");
    let server = open(&path);
    let mut watch = get(&server, "/watch").await.unwrap();
    assert_eq!(watch.body.next().await.unwrap().unwrap(), "here");
    write_kubeconfig(&path, hub.address, "token: two");
    let (before, bytes) = (server.current(), server.link_bytes());
    assert!(bytes.iter().all(|bytes| *bytes > 0), "{bytes:?}");
    assert_eq!(ask(&server).await, "hub");
    assert!(Rc::ptr_eq(&before, &server.current()), "nothing has failed");
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert!(!Rc::ptr_eq(&before, &server.current()));
    drop(before);
    let counted_on = server.link_bytes().into_iter().zip(bytes).all(|(now, then)| now > then);
    assert!(counted_on, "{bytes:?} {:?}", server.link_bytes());
    let more = tokio::time::timeout(Duration::from_millis(50), watch.body.next()).await;
    assert!(more.is_err(), "the watch is still open: {more:?}");
}

#[tokio::test]
async fn another_address_ends_open_watches_so_that_they_begin_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let old = Server::start("old", &["one"]).await;
    let new = Server::start("new", &["one"]).await;
    write_kubeconfig(&path, old.address, "token: one");
    let server = open(&path);
    let mut watch = get(&server, "/watch").await.unwrap();
    assert_eq!(watch.body.next().await.unwrap().unwrap(), "here");
    write_kubeconfig(&path, new.address, "token: one");
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "new");
    assert!(watch.body.next().await.unwrap().unwrap_err().is_expired());
    assert!(watch.body.next().await.is_none());
}

#[tokio::test]
async fn a_failed_connection_is_reason_enough_to_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let hub = Server::start("hub", &["one"]).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    write_kubeconfig(&path, nobody, "token: one");
    let server = open(&path);
    write_kubeconfig(&path, hub.address, "token: one");
    wait_a_second().await;
    let error = get(&server, "/").await.err().unwrap();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert_eq!(ask(&server).await, "hub");
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_leaves_the_last_one_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let hub = Server::start("hub", &["one", "two"]).await;
    write_kubeconfig(&path, hub.address, "token: one");
    let server = open(&path);
    for broken in ["", "{", "users: 7"] {
        fs::write(&path, broken).unwrap();
        wait_a_minute().await;
        assert_eq!(ask(&server).await, "hub", "{broken}");
        assert!(server.unusable.get().is_some(), "{broken}");
    }
    fs::remove_file(&path).unwrap();
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");

    for user in ["exec: {command: aws}", "token: ''", "tokn: two", ""] {
        write_kubeconfig(&path, hub.address, user);
        wait_a_minute().await;
        assert_eq!(ask(&server).await, "hub", "{user:?}");
        assert!(server.unusable.get().is_some(), "{user:?} stays refused");
    }
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace(&hub.address.to_string(), "127.0.0.1:99999")
            .replace("{}", "{token: one}"),
    )
    .unwrap();
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert!(server.unusable.get().is_some(), "a port that is none stays refused");

    write_kubeconfig(&path, hub.address, "token: two");
    hub.accept(&["two"]);
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert!(server.unusable.get().is_none());
}

#[tokio::test]
async fn files_that_the_kubeconfig_names_count_too_even_when_they_come_late() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let made = rcgen::generate_simple_self_signed(["hub".to_owned()]).unwrap();
    let hub = Server::start("hub", &["one"]).await;
    write_kubeconfig(&path, hub.address, "token: one");
    let server = open(&path);
    write_kubeconfig(
        &path,
        hub.address,
        "token: one, client-certificate: cert, client-key: key",
    );
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert!(server.unusable.get().is_some(), "the certificate is not there yet");
    fs::write(folder.path().join("cert"), made.cert.pem()).unwrap();
    fs::write(folder.path().join("key"), made.signing_key.serialize_pem()).unwrap();
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    let before = server.current();
    assert_eq!(before.files.len(), 3);

    let other = rcgen::generate_simple_self_signed(["hub".to_owned()]).unwrap();
    fs::write(folder.path().join("cert"), other.cert.pem()).unwrap();
    fs::write(folder.path().join("key"), other.signing_key.serialize_pem()).unwrap();
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert!(!Rc::ptr_eq(&before, &server.current()));
}

fn token_of(account: &str, issued: u64) -> String {
    let claims = format!(
        r#"{{"sub":"system:serviceaccount:n:{account}","iat":{issued},"exp":{}}}"#,
        issued + 9
    );
    crate::claims::token(&claims)
}

#[tokio::test]
async fn of_several_tokens_of_one_account_the_one_that_was_issued_last_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (path, kept) = (folder.path().join("config"), folder.path().join("kept"));
    let hub = Server::start("hub", &[]).await;
    let write = |path: &Path, token: &str| write_kubeconfig(path, hub.address, &format!("token: {token}"));
    let [older, old, new, newer] = [4, 5, 6, 7].map(|issued| token_of("a", issued));
    let other = token_of("b", 1);
    let source = AccessSource::Kubeconfig {
        path: path.clone(),
        context: None,
        flags: Flags::default(),
    };
    for (in_config, in_kept, given, expected) in [
        (&old, None, None, &old),
        (&old, Some(&new), None, &new),
        (&new, Some(&old), None, &new),
        (&old, Some(&older), Some(&new), &new),
        (&old, Some(&newer), Some(&new), &newer),
        // Another account was meant, whenever its token was issued.
        (&other, Some(&new), Some(&newer), &other),
        (&old, Some(&other), None, &old),
    ] {
        write(&path, in_config);
        let _ = fs::remove_file(&kept);
        if let Some(token) = in_kept {
            write(&kept, token);
        }
        let renewed = Renewed {
            file: Some(kept.clone()),
            ..Renewed::default()
        };
        let server = Reloading::open_with("hub", source.clone(), renewed, "test".into()).unwrap();
        if let Some(token) = given {
            server.use_token(token.clone().into());
        }
        hub.accept(&[expected]);
        assert_eq!(ask(&server).await, "hub", "{in_config} {in_kept:?} {given:?}");
        let is_of_kept = in_kept.is_some_and(|kept| kept == expected);
        let login = &server.place().login;
        assert_eq!(
            login.ends_with(&format!("which was renewed in {}", kept.display())),
            is_of_kept,
            "{login}"
        );
    }
    // What cannot be read is no reason to stop.
    for text in ["", "no kubeconfig", "clusters: []", "\u{0}"] {
        write(&path, &old);
        fs::write(&kept, text).unwrap();
        let renewed = Renewed {
            file: Some(kept.clone()),
            ..Renewed::default()
        };
        let server = Reloading::open_with("hub", source.clone(), renewed, "test".into()).unwrap();
        hub.accept(&[&old]);
        assert_eq!(ask(&server).await, "hub", "{text}");
    }
}

#[tokio::test]
async fn a_renewed_token_stays_in_use_until_the_file_has_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let hub = Server::start("hub", &[]).await;
    let write = |token: &str| write_kubeconfig(&path, hub.address, &format!("token: {token}"));
    let [old, new, newer] = [5, 6, 7].map(|issued| token_of("a", issued));
    write(&old);
    let server = open(&path);
    let before = server.credentials();
    server.use_token(new.clone().into());
    assert_ne!(server.credentials(), before, "whoever was refused asks again at once");
    assert_eq!(server.credentials_end(), Some(15));
    hub.accept(&[&new]);
    assert_eq!(ask(&server).await, "hub");
    // The file is written again with what it had, as by a mount that lags behind.
    fs::write(&path, fs::read_to_string(&path).unwrap() + "\n").unwrap();
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    write(&newer);
    hub.accept(&[&newer]);
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
    assert_eq!(server.credentials_end(), Some(16));
    // With a file that cannot be used, the next one is in use as soon as that can be.
    fs::write(&path, "no kubeconfig").unwrap();
    let newest = token_of("a", 8);
    server.use_token(newest.clone().into());
    assert_eq!(ask(&server).await, "hub", "the last one");
    write(&old);
    hub.accept(&[&newest]);
    wait_a_minute().await;
    assert_eq!(ask(&server).await, "hub");
}
