//! A scripted server on loopback in place of a model. It counts its requests itself, to be compared
//! with the ledger.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::checkout;

pub struct Server {
    process: Child,
    program: &'static str,
    pub port: u16,
}

impl Server {
    /// `program` is a file below testdata.
    pub fn start(program: &'static str) -> Server {
        Server::start_at(program, 0)
    }

    fn start_at(program: &'static str, port: u16) -> Server {
        let mut process = Command::new("python3")
            .arg(checkout().join("testdata").join(program))
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the scripted model needs python3");
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().map(str::parse);
        let Some(Ok(port)) = port else {
            panic!("the scripted model did not come up: {line:?}");
        };
        Server {
            process,
            program,
            port,
        }
    }

    /// Answers like this from now on; the count of requests goes on.
    pub fn script(&self, script: &Value) {
        let answer = self.control("POST /__fake/script", &script.to_string());
        assert_eq!(answer, serde_json::json!({"ok": true}));
    }

    /// Every request so far.
    pub fn questions(&self) -> Vec<Question> {
        let entries = self.control("GET /__fake/requests", "");
        let is_question = |entry: &&Value| {
            let path = entry["path"].as_str().unwrap();
            path.ends_with("/messages") || path.ends_with("/chat/completions")
        };
        let questions = entries.as_array().unwrap().iter().filter(is_question);
        questions
            .map(|entry| Question(entry["body"].clone()))
            .collect()
    }

    /// Stops listening until it is started again.
    pub fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub fn start_again(&mut self) {
        *self = Server::start_at(self.program, self.port);
    }

    fn control(&self, what: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{what} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The body of one request to the model.
#[derive(Debug)]
pub struct Question(pub Value);

impl Question {
    /// Whether a text of the request contains these words.
    pub fn contains(&self, words: &str) -> bool {
        texts(&self.0).iter().any(|text| text.contains(words))
    }

    /// Foreword's own text to the model, without what a client adds.
    pub fn text(&self) -> String {
        let texts = texts(&self.0);
        let ours = texts.iter().find(|text| text.contains("Session: "));
        (*ours.expect("a question names its session")).to_owned()
    }

    /// The text between the fences, and the text outside of them.
    pub fn fenced(&self) -> (Vec<String>, String) {
        let (mut inside, mut outside, mut fence) = (Vec::new(), String::new(), None);
        for line in self.text().lines() {
            match &fence {
                None => match line
                    .strip_prefix("<data ")
                    .and_then(|it| it.strip_suffix('>'))
                {
                    Some(name) => {
                        fence = Some(format!("</data {name}>"));
                        inside.push(String::new());
                    }
                    None => outside.extend([line, "\n"]),
                },
                Some(end) if line == end => fence = None,
                Some(_) => inside.last_mut().unwrap().extend([line, "\n"]),
            }
        }
        assert_eq!(fence, None, "a fence is left open");
        (inside, outside)
    }
}

/// Every string in a JSON value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
