//! Requests and answers of chat completions, and the differences between servers.

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

fn provider(base_url: &str) -> OpenAi {
    OpenAi::new(&config::OpenAiSection {
        base_url: base_url.to_owned(),
        model: "gpt-4o-mini".to_owned(),
    })
}

fn ask_with(provider: &mut OpenAi, key: Option<&str>) -> ModelCall {
    block_on(provider.ask_with(key, &QUESTION, None))
}

fn ask(canned: Canned) -> ModelCall {
    let server = CannedServer::start(vec![canned]);
    ask_with(&mut provider(&server.url), None)
}

fn completion(message: Value, finish_reason: &str) -> Canned {
    let completion = json!({
        "object": "chat.completion",
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
    });
    says(200, &[], &completion.to_string())
}

/// A call with the model and the usage of `completion`.
fn counted(requests: u32, answer: Result<String, Failure>) -> ModelCall {
    ModelCall {
        requests,
        model: Some("gpt-4o-mini-2024-07-18".to_owned()),
        usage: Usage {
            input: 1000,
            output: 100,
            cache_read: 400,
            cache_write: 0,
        },
        cost_usd: None,
        answer,
    }
}

#[test]
fn the_question_has_the_shape_of_chat_completions_and_a_key_only_if_there_is_one() {
    for (ending, key) in [
        ("/v1", Some(KEY)),
        ("/v1/", None),
        ("/v1/chat/completions", None),
    ] {
        let server = CannedServer::start(vec![completion(json!({"content": "x"}), "stop")]);
        ask_with(&mut provider(&format!("{}{ending}", server.url)), key);
        let [request] = &server.requests()[..] else {
            panic!("one request");
        };
        let head = &request.head;
        assert!(
            head.starts_with("POST /v1/chat/completions HTTP/1.1\n"),
            "{head}"
        );
        let bearer = "authorization: Bearer a-key-that-nobody-may-see\n";
        assert_eq!(head.contains(bearer), key.is_some(), "{head}");
        assert_eq!(head.contains("authorization"), key.is_some(), "{head}");
        let expected = json!({
            "model": "gpt-4o-mini",
            "max_tokens": 512,
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "what happened?"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "temperature": 0.2,
        });
        assert_eq!(request.body, expected);
    }
}

#[test]
fn a_question_in_a_conversation_comes_after_what_was_said() {
    let mut conversation = Conversation::default();
    let exchange = ("and before?".to_owned(), "nothing".to_owned());
    conversation.exchanges.push(exchange);
    let expected = json!([
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "and before?"},
        {"role": "assistant", "content": "nothing"},
        {"role": "user", "content": "what happened?"},
    ]);
    assert_eq!(
        body("m", &QUESTION, Some(&conversation), (512, &[]))["messages"],
        expected
    );
}

#[test]
fn the_content_is_the_answer_in_any_of_its_shapes_and_without_thinking() {
    let cases = [
        (json!("plain"), "plain"),
        (
            json!([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]),
            "in parts",
        ),
        (json!("<think>\nhm\n</think>\n\nthen this"), "then this"),
        (json!("\n<think></think>then this"), "then this"),
        (
            json!("a <think>quoted</think> tag"),
            "a <think>quoted</think> tag",
        ),
    ];
    for (content, expected) in cases {
        let message = json!({"role": "assistant", "content": content, "refusal": null});
        let call = ask(completion(message, "stop"));
        assert_eq!(call, counted(1, Ok(expected.to_owned())));
    }
}

#[test]
fn an_answer_that_is_of_no_use_is_a_failure_that_was_counted() {
    let cut_off = |partial: Option<&str>| Failure {
        partial: partial.map(str::to_owned),
        ..Failure::new(
            FailureKind::CutOff,
            "the answer was longer than it may be and ends in the middle",
        )
    };
    let failure = Failure::new;
    let empty = failure(FailureKind::Empty, "the model answered with no text");
    let declined = failure(FailureKind::Refusal, "the model declined to answer");
    let filter = "the provider's filter stopped the answer";
    let gave_up = "the provider gave up in the middle of the answer";
    let cases = [
        (
            json!({"content": "<a>whole</a><b>ha"}),
            "length",
            cut_off(Some("<a>whole</a><b>ha")),
        ),
        (
            json!({"content": "<think>and on and on"}),
            "length",
            cut_off(None),
        ),
        (json!({"content": null}), "length", cut_off(None)),
        (
            json!({"content": "x"}),
            "content_filter",
            failure(FailureKind::Refusal, filter),
        ),
        (
            json!({"content": null, "refusal": "I cannot"}),
            "stop",
            declined,
        ),
        (
            json!({"content": "half"}),
            "error",
            failure(FailureKind::Broken, gave_up),
        ),
        (json!({"content": null}), "stop", empty.clone()),
        (
            json!({"content": "<think>hm</think>\n"}),
            "stop",
            empty.clone(),
        ),
        (json!({"content": " \n"}), "stop", empty),
    ];
    for (message, finish_reason, failure) in cases {
        assert_eq!(
            ask(completion(message, finish_reason)),
            counted(1, Err(failure))
        );
    }
}

#[test]
fn a_model_that_wants_another_limit_gets_it_and_is_not_asked_twice_again() {
    let refused = || {
        let error = json!({"error": {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "type": "invalid_request_error",
            "param": "max_tokens",
            "code": "unsupported_parameter",
        }});
        says(400, &[], &error.to_string())
    };
    let yes = || completion(json!({"content": "yes"}), "stop");
    let server = CannedServer::start(vec![refused(), yes(), yes(), refused()]);
    let mut provider = provider(&server.url);
    let expected = Ok("yes".to_owned());
    assert_eq!(ask_with(&mut provider, None), counted(2, expected.clone()));
    assert_eq!(ask_with(&mut provider, None), counted(1, expected));
    let limits: Vec<Value> = server
        .requests()
        .iter()
        .map(|it| json!([it.body["max_tokens"], it.body["max_completion_tokens"]]))
        .collect();
    assert_eq!(
        limits,
        [json!([512, null]), json!([null, 512]), json!([null, 512])]
    );
    // It is never tried a third time.
    let call = ask_with(&mut provider, None);
    assert_eq!(
        (call.requests, call.answer.unwrap_err().kind),
        (1, FailureKind::Request)
    );
}

#[test]
fn what_an_endpoint_refuses_by_name_is_left_out_from_then_on() {
    let refuses = |field: &str| {
        let message = format!("Extra inputs are not permitted: {field}");
        says(422, &[], &json!({"message": message}).to_string())
    };
    let yes = || completion(json!({"content": "yes"}), "stop");
    let server = CannedServer::start(vec![
        refuses("stream_options"),
        refuses("temperature"),
        yes(),
        yes(),
    ]);
    let mut provider = provider(&server.url);
    let expected = Ok("yes".to_owned());
    assert_eq!(ask_with(&mut provider, None), counted(3, expected.clone()));
    assert_eq!(ask_with(&mut provider, None), counted(1, expected));
    let fields = |body: &Value| {
        let has = ["stream", "stream_options", "temperature"].map(|it| body[it] != json!(null));
        (body["stream"] == true, has)
    };
    let fields: Vec<_> = server
        .requests()
        .iter()
        .map(|it| fields(&it.body))
        .collect();
    let none = (false, [true, false, false]);
    assert_eq!(
        fields,
        [(true, [true; 3]), (false, [true, false, true]), none, none]
    );
}

#[test]
fn a_model_is_held_to_a_form_where_the_endpoint_can_do_that() {
    let error = json!({"error": {"message": "response_format is not supported"}}).to_string();
    let yes = completion(json!({"content": "yes"}), "stop");
    let server = CannedServer::start(vec![says(400, &[], &error), yes]);
    let question = Question {
        schema: Some(r#"{"type": "object"}"#),
        ..QUESTION
    };
    let mut provider = provider(&server.url);
    let call = block_on(provider.ask_with(None, &question, None));
    assert_eq!(call, counted(2, Ok("yes".to_owned())));
    let requests = server.requests();
    let forms: Vec<&Value> = requests
        .iter()
        .map(|it| &it.body["response_format"])
        .collect();
    let schema = json!({"name": "memory", "schema": {"type": "object"}});
    let form = json!({"type": "json_schema", "json_schema": schema});
    assert_eq!(forms, [&form, &Value::Null]);
}

fn streamed(lines: &[Value]) -> Canned {
    let lines: String = lines
        .iter()
        .map(|line| format!("data: {line}\n\n"))
        .collect();
    says(200, &[("content-type", "text/event-stream")], &lines)
}

#[test]
fn an_answer_in_pieces_is_read_to_its_end_and_one_in_circles_is_stopped() {
    let piece = |text: &str| json!({"model": "gpt-4o-mini-2024-07-18", "choices": [{"delta": {"content": text}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400},
    }});
    let whole = ask(streamed(&[piece("in "), piece("pieces"), end, usage]));
    assert_eq!(whole, counted(1, Ok("in pieces".to_owned())));

    let circles = ask(streamed(&vec![piece("and so on, "); 100]));
    let failure = circles.answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::CutOff);
    assert_eq!(
        failure.text,
        "the answer repeats itself over and over, and was stopped"
    );

    let broken = ask(streamed(&[piece("half of")]));
    assert_eq!(broken.answer.unwrap_err().kind, FailureKind::Broken);
    let overloaded = json!({"error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failed = ask(streamed(&[piece("half of"), overloaded]));
    assert_eq!(failed.answer.unwrap_err().kind, FailureKind::Outage);
}

#[test]
fn a_limit_that_is_too_large_is_no_reason_to_ask_again() {
    let message = "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens";
    let body = json!({"error": {"message": message, "param": "max_tokens"}}).to_string();
    let call = ask(says(400, &[], &body));
    assert_eq!(
        (call.requests, call.answer.unwrap_err().kind),
        (1, FailureKind::TooLong)
    );
}

#[test]
fn a_server_that_counts_nothing_leaves_usage_and_cost_unknown() {
    let body = r#"{"choices": [{"message": {"content": "yes"}}]}"#;
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
fn the_price_is_known_for_a_known_model_that_is_not_local() {
    let Canned::Says(raw) = completion(json!({"content": "yes"}), "stop") else {
        panic!("a completion");
    };
    let server = CannedServer::start(vec![Canned::Says(raw)]);
    let mut endpoint = Endpoint::new(SERVICE, &server.url).unwrap();
    let post = Post {
        patience: QUESTION.patience,
        ..Post::default()
    };
    let answer = block_on(endpoint.post(post)).unwrap();
    let expected = (600.0 * 0.15 + 400.0 * 0.075 + 100.0 * 0.6) / 1e6;
    assert_eq!(
        call("gpt-4o-mini", false, 1, &answer).cost_usd,
        Some(expected)
    );
    assert_eq!(call("gpt-4o-mini", true, 1, &answer).cost_usd, None);
}

#[test]
fn errors_of_local_servers_are_understood() {
    let ollama = r#"{"error":"model \"qwen3:8b\" not found, try pulling it first"}"#;
    let llama_cpp = r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#;
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let cases = [
        (404, ollama, FailureKind::Model),
        (400, llama_cpp, FailureKind::TooLong),
        (503, loading, FailureKind::Outage),
        (200, r#"{"object":"list"}"#, FailureKind::Broken),
        (200, r#"{"choices":[]}"#, FailureKind::Broken),
    ];
    for (status, body, expected) in cases {
        let call = ask(says(status, &[], body));
        assert_eq!(
            (call.requests, call.answer.unwrap_err().kind),
            (1, expected),
            "{body}"
        );
    }
}

#[test]
fn without_a_key_a_401_says_that_none_is_set() {
    let failure = ask(says(401, &[], r#"{"error":"no"}"#)).answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(
        failure.text.ends_with(": no; OPENAI_API_KEY is not set"),
        "{}",
        failure.text
    );
}

#[test]
fn what_is_missing_in_the_settings_is_said_without_asking() {
    let cases = [
        ("", "", "base_url and model are"),
        (" ", "m", "base_url is"),
        ("http://127.0.0.1:1/v1", "", "model is"),
    ];
    for (base_url, model, missing) in cases {
        let mut provider = OpenAi::new(&config::OpenAiSection {
            base_url: base_url.to_owned(),
            model: model.to_owned(),
        });
        let text = format!(
            "openai: {missing} not set; write in config.toml, for instance: [openai] base_url = \"http://127.0.0.1:11434/v1\", model = \"qwen3:8b\""
        );
        let expected = ModelCall::failed(0, Failure::new(FailureKind::Missing, text));
        assert_eq!(ask_with(&mut provider, None), expected);
    }
}
