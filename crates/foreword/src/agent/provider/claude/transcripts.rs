//! The transcripts that the claude CLI writes of our conversations, and of nothing else: they lie in the
//! user's configuration folder, in a folder of their own for the one that the memory agent runs in.

use crate::agent::conversation::Conversation;
use crate::home::Home;
use crate::host::claude_code;

/// Whether the client has transcripts of our conversations.
pub fn has_transcripts(home: &Home) -> bool {
    claude_code::transcripts(&home.agent()).is_some_and(|folder| folder.exists())
}

/// Deletes the client's transcripts of our conversations, except of those that are kept.
pub fn sweep(home: &Home, kept: &[Conversation]) {
    let is_kept = |id: &str| {
        let mut records = kept.iter().filter_map(|it| it.client.as_ref());
        records.any(|record| record.id == id)
    };
    remove(home, |id| !is_kept(id));
}

/// Deletes the transcripts with these ids.
pub fn remove(home: &Home, is_wanted: impl Fn(&str) -> bool) {
    let Some(folder) = claude_code::transcripts(&home.agent()) else {
        return;
    };
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let id = path.file_stem().and_then(|it| it.to_str());
        if id.is_some_and(&is_wanted) {
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
    // Only if it is empty.
    let _ = std::fs::remove_dir(folder);
}
