//! Reads an answer over HTTP: a reply, or a kind of failure.
//!
//! The two providers and the servers that imitate them agree on little but the status, so error
//! bodies are read loosely: anything with a message is accepted, and well-known phrases decide where
//! one status stands for several failures.

use foreword_core::model::FailureKind;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;

use super::{Scene, again};
use crate::agent::provider::Failure;

/// An answer with its status, headers and body.
#[derive(Debug)]
pub struct HttpAnswer<'a> {
    scene: Scene<'a>,
    pub status: u16,
    headers: HeaderMap,
    body: Body,
    /// The tokens per second of an answer that was streamed.
    pub pace: Option<f64>,
}

#[derive(Debug)]
enum Body {
    Json(Value),
    Text(String),
}

impl<'a> HttpAnswer<'a> {
    pub(super) fn new(
        scene: Scene<'a>,
        status: u16,
        headers: HeaderMap,
        body: &[u8],
        pace: Option<f64>,
    ) -> Self {
        let body = match serde_json::from_slice(body) {
            Ok(json) => Body::Json(json),
            Err(_) => Body::Text(String::from_utf8_lossy(body).into_owned()),
        };
        HttpAnswer {
            scene,
            status,
            headers,
            body,
            pace,
        }
    }

    /// The field of `optional` that the endpoint refused by its name, if it was not refused before.
    /// `max_tokens` counts only as unsupported, since some endpoints also name it if a question is too
    /// long.
    pub fn refused(&self, optional: &[&'static str], before: &[&str]) -> Option<&'static str> {
        let complaint = self.complaint();
        let message = complaint.message.to_lowercase();
        let is_refused = |field: &str| {
            (complaint.param.as_deref() == Some(field) || message.contains(field))
                && (field != "max_tokens"
                    || message.contains("unsupported")
                    || message.contains("not supported"))
        };
        let mut fields = optional.iter().filter(|it| !before.contains(it));
        let field = fields.find(|it| is_refused(it))?;
        matches!(self.status, 400 | 422).then_some(*field)
    }

    /// The JSON of a success. Some servers report an error with status 200.
    pub fn reply(&self) -> Result<&Value, Failure> {
        if !(200..300).contains(&self.status) {
            return Err(self.failure(self.status));
        }
        match &self.body {
            Body::Json(body) if body.get("error").is_none_or(Value::is_null) => Ok(body),
            Body::Json(_) => Err(self.failure(self.complaint().status())),
            Body::Text(_) => Err(self.strange("not JSON")),
        }
    }

    /// The failure for a success whose body is not a reply of this provider.
    pub fn strange(&self, what: &str) -> Failure {
        let body = match &self.body {
            Body::Json(body) => body.to_string(),
            Body::Text(text) => text.clone(),
        };
        let text = format!(
            "{} answered {} with something that is {what}: {}; check {}.base_url in config.toml",
            self.scene.address,
            self.status,
            self.scene.quote(&body),
            self.scene.service.section,
        );
        Failure::new(FailureKind::Broken, text)
    }

    pub fn complaint(&self) -> Complaint {
        match &self.body {
            Body::Json(body) => Complaint::from_json(body),
            Body::Text(text) => Complaint {
                message: text.clone(),
                ..Complaint::default()
            },
        }
    }

    fn failure(&self, status: u16) -> Failure {
        let complaint = self.complaint();
        let kind = match (&self.body, kind(status, &complaint)) {
            // A 404 without JSON: the path is unknown, not the model.
            (Body::Text(_), FailureKind::Model) if status == 404 => FailureKind::Missing,
            (_, kind) => kind,
        };
        let reason = match self.headers.get(LOCATION).and_then(|to| to.to_str().ok()) {
            Some(to) if (300..400).contains(&status) => format!("it is now at {to}"),
            _ => complaint.message,
        };
        let reason = match self.scene.quote(&reason) {
            quote if quote.is_empty() => "no reason given".to_owned(),
            quote => quote,
        };
        let address = &self.scene.address;
        let hint = self.hint(kind);
        let text = format!("{address} answered {}: {reason}{hint}", self.status);
        Failure {
            retry_at: again::retry_at(kind, &self.headers, self.scene.now),
            ..Failure::new(kind, text)
        }
    }

    fn hint(&self, kind: FailureKind) -> String {
        let section = self.scene.service.section;
        let key = self.scene.service.key;
        match kind {
            FailureKind::Auth if self.scene.key.is_none() => format!("; {key} is not set"),
            FailureKind::Auth => format!("; check {key}"),
            FailureKind::Billing => "; look after your account there".to_owned(),
            FailureKind::Model => format!("; check {section}.model in config.toml"),
            FailureKind::Missing => format!("; check {section}.base_url in config.toml"),
            _ => String::new(),
        }
    }
}

/// The content of an error body, in any of the usual shapes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Complaint {
    pub message: String,
    /// `type` and `code`, which are meant for programs.
    pub words: Vec<String>,
    pub param: Option<String>,
    /// The status inside the body.
    code: Option<u16>,
}

impl Complaint {
    /// `{"error": {…}}`, `[{"error": {…}}]`, `{"error": "…"}`, `{"message": "…"}`, `{"detail": "…"}`.
    fn from_json(body: &Value) -> Complaint {
        let body = body.get(0).unwrap_or(body);
        let error = match body.get("error") {
            Some(error @ (Value::Object(_) | Value::String(_))) => error,
            _ => body,
        };
        let string = |name: &str| error.get(name)?.as_str().map(str::to_owned);
        let message = match error {
            Value::String(message) => Some(message.clone()),
            _ => string("message").or_else(|| string("detail")),
        };
        Complaint {
            message: message.unwrap_or_else(|| error.to_string()),
            words: ["type", "code", "status"]
                .into_iter()
                .filter_map(string)
                .collect(),
            param: string("param"),
            code: error["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok()),
        }
    }

    /// The status for an error that was sent with 200.
    fn status(&self) -> u16 {
        let named = self.words.iter().find_map(|word| match word.as_str() {
            "invalid_request_error" => Some(400),
            "authentication_error" | "invalid_api_key" => Some(401),
            "billing_error" => Some(402),
            "permission_error" => Some(403),
            "not_found_error" | "model_not_found" => Some(404),
            "request_too_large" => Some(413),
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
            "overloaded_error" => Some(529),
            _ => None,
        });
        let code = self.code.filter(|code| (400..600).contains(code));
        // Unknown: count it as the server's failure, not as the question's.
        named.or(code).unwrap_or(500)
    }

    /// Whether the error contains one of these phrases.
    fn has(&self, phrases: &str) -> bool {
        let texts = self.words.iter().chain([&self.message]);
        let mut lower = texts.map(|words| words.to_lowercase());
        lower.any(|words| phrases.split('|').any(|phrase| words.contains(phrase)))
    }
}

/// Statuses that stand for several failures, and phrases of the error that tell one of them, with `|`
/// between them. The first row that fits decides.
const PHRASES: &[(&[u16], FailureKind, &str)] = &[
    (
        &[400, 403],
        FailureKind::Billing,
        "credit|billing|quota|insufficient balance",
    ),
    // Not plain "quota" and "billing", because Gemini uses both for rate limits.
    (
        &[429],
        FailureKind::Billing,
        "insufficient_quota|billing_error|credit balance",
    ),
    // One question exceeds the allowance of a minute, so waiting does not help.
    (&[429], FailureKind::TooLong, "request too large"),
    // Older versions of llama.cpp answer 500.
    (
        &[400, 422, 500],
        FailureKind::TooLong,
        "prompt is too long|exceed context limit|context_length_exceeded|exceed_context_size|\
         maximum context length|context size|context length|context window|too many tokens|\
         maximum number of tokens|request too large",
    ),
    (
        &[400],
        FailureKind::Model,
        "model_not_found|not a valid model|try pulling it",
    ),
    (
        &[400],
        FailureKind::Auth,
        "api key not valid|invalid_api_key|authentication_error",
    ),
];

/// The kind of failure for a status and the text of the error.
fn kind(status: u16, complaint: &Complaint) -> FailureKind {
    let row = PHRASES
        .iter()
        .find(|(statuses, _, phrases)| statuses.contains(&status) && complaint.has(phrases));
    if let Some((_, kind, _)) = row {
        return *kind;
    }
    match status {
        402 => FailureKind::Billing,
        429 => FailureKind::RateLimit,
        413 => FailureKind::TooLong,
        401 | 403 => FailureKind::Auth,
        404 => FailureKind::Model,
        // The address is wrong; the question is not at fault.
        300..=399 | 405 => FailureKind::Missing,
        // 407: a proxy requires a login.
        407 | 408 | 500.. => FailureKind::Outage,
        _ => FailureKind::Request,
    }
}
