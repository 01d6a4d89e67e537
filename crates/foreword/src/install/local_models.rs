//! Finds servers of local models on this machine by asking their usual ports. This is done only if the
//! user asks for the provider `openai`.

use std::time::Duration;

use anyhow::Context as _;
use foreword_core::files::{self, SMALL_MAX};
use reqwest::Url;
use serde_json::Value;

use crate::agent::provider::http;
use crate::home::Home;

/// The servers and their usual addresses.
pub const SERVERS: [(&str, &str); 3] = [
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
];

/// The time that a server has to answer; one that is not busy answers at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModel {
    pub server: String,
    pub base_url: String,
    pub model: String,
}

impl LocalModel {
    /// The lines of config.toml that choose it.
    pub fn settings(&self) -> String {
        let [base_url, model] = [&self.base_url, &self.model].map(|it| format!("{it:?}"));
        format!("[openai]\nbase_url = {base_url}\nmodel = {model}\n")
    }

    /// Appends the settings to config.toml. False if that has a section for them already.
    pub fn choose(&self, home: &Home) -> anyhow::Result<bool> {
        let path = home.config();
        let before = files::read_text(&path, SMALL_MAX).unwrap_or_default();
        if before.lines().any(|line| line.trim() == "[openai]") {
            return Ok(false);
        }
        let gap = if before.is_empty() { "" } else { "\n" };
        let text = format!("{before}{gap}{}", self.settings());
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(true)
    }
}

/// All models of all servers that answer.
pub fn look(servers: &[(&str, &str)]) -> anyhow::Result<Vec<LocalModel>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    Ok(runtime.block_on(async {
        let mut found = Vec::new();
        for (server, base_url) in servers {
            for model in models(base_url).await.unwrap_or_default() {
                found.push(LocalModel {
                    server: (*server).to_owned(),
                    base_url: (*base_url).to_owned(),
                    model,
                });
            }
        }
        found
    }))
}

async fn models(base_url: &str) -> Option<Vec<String>> {
    let url = Url::parse(&format!("{base_url}/models")).ok()?;
    let client = http::downloader(&url).ok()?;
    let answer = client.get(url).timeout(PATIENCE).send().await.ok()?;
    let body: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    let models = body["data"].as_array()?.iter();
    let names = models.filter_map(|it| it["id"].as_str());
    // Names with control characters, spaces or quotes are left out: they are printed and written to
    // config.toml.
    let is_plain = |name: &&str| name.chars().all(|it| it.is_ascii_graphic() && it != '"');
    Some(names.filter(is_plain).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::provider::http::canned::{CannedServer, says};

    #[test]
    fn what_answers_is_offered_and_what_does_not_is_not() {
        let models = r#"{"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "a \"b"}, {}]}"#;
        let server = CannedServer::start(vec![says(200, &[], models)]);
        let strange = CannedServer::start(vec![says(200, &[], "<html>")]);
        let (url, strange) = (format!("{}/v1", server.url), format!("{}/v1", strange.url));
        let servers = [
            ("Ollama", url.as_str()),
            ("llama.cpp", strange.as_str()),
            ("LM Studio", "http://127.0.0.1:1/v1"),
        ];
        let found = look(&servers).unwrap();
        let expected = LocalModel {
            server: "Ollama".into(),
            base_url: url.clone(),
            model: "qwen3:8b".into(),
        };
        assert_eq!(found, [expected]);
        assert!(server.requests()[0].head.starts_with("GET /v1/models "));

        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned());
        std::fs::write(home.config(), "provider = \"openai\"\n").unwrap();
        assert!(found[0].choose(&home).unwrap());
        let written = std::fs::read_to_string(home.config()).unwrap();
        let config = crate::config::Config::from(&written, &Vec::new()).unwrap();
        assert_eq!(
            (config.openai.base_url, config.openai.model),
            (url, "qwen3:8b".into())
        );
        assert!(!found[0].choose(&home).unwrap());
    }
}
