//! (skeleton) Finds the known tags in whatever a model answered.

/// What a reply says, field by field, as it stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub observations: Vec<Observation>,
    pub summary: Option<Summary>,
    /// The reason that was given why there is nothing worth keeping.
    pub nothing: Option<String>,
    /// A block was begun and not ended: the reply was cut off, or its end forgotten.
    pub open_end: bool,
}

/// An `<observation>` as it was written. Missing fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    pub kind: String,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: String,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    /// From a plain `<files>`, which does not say how they were touched.
    pub files: Vec<String>,
    /// The numbers of the events that it came from.
    pub events: Vec<u32>,
    /// The old one-sentence form: `<type>` and `<text>`.
    pub text: String,
}

/// A `<summary>` as it was written. Missing fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub request: String,
    pub investigated: String,
    pub learned: String,
    pub completed: String,
    pub next_steps: String,
    pub files_read: Vec<String>,
    pub files_edited: Vec<String>,
    pub notes: String,
}

pub fn read(_reply: &str) -> Reply {
    Reply::default()
}
