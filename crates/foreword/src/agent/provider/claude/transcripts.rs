//! Deletes the transcripts that the claude CLI writes of the memory agent's conversations. The CLI has
//! one folder of transcripts for each folder that it was started in. The memory agent's folder is used
//! for nothing else, so all transcripts there are ours.

use crate::agent::conversation::Conversation;
use crate::home::Home;
use crate::host::claude_code;

/// Whether the client has transcripts of our conversations.
pub fn has_transcripts(home: &Home) -> bool {
    claude_code::transcripts(&home.agent()).is_some_and(|folder| folder.exists())
}

/// Deletes the client's transcripts of our conversations, except those in `kept`.
pub fn sweep(home: &Home, kept: &[Conversation]) {
    let is_kept = |id: &str| {
        let mut records = kept.iter().filter_map(|it| it.client.as_ref());
        records.any(|record| record.id == id)
    };
    remove(home, |id| !is_kept(id));
}

/// Deletes the transcripts whose id is selected.
pub fn remove(home: &Home, is_selected: impl Fn(&str) -> bool) {
    let Some(folder) = claude_code::transcripts(&home.agent()) else {
        return;
    };
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let id = path.file_stem().and_then(|it| it.to_str());
        if id.is_some_and(&is_selected) {
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
    // This succeeds only if the folder is empty.
    let _ = std::fs::remove_dir(folder);
}
