//! The memory agent's conversations with a model, one for each session that is not over.
//!
//! A conversation is taken out before a question and kept again after the answer was stored, so a
//! worker that dies in between leaves none, and no model is asked twice about the same events in one
//! conversation.

use rusqlite::named_params;

use super::{HostSession, SILENCE, Store};
use crate::db::Rows as _;
use crate::model::Millis;

impl Store {
    /// Takes out the conversation about a session: its state, and when it was last used.
    pub fn take_conversation(
        &self,
        session: &HostSession,
        provider: &str,
    ) -> rusqlite::Result<Option<(String, Millis)>> {
        self.connection.first(
            "delete from conversations
             where host = :host and host_session_id = :session and provider = :provider
             returning state, used_at",
            named_params! {":host": session.host, ":session": session.id, ":provider": provider},
        )
    }

    /// Stores the conversation about a session after a question, unless something was forgotten since
    /// then, which it may repeat. Returns whether it was stored.
    pub fn keep_conversation(
        &self,
        session: &HostSession,
        provider: &str,
        state: &str,
        used_at: Millis,
    ) -> rusqlite::Result<bool> {
        let stored = self.connection.execute(
            "insert or replace into conversations (host, host_session_id, provider, state, used_at)
             select :host, :session, :provider, :state, :used_at
             where not exists (select 1 from forgotten where at >= :used_at)",
            named_params! {
                ":host": session.host, ":session": session.id, ":provider": provider,
                ":state": state, ":used_at": used_at,
            },
        )?;
        Ok(stored > 0)
    }

    /// The sessions with a conversation of which no further question is expected: the session is
    /// over, or nothing was asked for a day.
    pub fn conversations_over(&self, now: Millis) -> rusqlite::Result<Vec<HostSession>> {
        self.connection.all(
            "select c.host, c.host_session_id as id
             from conversations c
             left join sessions s on s.host = c.host and s.host_session_id = c.host_session_id
             where s.state in ('completed', 'interrupted') or c.used_at < :before",
            named_params! {":before": now - SILENCE},
        )
    }

    /// The states of all conversations.
    pub fn conversations(&self) -> rusqlite::Result<Vec<String>> {
        let states = "select state from conversations";
        self.connection.all(states, [])
    }

    /// Deletes the conversations with other providers, which this one cannot carry on.
    pub fn delete_other_conversations(&self, provider: &str) -> rusqlite::Result<()> {
        let others = "delete from conversations where provider <> :provider";
        self.connection
            .execute(others, named_params! {":provider": provider})?;
        Ok(())
    }
}
