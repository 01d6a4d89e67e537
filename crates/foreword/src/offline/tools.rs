use foreword_core::model::{Event, Millis, TouchedFile};
use uuid::Uuid;
#[derive(Debug, Clone, Default)]
pub struct Step {
    pub event: Uuid,
    pub at: Millis,
    pub agent_id: Option<String>,
    pub tool: String,
    pub files: Vec<TouchedFile>,
    pub edits: Vec<Edit>,
    pub runs: Vec<Run>,
    pub commits: Vec<Commit>,
    pub answers: Vec<Answer>,
    pub removed: Vec<String>,
    pub plumbing: bool,
}
#[derive(Debug, Clone, Default)]
pub struct Edit {
    pub path: String,
    pub before: String,
    pub after: String,
    pub created: bool,
}
#[derive(Debug, Clone, Default)]
pub struct Run {
    pub command: String,
    pub passed: bool,
    pub check: bool,
    pub telling: String,
}
#[derive(Debug, Clone, Default)]
pub struct Commit {
    pub subject: String,
    pub body: String,
    pub hash: Option<String>,
    pub files: Vec<String>,
    pub amend: bool,
}
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub question: String,
    pub answer: String,
    pub refused: Vec<String>,
}
pub fn step(_event: &Event) -> Option<Step> {
    None
}
