//! The user's own claude CLI as a provider, with the login that it has.
//!
//! One process for each question, gone when it is answered: it is told nothing of the
//! user's but the login, and it leaves nothing behind. `command` is how it is started,
//! `stream` what it says, `failure` what its failures mean.

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

use super::{Call, Failure, Provider, Question};
use crate::config;
use crate::home::Home;
use crate::platform;
use stream::Heard;

/// No message of an honest client is longer.
const LINE_MAX: u64 = 8 << 20;

/// How long a process that has said all may take to end. It ends in 0.1 s.
const GRACE: Duration = Duration::from_secs(3);

/// What it said last is in the pipes when it ends.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Of what it complains about, only the end is of interest.
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
    async fn ask(&mut self, question: &Question<'_>) -> Call {
        let prepared = command::prepare(&self.settings, &self.home, question);
        let process = match prepared.and_then(Process::start) {
            Ok(process) => process,
            Err(error) => return Call::failed(0, failure::of_start(&error, &self.settings)),
        };
        process.ask(question).await
    }
}

/// A running client. Dropped, it is killed, and all that it started.
struct Process {
    child: Child,
    id: u32,
}

impl Process {
    fn start(mut command: Command) -> std::io::Result<Process> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        platform::bind_to_us(&mut command);
        let child = command.spawn()?;
        let id = child.id().unwrap_or(0);
        Ok(Process { child, id })
    }

    async fn ask(mut self, question: &Question<'_>) -> Call {
        let mut heard = Heard::default();
        let mut complaint = Vec::new();
        let ended = timeout(
            question.patience,
            self.converse(question.text, &mut heard, &mut complaint),
        )
        .await;
        match ended {
            Ok(Ok(())) => heard.call(&last_line(&complaint), question.now),
            Ok(Err(TooMuch)) => heard.failed(Failure::new(
                FailureKind::Broken,
                "the claude CLI said more on one line than any answer has",
            )),
            Err(_) => heard.failed(Failure::new(
                FailureKind::Timeout,
                format!(
                    "no answer from the claude CLI in {} s",
                    question.patience.as_secs()
                ),
            )),
        }
    }

    /// Says the question, hears the answer, and waits for the process's end, not for long.
    async fn converse(
        &mut self,
        text: &str,
        heard: &mut Heard,
        complaint: &mut Vec<u8>,
    ) -> Result<(), TooMuch> {
        let mut stdin = self.child.stdin.take().expect("stdin is piped");
        let stdout = self.child.stdout.take().expect("stdout is piped");
        let stderr = self.child.stderr.take().expect("stderr is piped");
        let asking = async move {
            // One that does not listen has a reason, and it will be heard.
            let _ = stdin.write_all(&stream::user_message(text)).await;
            // Its input ends here, so it ends when it has answered, also without us.
        };
        // A process that it left behind may keep the pipes open for ever.
        let child = &mut self.child;
        let (hearing_over, over) = oneshot::channel::<()>();
        let hearing = async {
            let (heard, ()) = tokio::select! {
                all = async { tokio::join!(hear(stdout, heard), asking) } => all,
                () = async { let _ = child.wait().await; sleep(LAST_WORDS).await } => (Ok(()), ()),
            };
            drop(hearing_over);
            heard
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

impl Drop for Process {
    fn drop(&mut self) {
        platform::kill_group(self.id);
    }
}

struct TooMuch;

/// Until the other side has closed, or has said its result and then closes late.
async fn hear(stdout: impl AsyncRead + Unpin, heard: &mut Heard) -> Result<(), TooMuch> {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut capped = (&mut stdout).take(LINE_MAX);
        let reading = capped.read_until(b'\n', &mut line);
        let read = if heard.is_complete() {
            timeout(GRACE, reading).await.unwrap_or(Ok(0))
        } else {
            reading.await
        };
        match read {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) if line.len() as u64 == LINE_MAX => return Err(TooMuch),
            Ok(_) => heard.take(&line),
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
