//! A model that is a server in this process: it answers `POST /v1/messages` as Anthropic's API does,
//! also as a stream, and chat completions as OpenAI's, and counts.
//!
//! A token is four characters of the text that a model would read: the instructions and the
//! messages, not the JSON around them. The answer reports the same counts as its usage, so
//! Foreword's ledger must arrive at the same sums. `cache` decides what a provider would have cached.
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
use super::cache::{CacheMin, Part, PromptCache};

/// Calls and tokens since the model was started.
#[derive(Debug, Clone, Default)]
pub struct CallCounts {
    pub calls: u64,
    pub input: u64,
    /// Tokens of the input that are instructions, the same in each call.
    pub instructions: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_written: u64,
    /// Observations in the answers.
    pub observations: u64,
    /// Summaries in the answers.
    pub summaries: u64,
    /// Tokens of input, call by call.
    pub inputs: Vec<u64>,
    /// Requests to another path.
    pub strange: u64,
}

pub struct CountingModel {
    address: SocketAddr,
    state: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    counted: Mutex<CallCounts>,
    cache: Mutex<PromptCache>,
    ended: AtomicBool,
    /// Whether requests are answered with “overloaded”.
    down: AtomicBool,
}

impl ServerState {
    fn counted(&self) -> MutexGuard<'_, CallCounts> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, PromptCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The variables that make a worker ask this model through OpenAI's API, as a local one that costs
    /// nothing, or as one at another address that is reached by a proxy.
    pub fn openai_environment(&self, local: bool) -> [(&'static str, String); 5] {
        let address = if local {
            format!("http://{}/v1", self.address)
        } else {
            "http://model.example/v1".to_owned()
        };
        [
            ("FOREWORD_PROVIDER", "openai".to_owned()),
            ("FOREWORD_OPENAI_BASE_URL", address),
            ("FOREWORD_OPENAI_MODEL", "gpt-5-mini".to_owned()),
            ("OPENAI_API_KEY", "a-test-key".to_owned()),
            ("HTTP_PROXY", format!("http://{}", self.address)),
        ]
    }

    /// The variables that make a worker ask this model through the claude CLI.
    pub fn claude_environment(&self, client: &str) -> [(&'static str, String); 4] {
        [
            ("FOREWORD_PROVIDER", "claude".to_owned()),
            ("FOREWORD_CLAUDE_COMMAND", client.to_owned()),
            ("ANTHROPIC_BASE_URL", format!("http://{}", self.address)),
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

    /// Lets time pass for the cache.
    pub fn let_pass(&self, minutes: u64) {
        self.state.cache().let_pass(minutes);
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
        } else if path.ends_with("/chat/completions") || path.starts_with("/v1/messages") {
            ("200 OK", reply(&question, &path, state))
        } else {
            state.counted().strange += 1;
            ("404 Not Found", error("not_found_error"))
        };
        // Chat completions come whole, as from servers that do not stream.
        let is_streamed = question["stream"] == true && path.starts_with("/v1/messages");
        let (kind, answer) = if is_streamed && status == "200 OK" {
            ("text/event-stream", stream_of(&answer))
        } else {
            ("application/json", answer.to_string())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
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

fn reply(question: &Value, path: &str, state: &ServerState) -> Value {
    let is_openai = path.ends_with("/chat/completions");
    let messages = || question["messages"].as_array().into_iter().flatten();
    let role = |it: &Value, role: &str| it["role"] == role;
    let mut parts: Vec<Part> = blocks(&question["system"]);
    let instructions: u64 = match messages().next() {
        Some(first) if role(first, "system") => tokens(&text_of(&first["content"])),
        _ => parts.iter().map(|it| tokens(&it.text)).sum(),
    };
    parts.extend(messages().flat_map(|it| blocks(&it["content"])));
    let min = if is_openai {
        CacheMin(1_024)
    } else {
        CacheMin(4_096)
    };
    if is_openai {
        parts.iter_mut().for_each(|it| it.marked = true);
    }
    let used = state.cache().take(&parts, min);
    let written = if is_openai { 0 } else { used.written };

    let last = messages().rfind(|it| role(it, "user"));
    let last = last.map_or_else(String::new, |it| text_of(&it["content"]));
    let mut counted = state.counted();
    let answer = answer::to(&last, counted.calls);
    let output = tokens(&answer);
    counted.calls += 1;
    counted.input += used.input;
    counted.instructions += instructions;
    counted.output += output;
    counted.cache_read += used.read;
    counted.cache_written += written;
    counted.inputs.push(used.input);
    counted.observations += answer.matches("</observation>").count() as u64;
    counted.summaries += answer.matches("</summary>").count() as u64;
    if is_openai {
        return json!({
            "object": "chat.completion",
            "model": question["model"],
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": answer},
                "finish_reason": "stop",
            }],
            "usage": {
                "prompt_tokens": used.input,
                "completion_tokens": output,
                "prompt_tokens_details": {"cached_tokens": used.read},
            },
        });
    }
    json!({
        "id": format!("msg_{:04}", counted.calls),
        "type": "message",
        "role": "assistant",
        "model": question["model"],
        "content": [{"type": "text", "text": answer}],
        "stop_reason": "end_turn",
        "stop_sequence": null,
        "usage": {
            "input_tokens": used.input - used.read - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": used.read,
            "output_tokens": output,
        },
    })
}

/// A message as the events of a stream.
fn stream_of(message: &Value) -> String {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let text = &message["content"][0]["text"];
    let events = [
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": message["usage"],
        }),
        json!({"type": "message_stop"}),
    ];
    let event = |it: &Value| {
        format!(
            "event: {}\ndata: {it}\n\n",
            it["type"].as_str().unwrap_or("")
        )
    };
    events.iter().map(event).collect()
}

fn tokens(text: &str) -> u64 {
    text::tokens(text) as u64
}

/// The parts of a system prompt or a message. The client's line for its own bill, which changes from
/// process to process, is not one.
fn blocks(content: &Value) -> Vec<Part> {
    let part = |text: &str, marked| Part {
        text: text.to_owned(),
        marked,
    };
    match content {
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|it| Some((it["text"].as_str()?, it["cache_control"].is_object())))
            .filter(|(text, _)| !text.starts_with("x-anthropic-"))
            .map(|(text, marked)| part(text, marked))
            .collect(),
        Value::String(text) => vec![part(text, false)],
        _ => Vec::new(),
    }
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
