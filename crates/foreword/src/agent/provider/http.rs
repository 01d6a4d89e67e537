//! The part that the providers over HTTP share: one POST of JSON, and its outcome.
//!
//! An `Endpoint` is an address from the settings. A call is one request: redirects are not followed,
//! nothing is retried and no connection is kept, so the ledger counts what the server counts.
//! A request without an answer fails here; `answer` reads the status and the error body, `again` the
//! time of the next attempt. Text from a server is shown only through `Scene::quote`, which removes
//! the key.

mod again;
mod answer;
#[cfg(test)]
pub mod canned;
pub mod stream;

use std::error::Error as _;
use std::net::IpAddr;
use std::time::Duration;

use foreword_core::model::{FailureKind, Millis};
use foreword_core::{redact, text};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Url, redirect, retry};
use serde_json::{Value, json};

use super::{Failure, ModelCall};
pub use answer::HttpAnswer;
use stream::Fold;

/// The longest body that is read. No answer of a model is that long.
const BODY_MAX: usize = 4 * 1024 * 1024;
/// The most characters of a server's text that are shown.
const QUOTE_MAX: usize = 200;
/// The shortest key that is removed from texts. A shorter one is a placeholder that may occur in
/// ordinary words.
const KEY_MIN: usize = 6;

/// The names of a provider's settings and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// The section in config.toml.
    pub section: &'static str,
    /// The variable that holds the key.
    pub key: &'static str,
}

/// An address that questions are posted to.
#[derive(Debug)]
pub struct Endpoint {
    service: Service,
    url: Url,
    /// Built at the first call, because reading the system's certificates is slow.
    client: Option<Client>,
}

/// One request.
#[derive(Debug, Default)]
pub struct Post<'a> {
    pub headers: HeaderMap,
    pub body: Value,
    /// The key, to remove it from texts. It is sent in `headers`.
    pub key: Option<Secret<'a>>,
    pub patience: Duration,
    pub now: Millis,
}

/// A key that no debug output shows.
#[derive(Clone, Copy)]
pub struct Secret<'a>(pub &'a str);

impl std::fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted:key]")
    }
}

/// The failure of a call without an answer, with the number of requests that were sent.
#[derive(Debug)]
pub struct Unanswered {
    pub requests: u32,
    pub failure: Failure,
}

impl From<Unanswered> for ModelCall {
    fn from(unanswered: Unanswered) -> ModelCall {
        ModelCall::failed(unanswered.requests, unanswered.failure)
    }
}

impl Endpoint {
    pub fn new(service: Service, url: &str) -> Result<Endpoint, Failure> {
        let usable = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let parsed = Url::parse(url).ok().filter(usable);
        let url = parsed.ok_or_else(|| {
            let text = format!(
                "{}.base_url in config.toml is not an address; it begins with http:// or https://",
                service.section
            );
            Failure::new(FailureKind::Missing, text)
        })?;
        Ok(Endpoint {
            service,
            url,
            client: None,
        })
    }

    /// Whether the address is on this machine or in the local network, so that calls cost nothing.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.url) || is_private(&self.url)
    }

    /// Posts, and posts again without each field of `optional` that the endpoint refuses by name. These
    /// fields are added to `refused`. Returns the number of requests too.
    pub async fn post_without_refused<'a>(
        &mut self,
        optional: &[&'static str],
        refused: &mut Vec<&'static str>,
        post: impl Fn(&[&str]) -> Post<'a>,
    ) -> Result<(u32, HttpAnswer<'a>), Unanswered> {
        let mut requests = 0;
        loop {
            let answer = self.post(post(refused)).await;
            let answer = answer.map_err(|it| Unanswered {
                requests: requests + it.requests,
                ..it
            })?;
            requests += 1;
            match answer.refused(optional, refused) {
                Some(field) => refused.push(field),
                None => return Ok((requests, answer)),
            }
        }
    }

    pub async fn post<'a>(&mut self, post: Post<'a>) -> Result<HttpAnswer<'a>, Unanswered> {
        let scene = Scene {
            service: self.service,
            address: address(&self.url),
            key: post.key,
            now: post.now,
        };
        let client = match &self.client {
            Some(client) => client,
            None => {
                let client = client(&self.url)
                    .map_err(|error| scene.unanswered(0, FailureKind::Outage, &cause(&error)))?;
                self.client.insert(client)
            }
        };
        // A streamed answer must begin within `patience`, and end within twice that time.
        let is_streamed = post.body["stream"] == true;
        let whole = post.patience * (1 + u32::from(is_streamed));
        let body = post.body.to_string();
        let bytes = body.len();
        let sent = client
            .post(self.url.clone())
            .headers(post.headers)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .timeout(whole)
            .send();
        let Ok(sent) = tokio::time::timeout(post.patience, sent).await else {
            return Err(scene.too_late(1, post.patience));
        };
        let response = sent.map_err(|error| scene.no_response(&error, post.patience))?;
        scene.read(response, bytes, post.patience).await
    }
}

/// The messages of a conversation so far.
pub fn messages(exchanges: &[(String, String)]) -> Vec<Value> {
    let both = |(question, answer): &(String, String)| {
        let question = json!({"role": "user", "content": question});
        [question, json!({"role": "assistant", "content": answer})]
    };
    exchanges.iter().flat_map(both).collect()
}

/// The model's name in a reply.
pub fn model(reply: &Value) -> Option<String> {
    let name = text::flat(reply["model"].as_str()?);
    // Servers of local models may give the path of the model's file as its name.
    let name = match name.rsplit_once('/') {
        Some((_, file)) if name.starts_with('/') => file.to_owned(),
        _ => name,
    };
    (!name.is_empty()).then(|| text::shorten(&name, 100).into_owned())
}

/// A count of tokens from a reply, limited so that adding counts cannot overflow.
pub fn tokens(count: &Value) -> Option<u64> {
    count.as_u64().map(|count| count.min(u32::MAX.into()))
}

/// A header that holds a secret and is marked so that no log prints it.
pub fn secret_header(name: &'static str, secret: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(secret).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::from_static(name), value))
}

/// The key from the environment; none if it is not set or empty.
pub fn key(service: Service) -> Option<String> {
    let key = std::env::var(service.key).ok()?;
    Some(key.trim().to_owned()).filter(|key| !key.is_empty())
}

fn client(url: &Url) -> reqwest::Result<Client> {
    // No redirects: the key is sent only to the address in the settings.
    builder(url).redirect(redirect::Policy::none()).build()
}

/// A client for public files. It sends no key, so it may follow redirects.
pub fn downloader(url: &Url) -> reqwest::Result<Client> {
    builder(url)
        .redirect(redirect::Policy::limited(5))
        .connect_timeout(Duration::from_secs(15))
        .read_timeout(Duration::from_secs(60))
        .build()
}

fn builder(url: &Url) -> ClientBuilder {
    // reqwest's builder panics without a crypto provider. An error means that one is installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("foreword/", env!("CARGO_PKG_VERSION")))
        .retry(retry::never())
        // Calls are minutes apart, and a kept connection would often be closed by the server before
        // the next call, which would then fail.
        .pool_max_idle_per_host(0);
    let builder = if is_loopback(url) {
        builder.no_proxy()
    } else {
        builder
    };
    // A local model's address needs no certificates, which a container may not have.
    if is_loopback(url) && url.scheme() == "http" {
        builder.tls_certs_only([])
    } else {
        builder
    }
}

/// The address and the names that texts for the user need.
#[derive(Debug, Clone)]
pub(super) struct Scene<'a> {
    service: Service,
    address: String,
    key: Option<Secret<'a>>,
    now: Millis,
}

impl<'a> Scene<'a> {
    fn unanswered(&self, requests: u32, kind: FailureKind, cause: &str) -> Unanswered {
        let Scene { address, .. } = self;
        let section = self.service.section;
        let text = match kind {
            FailureKind::Outage => format!(
                "could not connect to {address}: {cause}; check that it is running and can be reached, and {section}.base_url in config.toml"
            ),
            _ => format!("{address} {cause}"),
        };
        let failure = Failure::new(kind, text);
        Unanswered { requests, failure }
    }

    fn no_response(&self, error: &reqwest::Error, patience: Duration) -> Unanswered {
        let requests = u32::from(!error.is_connect() && !error.is_builder());
        if error.is_timeout() {
            return self.too_late(requests, patience);
        }
        if requests == 0 {
            return self.unanswered(0, FailureKind::Outage, &cause(error));
        }
        let cause = format!("closed the connection without an answer ({})", cause(error));
        self.unanswered(1, FailureKind::Broken, &cause)
    }

    fn too_late(&self, requests: u32, patience: Duration) -> Unanswered {
        let cause = format!("gave no answer within {} s", patience.as_secs_f32());
        self.unanswered(requests, FailureKind::Timeout, &cause)
    }

    /// Reads the answer. The status of an error counts even if its body does not arrive whole.
    async fn read(
        self,
        mut response: reqwest::Response,
        request_bytes: usize,
        patience: Duration,
    ) -> Result<HttpAnswer<'a>, Unanswered> {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let kind = headers.get(CONTENT_TYPE);
        let is_streamed = kind.is_some_and(|it| it.as_bytes().starts_with(b"text/event-stream"));
        let mut fold = is_streamed.then(Fold::default);
        let mut body = Vec::new();
        let lacking = loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= BODY_MAX => {
                    body.extend_from_slice(&chunk);
                    if fold.as_mut().is_some_and(|fold| fold.take(&chunk)) {
                        break None;
                    }
                }
                Ok(Some(_)) => {
                    let cause = "sent more than an answer can be";
                    break Some(self.unanswered(1, FailureKind::Broken, cause));
                }
                Ok(None) if fold.as_ref().is_none_or(Fold::is_whole) => break None,
                Err(error) if error.is_timeout() => {
                    let stop = |fold: &mut Fold| fold.stop(stream::TOOK_TOO_LONG);
                    let has_begun = fold.as_mut().is_some_and(stop);
                    break (!has_begun).then(|| self.too_late(1, patience));
                }
                Ok(None) | Err(_) => {
                    let cause = "broke the connection in the middle of its answer";
                    break Some(self.unanswered(1, FailureKind::Broken, cause));
                }
            }
        };
        let pace = fold.as_ref().and_then(Fold::pace);
        if let Some(fold) = fold {
            body = fold.reply(request_bytes).to_string().into_bytes();
        }
        match lacking {
            Some(unanswered) if (200..300).contains(&status) => Err(unanswered),
            _ => Ok(HttpAnswer::new(self, status, headers, &body, pace)),
        }
    }

    /// A server's text for the user: one line, short, and without the key, in case it is echoed.
    fn quote(&self, words: &str) -> String {
        let line = text::flat(words);
        let line = match self.key {
            Some(Secret(key)) if key.len() >= KEY_MIN => line.replace(key, "[redacted:key]"),
            _ => line,
        };
        text::shorten(&redact::thorough(&line).text, QUOTE_MAX).into_owned()
    }
}

/// The innermost cause of an error; the outer layers only report that there is one.
pub fn cause(error: &reqwest::Error) -> String {
    let mut innermost = error.source();
    while let Some(source) = innermost.and_then(std::error::Error::source) {
        innermost = Some(source);
    }
    let cause = innermost.map(ToString::to_string);
    let cause = cause.unwrap_or_else(|| "the request cannot be built".to_owned());
    match cause.split_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => cause,
    }
}

/// The address without a user, a password or a query.
fn address(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}"));
    format!(
        "{}://{}{}",
        url.scheme(),
        url.host_str().unwrap_or_default(),
        port.unwrap_or_default(),
    )
}

fn ip(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_loopback(url: &Url) -> bool {
    match ip(url) {
        Some(ip) => ip.is_loopback() || ip.is_unspecified(),
        None => url
            .host_str()
            .is_some_and(|host| host == "localhost" || host.ends_with(".localhost")),
    }
}

/// Whether an address or a host name is not on the public internet.
fn is_private(url: &Url) -> bool {
    match ip(url) {
        Some(IpAddr::V4(ip)) => {
            let [a, b, ..] = ip.octets();
            let shared = a == 100 && (64..128).contains(&b);
            ip.is_private() || ip.is_link_local() || shared
        }
        Some(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
        None => url.host_str().is_some_and(|host| {
            let endings = [".local", ".lan", ".internal", ".home.arpa"];
            !host.contains('.') || endings.iter().any(|ending| host.ends_with(ending))
        }),
    }
}

#[cfg(test)]
mod tests;
