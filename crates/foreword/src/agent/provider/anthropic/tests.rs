//! Requests and answers of the Messages API.

use std::time::Duration;

use super::http::canned::{Canned, CannedServer, block_on, says};
use super::*;

const KEY: &str = "a-key-that-nobody-may-see";

const QUESTION: Question<'static> = Question {
    system: "be brief",
    text: "what happened?",
    patience: Duration::from_secs(20),
    answer_max: 512,
    schema: None,
    now: 1_794_819_600_000,
};

fn provider(base_url: &str) -> Anthropic {
    Anthropic::new(&config::AnthropicSection {
        base_url: base_url.to_owned(),
        model: "claude-haiku-4-5".to_owned(),
    })
}

fn ask_with(provider: &mut Anthropic, key: Option<&str>) -> ModelCall {
    block_on(provider.ask_with(key, &QUESTION, None))
}

fn ask(canned: Canned) -> ModelCall {
    let server = CannedServer::start(vec![canned]);
    ask_with(&mut provider(&server.url), Some(KEY))
}

fn message(content: Value, stop_reason: &str) -> Canned {
    let message = json!({
        "type": "message",
        "model": "claude-haiku-4-5-20251001",
        "content": content,
        "stop_reason": stop_reason,
        "usage": {
            "input_tokens": 1000,
            "cache_creation_input_tokens": 2000,
            "cache_read_input_tokens": 4000,
            "output_tokens": 100,
        },
    });
    says(200, &[], &message.to_string())
}

/// A call with the model, the usage and the cost of `message`.
fn paid(answer: Result<String, Failure>) -> ModelCall {
    ModelCall {
        requests: 1,
        model: Some("claude-haiku-4-5-20251001".to_owned()),
        usage: Usage {
            input: 7000,
            output: 100,
            cache_read: 4000,
            cache_write: 2000,
        },
        cost_usd: Some((1000.0 + 2000.0 * 1.25 + 4000.0 * 0.1 + 100.0 * 5.0) / 1e6),
        answer,
    }
}

#[test]
fn the_question_has_the_shape_of_the_messages_api_wherever_the_address_ends() {
    for ending in ["", "/", "/v1", "/v1/", "/v1/messages"] {
        let server = CannedServer::start(vec![message(json!([]), "end_turn")]);
        ask_with(&mut provider(&format!("{}{ending}", server.url)), Some(KEY));
        let [request] = &server.requests()[..] else {
            panic!("one request");
        };
        for expected in [
            "POST /v1/messages HTTP/1.1\n",
            "anthropic-version: 2023-06-01\n",
            "x-api-key: a-key-that-nobody-may-see\n",
        ] {
            assert!(request.head.contains(expected), "{}", request.head);
        }
        let expected = json!({
            "model": "claude-haiku-4-5",
            "max_tokens": 512,
            "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "what happened?"}],
            "temperature": 0.2,
        });
        assert_eq!(request.body, expected);
    }
}

#[test]
fn a_model_is_held_to_a_form_by_a_tool_and_its_call_is_the_answer() {
    let refuses = |field: &str| {
        let message = format!("{field}: not supported by this model");
        let error = json!({"type": "invalid_request_error", "message": message});
        says(
            400,
            &[],
            &json!({"type": "error", "error": error}).to_string(),
        )
    };
    let called =
        json!([{"type": "tool_use", "id": "t1", "name": "remember", "input": {"nothing": "x"}}]);
    let told = json!([{"type": "text", "text": "<nothing>x</nothing>"}]);
    let server = CannedServer::start(vec![
        message(called, "tool_use"),
        refuses("temperature"),
        refuses("tool_choice"),
        message(told, "end_turn"),
    ]);
    let mut provider = provider(&server.url);
    let question = Question {
        schema: Some(r#"{"type": "object"}"#),
        ..QUESTION
    };
    let mut ask = || block_on(provider.ask_with(Some(KEY), &question, None));
    assert_eq!(ask(), paid(Ok(r#"{"nothing":"x"}"#.to_owned())));
    let expected = paid(Ok("<nothing>x</nothing>".to_owned()));
    assert_eq!(
        ask(),
        ModelCall {
            requests: 3,
            ..expected
        }
    );
    let bodies = server.requests();
    let form = |body: &Value| json!([body["tools"], body["tool_choice"], body["temperature"]]);
    let tools = json!([{"name": "remember", "input_schema": {"type": "object"}}]);
    let choice = json!({"type": "tool", "name": "remember"});
    let forms: Vec<Value> = bodies.iter().map(|it| form(&it.body)).collect();
    let with = |temperature: Value| json!([tools, choice, temperature]);
    let expected = [
        with(json!(0.2)),
        with(json!(0.2)),
        with(json!(null)),
        json!([null, null, null]),
    ];
    assert_eq!(forms, expected);
}

#[test]
fn a_question_in_a_conversation_comes_after_what_was_said_and_is_marked_for_the_cache() {
    let mut conversation = Conversation::default();
    let exchange = ("and before?".to_owned(), "nothing".to_owned());
    conversation.exchanges.push(exchange);
    let expected = json!([
        {"role": "user", "content": "and before?"},
        {"role": "assistant", "content": "nothing"},
        {"role": "user", "content": [{
            "type": "text", "text": "what happened?", "cache_control": {"type": "ephemeral"},
        }]},
    ]);
    assert_eq!(
        body("m", &QUESTION, Some(&conversation), &[])["messages"],
        expected
    );
}

#[test]
fn the_texts_are_the_answer_and_all_tokens_are_counted() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "one "},
        {"type": "text", "text": "two"},
    ]);
    assert_eq!(
        ask(message(content, "end_turn")),
        paid(Ok("one two".to_owned()))
    );
}

#[test]
fn an_answer_that_is_of_no_use_is_a_failure_that_was_paid_for() {
    let cut_off = |partial: Option<&str>| Failure {
        partial: partial.map(str::to_owned),
        ..Failure::new(
            FailureKind::CutOff,
            "the answer was longer than it may be and ends in the middle",
        )
    };
    let refusal = Failure::new(FailureKind::Refusal, "the model declined to answer");
    let empty = Failure::new(FailureKind::Empty, "the model answered with no text");
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let cases = [
        (
            text("<a>whole</a><b>ha"),
            "max_tokens",
            cut_off(Some("<a>whole</a><b>ha")),
        ),
        (json!([]), "max_tokens", cut_off(None)),
        (
            text("I"),
            "model_context_window_exceeded",
            cut_off(Some("I")),
        ),
        (text("I cannot"), "refusal", refusal),
        (json!([]), "end_turn", empty.clone()),
        (text(" \n"), "end_turn", empty),
    ];
    for (content, stop_reason, failure) in cases {
        assert_eq!(ask(message(content, stop_reason)), paid(Err(failure)));
    }
}

#[test]
fn a_server_that_counts_nothing_leaves_the_cost_unknown() {
    let body = r#"{"content": [{"type": "text", "text": "yes"}]}"#;
    let expected = ModelCall {
        requests: 1,
        model: None,
        usage: Usage::default(),
        cost_usd: None,
        answer: Ok("yes".to_owned()),
    };
    assert_eq!(ask(says(200, &[], body)), expected);
}

#[test]
fn a_count_beyond_reason_does_not_overflow() {
    let body = json!({
        "content": [{"type": "text", "text": "yes"}],
        "usage": {
            "input_tokens": u64::MAX,
            "cache_read_input_tokens": u64::MAX,
            "output_tokens": u64::MAX,
        },
    });
    let call = ask(says(200, &[], &body.to_string()));
    assert_eq!(call.usage.input, 2 * u64::from(u32::MAX));
}

#[test]
fn what_is_json_but_no_message_is_broken() {
    let call = ask(says(200, &[], r#"{"hello": "world"}"#));
    let failure = call.answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Broken);
    assert!(
        failure.text.contains(r#"no message: {"hello":"world"}"#),
        "{}",
        failure.text
    );
}

#[test]
fn an_error_is_a_call_that_failed() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let call = ask(says(429, &[("retry-after", "2")], body));
    assert_eq!(
        (call.requests, call.usage, call.cost_usd),
        (1, Usage::default(), None)
    );
    let failure = call.answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::RateLimit);
    assert_eq!(failure.retry_at, Some(QUESTION.now + 2000));
}

#[test]
fn what_is_missing_is_said_without_asking() {
    let server = CannedServer::start(vec![Canned::Closes]);
    let asked = |model: &str, key| {
        let mut provider = Anthropic::new(&config::AnthropicSection {
            base_url: server.url.clone(),
            model: model.to_owned(),
        });
        let call = ask_with(&mut provider, key);
        assert_eq!(call.requests, 0);
        call.answer.unwrap_err()
    };
    let cases = [
        (
            asked("m", None),
            FailureKind::Auth,
            "ANTHROPIC_API_KEY is not set; the worker takes it from the environment in which it is started",
        ),
        (
            asked("m", Some("two\nlines")),
            FailureKind::Auth,
            "ANTHROPIC_API_KEY has characters that no key has",
        ),
        (
            asked(" ", Some(KEY)),
            FailureKind::Missing,
            "no model is set; set anthropic.model in config.toml",
        ),
    ];
    for (failure, kind, text) in cases {
        assert_eq!(failure, Failure::new(kind, text));
    }
    assert_eq!(server.requests(), []);
}
