//! The user's own claude CLI as a provider, with the login that it has.
//!
//! One process for each question. It gets the user's login and none of the user's other settings,
//! and leaves no files behind. `command` starts it, `stream` reads its output, `failure` classifies
//! its errors.

mod command;
mod failure;
mod stream;

use std::process::Stdio;
use std::time::Duration;

use foreword_core::model::FailureKind;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::{Failure, ModelCall, Provider, Question};
use crate::config;
use crate::home::Home;
use crate::platform;
use stream::StreamReader;

/// The longest line of output that is read; no message of the client is longer.
const LINE_MAX: u64 = 8 << 20;

/// The time that the process has to end after its result. It usually takes 0.1 s.
const GRACE: Duration = Duration::from_secs(3);

/// The time to read the rest of the pipes after the process has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The most bytes of standard error that are kept, from its end.
const COMPLAINT_MAX: usize = 4 << 10;

pub struct Claude {
    settings: config::ClaudeSection,
    home: Home,
}

impl Claude {
    pub fn new(settings: &config::ClaudeSection, home: &Home) -> Claude {
        Claude {
            settings: settings.clone(),
            home: home.clone(),
        }
    }
}

impl Provider for Claude {
    async fn ask(&mut self, question: &Question<'_>) -> ModelCall {
        let prepared = command::prepare(&self.settings, &self.home, question);
        let process = match prepared.and_then(ClaudeProcess::start) {
            Ok(process) => process,
            Err(error) => return ModelCall::failed(0, failure::of_start(&error, &self.settings)),
        };
        process.ask(question).await
    }
}

/// A running client. Dropping it kills the process and everything that it started.
struct ClaudeProcess {
    child: Child,
    id: u32,
}

impl ClaudeProcess {
    fn start(mut command: Command) -> std::io::Result<ClaudeProcess> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        platform::bind_to_us(&mut command);
        let child = command.spawn()?;
        let id = child.id().unwrap_or(0);
        Ok(ClaudeProcess { child, id })
    }

    async fn ask(mut self, question: &Question<'_>) -> ModelCall {
        let mut reader = StreamReader::default();
        let mut complaint = Vec::new();
        let ended = timeout(
            question.patience,
            self.converse(question.text, &mut reader, &mut complaint),
        )
        .await;
        match ended {
            Ok(Ok(())) => reader.call(&last_line(&complaint), question.now),
            Ok(Err(TooMuch)) => reader.failed(Failure::new(
                FailureKind::Broken,
                "the claude CLI said more on one line than any answer has",
            )),
            Err(_) => reader.failed(Failure::new(
                FailureKind::Timeout,
                format!(
                    "no answer from the claude CLI in {} s",
                    question.patience.as_secs()
                ),
            )),
        }
    }

    /// Sends the question, reads the answer, and waits at most `GRACE` for the process to end.
    async fn converse(
        &mut self,
        text: &str,
        reader: &mut StreamReader,
        complaint: &mut Vec<u8>,
    ) -> Result<(), TooMuch> {
        let mut stdin = self.child.stdin.take().expect("stdin is piped");
        let stdout = self.child.stdout.take().expect("stdout is piped");
        let stderr = self.child.stderr.take().expect("stderr is piped");
        let asking = async move {
            // If the process does not read its input, its output gives the reason.
            let _ = stdin.write_all(&stream::user_message(text)).await;
            // Its input is closed here, so that it ends after its answer even if we are gone.
        };
        // A process that it started may keep the pipes open after its end.
        let child = &mut self.child;
        let (hearing_over, over) = oneshot::channel::<()>();
        let hearing = async {
            let (outcome, ()) = tokio::select! {
                all = async { tokio::join!(read_messages(stdout, reader), asking) } => all,
                () = async { let _ = child.wait().await; sleep(LAST_WORDS).await } => (Ok(()), ()),
            };
            drop(hearing_over);
            outcome
        };
        let complaining = async {
            tokio::select! {
                () = keep_end(stderr, complaint) => {}
                () = async { let _ = over.await; sleep(LAST_WORDS).await } => {}
            }
            Ok(())
        };
        tokio::try_join!(hearing, complaining)?;
        let _ = timeout(GRACE, self.child.wait()).await;
        Ok(())
    }
}

impl Drop for ClaudeProcess {
    fn drop(&mut self) {
        platform::kill_group(self.id);
    }
}

struct TooMuch;

/// Reads messages until the output is closed, or until `GRACE` after the result.
async fn read_messages(
    stdout: impl AsyncRead + Unpin,
    reader: &mut StreamReader,
) -> Result<(), TooMuch> {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut capped = (&mut stdout).take(LINE_MAX);
        let reading = capped.read_until(b'\n', &mut line);
        let read = if reader.is_complete() {
            timeout(GRACE, reading).await.unwrap_or(Ok(0))
        } else {
            reading.await
        };
        match read {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) if line.len() as u64 == LINE_MAX => return Err(TooMuch),
            Ok(_) => reader.take(&line),
        }
    }
}

async fn keep_end(mut stderr: impl AsyncRead + Unpin, end: &mut Vec<u8>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        end.extend_from_slice(&piece[..count]);
        let excess = end.len().saturating_sub(COMPLAINT_MAX);
        end.drain(..excess);
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    foreword_core::text::shorten(line.unwrap_or_default().trim(), 200).into_owned()
}

#[cfg(test)]
#[cfg(feature = "full-tests")]
mod tests;
