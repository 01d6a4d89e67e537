//! A model that is a server in this process: it answers `POST /v1/messages` as
//! Anthropic's API does, and counts.
//!
//! A token is four characters of the text that a model would read: the instructions and the
//! messages, not the JSON around them. The answer reports the same counts as its usage, so
//! Foreword's ledger must arrive at the same sums.
//!
//! Unlike `testdata/claude-code/fake_anthropic.py`, which the tests with a real client use, it has no
//! script: it makes its answer of the question, and needs neither Python nor a checkout.

use std::io::{self, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use foreword_core::text;
use serde_json::{Value, json};

use super::answer;

/// Calls and tokens since the model was started.
#[derive(Debug, Clone, Default)]
pub struct CallCounts {
    pub calls: u64,
    pub input: u64,
    /// Tokens of the input that are instructions, the same in each call.
    pub instructions: u64,
    pub output: u64,
    /// Observations in the answers.
    pub observations: u64,
    /// Summaries in the answers.
    pub summaries: u64,
    /// Tokens of input, call by call.
    pub inputs: Vec<u64>,
    /// Requests to another path than `/v1/messages`.
    pub strange: u64,
}

pub struct CountingModel {
    address: SocketAddr,
    state: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    counted: Mutex<CallCounts>,
    ended: AtomicBool,
    /// Whether requests are answered with “overloaded”.
    down: AtomicBool,
}

impl ServerState {
    fn counted(&self) -> MutexGuard<'_, CallCounts> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountingModel {
    pub fn start() -> anyhow::Result<CountingModel> {
        let listener = TcpListener::bind("127.0.0.1:0").context("could not listen on loopback")?;
        let address = listener.local_addr()?;
        let state = Arc::<ServerState>::default();
        let model = CountingModel {
            address,
            state: Arc::clone(&state),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if state.ended.load(Ordering::Relaxed) {
                    break;
                }
                let state = Arc::clone(&state);
                // The client reports a broken connection; it is no error here.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, &state)));
            }
        });
        Ok(model)
    }

    /// The variables that make a worker ask this model.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        let address = format!("http://{}", self.address);
        [
            ("FOREWORD_PROVIDER", "anthropic".to_owned()),
            ("FOREWORD_ANTHROPIC_BASE_URL", address),
            ("ANTHROPIC_API_KEY", "a-test-key".to_owned()),
        ]
    }

    /// Answers every request with “overloaded” from now on, or normally again.
    pub fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::Relaxed);
    }

    pub fn counted(&self) -> CallCounts {
        self.state.counted().clone()
    }
}

impl Drop for CountingModel {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        // The listener accepts this connection, sees the flag and ends.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of one connection until it is closed.
fn serve(stream: TcpStream, state: &ServerState) -> io::Result<()> {
    let mut answers = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    while let Some((path, body)) = next_request(&mut requests)? {
        let question = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": kind}});
        let (status, answer) = if state.down.load(Ordering::Relaxed) {
            ("529 Overloaded", error("overloaded_error"))
        } else if path == "/v1/messages" {
            ("200 OK", reply(&question, &mut state.counted()))
        } else {
            state.counted().strange += 1;
            ("404 Not Found", error("not_found_error"))
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        answers.write_all((head + &answer).as_bytes())?;
    }
    Ok(())
}

/// The path and the body of the next request; none when the connection is closed.
fn next_request(requests: &mut impl io::BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if requests.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    requests.read_exact(&mut body)?;
    Ok(Some((path, body)))
}

fn reply(question: &Value, counted: &mut CallCounts) -> Value {
    let instructions = text_of(&question["system"]);
    let messages = question["messages"].as_array().into_iter().flatten();
    let messages: Vec<String> = messages.map(|it| text_of(&it["content"])).collect();
    let messages = messages.join("\n");

    let answer = answer::to(&messages, counted.calls);
    let tokens = |it: &str| text::tokens(it) as u64;
    let input = tokens(&instructions) + tokens(&messages);
    counted.calls += 1;
    counted.input += input;
    counted.instructions += tokens(&instructions);
    counted.output += tokens(&answer);
    counted.inputs.push(input);
    counted.observations += answer.matches("</observation>").count() as u64;
    counted.summaries += answer.matches("</summary>").count() as u64;
    json!({
        "id": format!("msg_{:04}", counted.calls),
        "type": "message",
        "role": "assistant",
        "model": question["model"],
        "content": [{"type": "text", "text": answer}],
        "stop_reason": "end_turn",
        "stop_sequence": null,
        "usage": {
            "input_tokens": input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens(&answer),
        },
    })
}

/// A text, or the texts of a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn two_questions_on_one_connection_are_answered_and_counted() {
        let model = CountingModel::start().unwrap();
        let mut stream = TcpStream::connect(model.address).unwrap();
        let question = json!({
            "model": "some-model",
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": "What happened to the parser?"}],
        });
        let question = question.to_string();
        let mut used = 0;
        for _ in 0..2 {
            let length = question.len();
            write!(
                stream,
                "POST /v1/messages HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{question}"
            )
            .unwrap();
            let (_, answer) = next_answer(&mut stream);
            assert_eq!(answer["model"], "some-model");
            assert_eq!(answer["usage"]["input_tokens"], 3 + 7);
            used += answer["usage"]["output_tokens"].as_u64().unwrap();
        }
        write!(stream, "GET /elsewhere HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(next_answer(&mut stream).0, "HTTP/1.1 404 Not Found");
        model.set_down(true);
        write!(stream, "POST /v1/messages HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(next_answer(&mut stream).0, "HTTP/1.1 529 Overloaded");

        let counted = model.counted();
        assert_eq!(
            (counted.calls, counted.input, counted.instructions),
            (2, 20, 6)
        );
        assert_eq!((counted.output, counted.observations), (used, 2));
        assert_eq!((counted.summaries, counted.strange), (0, 1));
    }

    fn next_answer(stream: &mut TcpStream) -> (String, Value) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let (_, length) = head.trim_end().rsplit_once(' ').unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        let first = head.lines().next().unwrap().to_owned();
        (first, serde_json::from_slice(&body).unwrap())
    }
}
