//! Requests and failures that are the same for all providers over HTTP.

use std::io::{Read as _, Write as _};

use serde_json::json;

use super::canned::{Canned, CannedServer, block_on, says};
use super::*;

const KEY: &str = "a-key-that-nobody-may-see";
const NOW: Millis = 1_794_819_600_000;
const SERVICE: Service = Service {
    section: "openai",
    key: "OPENAI_API_KEY",
};

fn post(patience: Duration) -> Post<'static> {
    Post {
        headers: HeaderMap::from_iter([secret_header("authorization", KEY).unwrap()]),
        body: json!({"question": 1}),
        key: Some(Secret(KEY)),
        patience,
        now: NOW,
    }
}

/// The outcome of one canned answer, with the server's address as `URL`.
fn ask(canned: Canned) -> Result<Value, (u32, Failure)> {
    let patience = match canned {
        Canned::Hangs => Duration::from_millis(200),
        _ => Duration::from_secs(20),
    };
    let server = CannedServer::start(vec![canned]);
    let mut endpoint = Endpoint::new(SERVICE, &format!("{}/v1", server.url)).unwrap();
    let outcome = match block_on(endpoint.post(post(patience))) {
        Ok(answer) => answer.reply().cloned().map_err(|failure| (1, failure)),
        Err(unanswered) => Err((unanswered.requests, unanswered.failure)),
    };
    outcome.map_err(|(requests, mut failure)| {
        failure.text = failure.text.replace(&server.url, "URL");
        (requests, failure)
    })
}

fn failed(requests: u32, kind: FailureKind, text: &str) -> Result<Value, (u32, Failure)> {
    Err((requests, Failure::new(kind, text)))
}

#[test]
fn a_question_goes_out_as_json_with_who_asks_and_the_answer_comes_back() {
    let server = CannedServer::start(vec![says(200, &[], r#"{"answer": 2, "error": null}"#)]);
    let mut endpoint = Endpoint::new(SERVICE, &format!("{}/v1/x", server.url)).unwrap();
    let answer = block_on(endpoint.post(post(Duration::from_secs(20)))).unwrap();
    assert_eq!(answer.reply(), Ok(&json!({"answer": 2, "error": null})));
    let [request] = &server.requests()[..] else {
        panic!("one request");
    };
    assert_eq!(request.body, json!({"question": 1}));
    for expected in [
        "POST /v1/x HTTP/1.1\n",
        "content-type: application/json\n",
        concat!("user-agent: foreword/", env!("CARGO_PKG_VERSION"), "\n"),
        "authorization: a-key-that-nobody-may-see\n",
    ] {
        assert!(request.head.contains(expected), "{}", request.head);
    }
}

#[test]
fn no_answer_says_why() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"answer\":";
    let large = "x".repeat(BODY_MAX + 1);
    let cases = [
        (
            Canned::Hangs,
            failed(1, FailureKind::Timeout, "URL gave no answer within 0.2 s"),
        ),
        (
            Canned::Closes,
            failed(
                1,
                FailureKind::Broken,
                "URL closed the connection without an answer (connection closed before message completed)",
            ),
        ),
        (
            Canned::Says(cut.to_owned()),
            failed(
                1,
                FailureKind::Broken,
                "URL broke the connection in the middle of its answer",
            ),
        ),
        (
            says(200, &[], &large),
            failed(
                1,
                FailureKind::Broken,
                "URL sent more than an answer can be",
            ),
        ),
        (
            says(200, &[], "<html>\n<title>Log in</title>"),
            failed(
                1,
                FailureKind::Broken,
                "URL answered 200 with something that is not JSON: <html> <title>Log in</title>; check openai.base_url in config.toml",
            ),
        ),
    ];
    for (canned, expected) in cases {
        assert_eq!(ask(canned), expected);
    }
}

#[test]
fn an_address_where_nobody_listens_is_an_outage_that_cost_no_request() {
    // No server listens on this port.
    let url = "http://127.0.0.1:1";
    let mut endpoint = Endpoint::new(SERVICE, url).unwrap();
    let unanswered = block_on(endpoint.post(post(Duration::from_secs(20)))).unwrap_err();
    assert_eq!(unanswered.failure.kind, FailureKind::Outage);
    assert_eq!(unanswered.requests, 0);
    let expected = format!(
        "could not connect to {url}: Connection refused; check that it is running and can be reached, and openai.base_url in config.toml"
    );
    assert_eq!(unanswered.failure.text, expected);
}

#[test]
fn a_server_that_speaks_no_tls_behind_an_https_address_is_an_outage() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let mut endpoint = Endpoint::new(SERVICE, &url).unwrap();
    let unanswered = block_on(endpoint.post(post(Duration::from_secs(20)))).unwrap_err();
    thread.join().unwrap();
    assert_eq!(
        (unanswered.requests, unanswered.failure.kind),
        (0, FailureKind::Outage)
    );
}

#[test]
fn each_status_is_one_of_the_failures() {
    use FailureKind as Kind;
    let error = |message: &str, code: &str| {
        json!({"error": {"message": message, "type": "x", "code": code}}).to_string()
    };
    let plain = |status: u16| (status, error("no", ""));
    let said = |status: u16, message: &str| (status, error(message, ""));
    let coded = |status: u16, code: &str| (status, error("no", code));
    let raw = |status: u16, body: &str| (status, body.to_owned());
    let cases = [
        (plain(400), Kind::Request),
        (plain(401), Kind::Auth),
        (plain(402), Kind::Billing),
        (plain(403), Kind::Auth),
        (plain(404), Kind::Model),
        (plain(405), Kind::Missing),
        (plain(407), Kind::Outage),
        (plain(408), Kind::Outage),
        (plain(409), Kind::Request),
        (plain(413), Kind::TooLong),
        (plain(422), Kind::Request),
        (plain(429), Kind::RateLimit),
        (plain(500), Kind::Outage),
        (plain(502), Kind::Outage),
        (plain(503), Kind::Outage),
        (plain(529), Kind::Outage),
        (raw(302, ""), Kind::Missing),
        (raw(404, "404 page not found"), Kind::Missing),
        (raw(502, "<html>Bad gateway</html>"), Kind::Outage),
        (
            said(
                400,
                "Your credit balance is too low to access the Anthropic API.",
            ),
            Kind::Billing,
        ),
        (said(403, "Please check your billing."), Kind::Billing),
        (coded(429, "insufficient_quota"), Kind::Billing),
        (
            said(
                429,
                "You exceeded your current quota, please check your plan and billing",
            ),
            Kind::RateLimit,
        ),
        (
            said(429, "Request too large for gpt-4o on tokens per min"),
            Kind::TooLong,
        ),
        (
            said(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            Kind::TooLong,
        ),
        (coded(400, "context_length_exceeded"), Kind::TooLong),
        (
            said(400, "This model's maximum context length is 8192 tokens."),
            Kind::TooLong,
        ),
        (said(400, "too many tokens"), Kind::TooLong),
        (
            said(
                400,
                "the request exceeds the available context size, try increasing it",
            ),
            Kind::TooLong,
        ),
        (
            said(500, "the request exceeds the available context size"),
            Kind::TooLong,
        ),
        (said(400, "foo/bar is not a valid model ID"), Kind::Model),
        (
            raw(
                404,
                r#"{"error":"model 'x' not found, try pulling it first"}"#,
            ),
            Kind::Model,
        ),
        (
            raw(
                400,
                r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
            ),
            Kind::Auth,
        ),
        (
            raw(422, r#"{"detail":"a field is missing"}"#),
            Kind::Request,
        ),
    ];
    for ((status, body), expected) in cases {
        let (requests, failure) = ask(says(status, &[], &body)).unwrap_err();
        assert_eq!((requests, failure.kind), (1, expected), "{status} {body}");
    }
}

#[test]
fn an_error_with_status_200_goes_by_its_own_words() {
    use FailureKind as Kind;
    let cases = [
        (
            json!({"type": "overloaded_error", "message": "busy"}),
            Kind::Outage,
        ),
        (
            json!({"type": "authentication_error", "message": "no"}),
            Kind::Auth,
        ),
        (
            json!({"type": "billing_error", "message": "no"}),
            Kind::Billing,
        ),
        (
            json!({"type": "permission_error", "message": "no"}),
            Kind::Auth,
        ),
        (
            json!({"type": "not_found_error", "message": "model: x"}),
            Kind::Model,
        ),
        (
            json!({"type": "request_too_large", "message": "no"}),
            Kind::TooLong,
        ),
        (
            json!({"type": "rate_limit_error", "message": "no"}),
            Kind::RateLimit,
        ),
        (
            json!({"type": "invalid_request_error", "message": "no"}),
            Kind::Request,
        ),
        (json!({"code": 429, "message": "no"}), Kind::RateLimit),
        (json!({"code": 502, "message": "no"}), Kind::Outage),
        (json!("something went wrong"), Kind::Outage),
    ];
    for (error, expected) in cases {
        let body = json!({ "error": error }).to_string();
        let (_, failure) = ask(says(200, &[], &body)).unwrap_err();
        assert_eq!(failure.kind, expected, "{body}");
    }
}

#[test]
fn a_failure_tells_what_was_said_and_what_to_do() {
    let said = |status, headers: &[(&str, &str)], message: &str| {
        let body = json!({"error": {"message": message}}).to_string();
        ask(says(status, headers, &body)).unwrap_err().1.text
    };
    let texts = [
        said(401, &[], "Incorrect key\nprovided"),
        said(402, &[], "no credit"),
        said(404, &[], "no such model"),
        said(500, &[], ""),
        said(308, &[("location", "https://elsewhere.example/v1")], ""),
    ];
    assert_eq!(
        texts,
        [
            "URL answered 401: Incorrect key provided; check OPENAI_API_KEY",
            "URL answered 402: no credit; look after your account there",
            "URL answered 404: no such model; check openai.model in config.toml",
            "URL answered 500: no reason given",
            "URL answered 308: it is now at https://elsewhere.example/v1; check openai.base_url in config.toml",
        ]
    );
    let long = said(500, &[], &"why ".repeat(500));
    assert!(long.chars().count() < 250, "{long}");
}

#[test]
fn a_key_that_a_server_echoes_is_never_shown() {
    let echo = format!("who is {KEY}?");
    let json = json!({"error": {"message": echo, "code": KEY}}).to_string();
    // A key at the place where the text is cut must not be shown in part.
    let cut = format!("{}{KEY}", "x".repeat(QUOTE_MAX - 10));
    let canned = [
        says(401, &[], &json),
        says(500, &[], &echo),
        says(500, &[], &cut),
        says(200, &[], &echo),
        says(200, &[], &json),
        says(302, &[("location", &format!("http://x.example/{KEY}"))], ""),
    ];
    for canned in canned {
        let (_, failure) = ask(canned).unwrap_err();
        assert!(!failure.text.contains(&KEY[..8]), "{}", failure.text);
        assert_eq!(failure.partial, None);
    }
}

#[test]
fn a_key_is_not_in_debug_output_either() {
    let debug = format!("{:?}", post(Duration::from_secs(20)));
    assert!(!debug.contains(&KEY[..8]), "{debug}");
}

#[test]
fn a_placeholder_for_a_key_takes_no_words_away() {
    let server = CannedServer::start(vec![says(401, &[], r#"{"error": "x marks"}"#)]);
    let mut endpoint = Endpoint::new(SERVICE, &server.url).unwrap();
    let post = Post {
        key: Some(Secret("x")),
        ..post(Duration::from_secs(20))
    };
    let answer = block_on(endpoint.post(post)).unwrap();
    let text = answer.reply().unwrap_err().text;
    assert!(
        text.ends_with(" answered 401: x marks; check OPENAI_API_KEY"),
        "{text}"
    );
}

#[test]
fn when_to_ask_again_comes_from_the_headers_even_if_the_body_breaks() {
    let raw = "HTTP/1.1 529 Overloaded\r\nretry-after: 7\r\ncontent-length: 100\r\n\r\n{\"er";
    let (_, failure) = ask(Canned::Says(raw.to_owned())).unwrap_err();
    assert_eq!(
        failure,
        Failure {
            retry_at: Some(NOW + 7000),
            ..Failure::new(FailureKind::Outage, "URL answered 529: {\"er")
        }
    );
}

#[test]
fn what_is_no_address_is_said_without_asking() {
    for url in [
        "",
        "/chat/completions",
        "127.0.0.1:11434/v1",
        "ftp://x/v1",
        "http://",
    ] {
        let failure = Endpoint::new(SERVICE, url).unwrap_err();
        assert_eq!(
            failure,
            Failure::new(
                FailureKind::Missing,
                "openai.base_url in config.toml is not an address; it begins with http:// or https://"
            ),
            "{url}"
        );
    }
}

#[test]
fn addresses_of_this_machine_and_network_are_local_and_those_of_the_world_are_not() {
    let cases = [
        ("http://127.0.0.1:11434/v1", true),
        ("http://localhost:1234", true),
        ("http://[::1]:8080", true),
        ("http://192.168.1.5:8080", true),
        ("http://10.0.0.1", true),
        ("http://100.100.1.2", true),
        ("http://[fd00::1]", true),
        ("http://ollama:11434", true),
        ("http://host.docker.internal:11434", true),
        ("https://api.openai.com/v1", false),
        ("https://localhost.example.com", false),
        ("http://8.8.8.8", false),
        ("http://[2001:db8::1]", false),
    ];
    for (url, expected) in cases {
        let endpoint = Endpoint::new(SERVICE, url).unwrap();
        assert_eq!(endpoint.is_local(), expected, "{url}");
    }
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    let url = Url::parse("https://user:password@host.example:8443/v1?key=x").unwrap();
    assert_eq!(address(&url), "https://host.example:8443");
}
