//! A server on loopback for tests that answers each connection with given bytes.
//!
//! These tests are about HTTP itself: a head without an end, a body that is cut off, a connection
//! that hangs. The scripted models (`testdata/claude-code/fake_anthropic.py`, and the counting one of
//! `foreword-bench`) always answer well-formed HTTP.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// The server's behaviour on one connection.
pub enum Canned {
    /// Sends these bytes, then closes the connection.
    Says(String),
    /// Sends nothing until the client closes the connection.
    Hangs,
    /// Closes the connection at once.
    Closes,
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct CannedRequest {
    /// The request line and the headers, with names in lower case.
    pub head: String,
    pub body: Value,
}

pub struct CannedServer {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    requests: Arc<Mutex<Vec<CannedRequest>>>,
}

impl CannedServer {
    /// Serves one connection for each answer, in this order, then stops listening.
    pub fn start(answers: Vec<Canned>) -> CannedServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                seen.lock().unwrap().push(read(&mut stream));
                match answer {
                    Canned::Says(raw) => drop(stream.write_all(raw.as_bytes())),
                    Canned::Hangs => drop(stream.read(&mut [0])),
                    Canned::Closes => {}
                }
            }
        });
        CannedServer { url, requests }
    }

    pub fn requests(&self) -> Vec<CannedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

/// Runs a future on a runtime like the worker's.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// A whole answer.
pub fn says(status: u16, headers: &[(&str, &str)], body: &str) -> Canned {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    Canned::Says(format!(
        "HTTP/1.1 {status} Canned\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn read(stream: &mut TcpStream) -> CannedRequest {
    let mut raw = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&raw);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = lower_names(head);
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                let body = serde_json::from_str(body).unwrap_or(Value::Null);
                return CannedRequest { head, body };
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => panic!("a request that is not whole: {raw:?}"),
            Ok(count) => raw.extend_from_slice(&buffer[..count]),
        }
    }
}

fn lower_names(head: &str) -> String {
    let lines = head.lines().map(|line| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}\n", name.to_lowercase()),
        None => format!("{line}\n"),
    });
    lines.collect()
}
