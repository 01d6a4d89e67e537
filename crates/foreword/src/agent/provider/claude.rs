//! The user's own claude CLI as a provider, with the login that it has.
//!
//! A question that stands alone has a process of its own. In a conversation the process waits for the
//! next question; once it has ended, a new process resumes the conversation from the client's
//! transcript. A process gets the user's login and none of the user's other settings. Its transcripts
//! are deleted when the session is over. `command` starts a process, `stream` reads its output,
//! `failure` classifies its errors.

mod command;
mod failure;
mod stream;

use std::process::Stdio;
use std::time::Duration;

use foreword_core::model::{FailureKind, Millis};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::{Failure, ModelCall, Provider, Question};
use crate::agent::conversation::{ClientRecord, Conversation};
use crate::config;
use crate::home::Home;
use crate::host::claude_code::agent_files::{remove_sessions, remove_transcripts};
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

/// The most processes that are kept for the next question.
const ALIVE_MAX: usize = 2;

pub struct Claude {
    settings: config::ClaudeSection,
    home: Home,
    /// Processes with a conversation, the one that was used last at the end.
    alive: Vec<ClaudeProcess>,
}

impl Claude {
    pub fn new(settings: &config::ClaudeSection, home: &Home) -> Claude {
        Claude {
            settings: settings.clone(),
            home: home.clone(),
            alive: Vec::new(),
        }
    }

    fn start(
        &self,
        question: &Question<'_>,
        transcript: Transcript<'_>,
    ) -> std::io::Result<ClaudeProcess> {
        let command = command::prepare(&self.settings, &self.home, question, transcript)?;
        ClaudeProcess::start(command, transcript)
    }

    /// Ends a process. If it has to be killed, it leaves files behind.
    async fn end(&self, process: ClaudeProcess) {
        if process.end().await == ProcessEnd::Killed {
            remove_sessions(&self.home);
        }
    }

    fn take_alive(&mut self, id: &str) -> Option<ClaudeProcess> {
        let at = self.alive.iter().position(|it| it.session == id)?;
        Some(self.alive.remove(at))
    }
}

impl Provider for Claude {
    async fn ask(
        &mut self,
        question: &Question<'_>,
        conversation: Option<&mut Conversation>,
    ) -> ModelCall {
        let record = conversation.as_ref().and_then(|it| it.client.as_ref());
        let alive = record.and_then(|it| self.take_alive(&it.id));
        let transcript = match (&conversation, record) {
            (None, _) => Transcript::None,
            (Some(_), None) => Transcript::New,
            (Some(_), Some(record)) => Transcript::Of(record),
        };
        let mut asked = match alive {
            Some(process) => Some(process.ask(question).await),
            None => None,
        };
        // A process that died while it waited has not sent the question, so a new one is asked.
        asked.take_if(|(process, call)| process.is_over && call.requests == 0);
        let (process, call) = match asked {
            Some(asked) => asked,
            None => match self.start(question, transcript) {
                Ok(process) => process.ask(question).await,
                Err(error) => {
                    return ModelCall::failed(0, failure::of_start(&error, &self.settings));
                }
            },
        };
        let Some(conversation) = conversation else {
            self.end(process).await;
            return call;
        };
        if process.is_lost {
            self.end(process).await;
            let text = "the claude CLI no longer has the conversation";
            return ModelCall::failed(0, Failure::new(FailureKind::Request, text));
        }
        // After a failed question the client goes on as if it had not been asked, unless it was the
        // first of the conversation.
        let goes_on = !process.is_over && (call.answer.is_ok() || conversation.client.is_some());
        let record = ClientRecord {
            id: process.session.clone(),
            total_usd: process.total_usd,
        };
        let old = conversation.client.replace(record.clone());
        if goes_on {
            self.alive.push(process);
            if self.alive.len() > ALIVE_MAX {
                let oldest = self.alive.remove(0);
                self.end(oldest).await;
            }
        } else {
            self.end(process).await;
            conversation.client = None;
            remove_transcripts(&self.home, |id| id == record.id);
        }
        if let Some(old) = old.filter(|old| old.id != record.id) {
            remove_transcripts(&self.home, |id| id == old.id);
        }
        call
    }

    async fn forget(&mut self, conversation: &Conversation) {
        if let Some(record) = &conversation.client {
            if let Some(process) = self.take_alive(&record.id) {
                self.end(process).await;
            }
            remove_transcripts(&self.home, |id| id == record.id);
        }
    }

    async fn end_unused(&mut self, since: Millis) -> Option<Millis> {
        while self.alive.first().is_some_and(|it| it.used_at <= since) {
            let unused = self.alive.remove(0);
            self.end(unused).await;
        }
        self.alive.first().map(|it| it.used_at)
    }
}

/// Whether the client writes a transcript, by which a later process can go on.
#[derive(Clone, Copy)]
enum Transcript<'a> {
    None,
    New,
    Of(&'a ClientRecord),
}

/// A running client. Dropping it kills the process and everything that it started.
struct ClaudeProcess {
    child: Child,
    id: u32,
    /// Closed after a question that stands alone, so that the process ends by itself.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
    /// Whether the process waits for further questions of a conversation.
    keeps: bool,
    /// The client's id of the conversation.
    session: String,
    /// The cost of the conversation so far, as the client counts it.
    total_usd: f64,
    used_at: Millis,
    /// Whether it can answer no further question.
    is_over: bool,
    /// Whether the client no longer has the conversation that it should resume.
    is_lost: bool,
}

impl ClaudeProcess {
    fn start(mut command: Command, transcript: Transcript<'_>) -> std::io::Result<ClaudeProcess> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        platform::bind_to_us(&mut command);
        let mut child = command.spawn()?;
        let record = match transcript {
            Transcript::Of(record) => record.clone(),
            Transcript::None | Transcript::New => ClientRecord::default(),
        };
        Ok(ClaudeProcess {
            id: child.id().unwrap_or(0),
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("stdout is piped")),
            stderr: child.stderr.take().expect("stderr is piped"),
            child,
            keeps: !matches!(transcript, Transcript::None),
            session: record.id,
            total_usd: record.total_usd,
            used_at: 0,
            is_over: false,
            is_lost: false,
        })
    }

    async fn ask(mut self, question: &Question<'_>) -> (ClaudeProcess, ModelCall) {
        let mut reader = StreamReader::new(self.total_usd);
        let mut complaint = Vec::new();
        let ended = timeout(
            question.patience,
            self.converse(question.text, &mut reader, &mut complaint),
        )
        .await;
        self.used_at = question.now;
        self.is_over = !reader.is_complete() || !matches!(self.child.try_wait(), Ok(None));
        match reader.session() {
            Some(session) => self.session = session.to_owned(),
            None => self.is_lost = reader.is_complete() && !self.session.is_empty(),
        }
        self.total_usd = reader.total_usd();
        let call = match ended {
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
        };
        (self, call)
    }

    /// Sends the question and reads the answer.
    async fn converse(
        &mut self,
        text: &str,
        reader: &mut StreamReader,
        complaint: &mut Vec<u8>,
    ) -> Result<(), TooMuch> {
        let (child, stdin, keeps) = (&mut self.child, &mut self.stdin, self.keeps);
        let (stdout, stderr) = (&mut self.stdout, &mut self.stderr);
        let asking = async {
            if let Some(stdin) = stdin {
                // If the process does not read its input, its output gives the reason.
                let _ = stdin.write_all(&stream::user_message(text)).await;
            }
            if !keeps {
                // It ends after its answer even if we are gone.
                *stdin = None;
            }
        };
        let (hearing_over, over) = oneshot::channel::<bool>();
        let hearing = async {
            let (outcome, ()) = tokio::select! {
                all = async { tokio::join!(read_messages(stdout, reader, keeps), asking) } => all,
                // A process that it started may keep the pipes open after its end.
                () = async { let _ = child.wait().await; sleep(LAST_WORDS).await } => (Ok(()), ()),
            };
            let _ = hearing_over.send(keeps && reader.is_complete());
            outcome
        };
        let complaining = async {
            tokio::select! {
                () = keep_end(stderr, complaint) => {}
                () = async { if over.await != Ok(true) { sleep(LAST_WORDS).await } } => {}
            }
            Ok(())
        };
        tokio::try_join!(hearing, complaining)?;
        Ok(())
    }

    /// Has the process end by itself, so that it leaves no files behind. It is killed after `GRACE`, or
    /// at once if it gave no answer.
    async fn end(mut self) -> ProcessEnd {
        self.stdin = None;
        if !self.is_over && timeout(GRACE, self.child.wait()).await.is_ok() {
            return ProcessEnd::ByItself;
        }
        platform::kill_group(self.id);
        let _ = timeout(GRACE, self.child.wait()).await;
        ProcessEnd::Killed
    }
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessEnd {
    ByItself,
    Killed,
}

impl Drop for ClaudeProcess {
    fn drop(&mut self) {
        platform::kill_group(self.id);
    }
}

struct TooMuch;

/// Reads messages until the result if the process goes on, else until the output is closed, or until
/// `GRACE` after the result.
async fn read_messages(
    stdout: &mut (impl AsyncBufRead + Unpin),
    reader: &mut StreamReader,
    keeps: bool,
) -> Result<(), TooMuch> {
    let mut line = Vec::new();
    while !(keeps && reader.is_complete()) {
        line.clear();
        let mut capped = (&mut *stdout).take(LINE_MAX);
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
    Ok(())
}

async fn keep_end(stderr: &mut (impl AsyncRead + Unpin), end: &mut Vec<u8>) {
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
