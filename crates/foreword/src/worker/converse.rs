//! The conversation with a model about a session, and the last question about it.
//!
//! Before a question the conversation is taken out of the store, and put back after the answer was
//! stored. So if a worker dies in between, its events are asked about again in a new conversation,
//! never in one that has them already. A conversation is begun anew with a digest if it was lost, if it
//! would cost too much or if a batch failed, and deleted when the session is over.

use foreword_core::model::{Millis, Provenance};
use foreword_core::store::{Closing, HostSession, ShownSession};

use super::derive::{DeriveFailure, Deriver, failure};
use crate::agent::compress::{CompressError, Compressor};
use crate::agent::conversation::Conversation;
use crate::agent::leash::Permission;
use crate::agent::provider::{Failure, Provider as _};
use crate::home::Home;
use crate::host::claude_code::agent_files;

impl Deriver {
    /// Puts the conversation about a session in place for the next question, if questions share one.
    pub(super) async fn converse(
        &mut self,
        session: &HostSession,
        now: Millis,
    ) -> Result<(), DeriveFailure> {
        if self.converses {
            let conversation = match self.take_conversation(session, now).await? {
                Some(conversation) => conversation,
                None => self.new_conversation(session)?,
            };
            self.compressor().conversation = Some(conversation);
        }
        Ok(())
    }

    /// Begins the conversation anew after a failure that it may have caused. False if there is no
    /// conversation, or if it was new.
    pub(super) async fn begin_again(
        &mut self,
        session: &HostSession,
        failed: &Failure,
    ) -> Result<bool, DeriveFailure> {
        let left = self.compressor().leave_conversation(failed).await;
        if left {
            self.compressor().conversation = Some(self.new_conversation(session)?);
        }
        Ok(left)
    }

    /// Ends the conversation, after answers in it that could not be used.
    pub(super) async fn end_conversation(&mut self) {
        self.compressor().end_conversation().await;
    }

    /// Puts the conversation back after a question, or ends it if the batch failed.
    pub(super) async fn settle(
        &mut self,
        session: &HostSession,
        outcome: &Result<(), DeriveFailure>,
    ) -> Result<(), DeriveFailure> {
        let Some(compressor) = &mut self.compressor else {
            return Ok(());
        };
        let goes_on = matches!(outcome, Ok(()) | Err(DeriveFailure::Paused(_)));
        let conversation = compressor
            .conversation
            .take_if(|it| goes_on && !it.is_new());
        let Some(conversation) = conversation else {
            compressor.end_conversation().await;
            return Ok(());
        };
        let (provider, state) = (compressor.provider, conversation.state());
        let used_at = conversation.used_at;
        let kept = self
            .store
            .keep_conversation(session, provider, &state, used_at);
        if !kept.map_err(failure)? {
            compressor.model.forget(&conversation).await;
        }
        Ok(())
    }

    /// Asks the model about one session that is over. False if there is none. If it may not be asked,
    /// or its answer is of no use, the digest that `offline` derived stays.
    pub async fn close_session(&mut self, now: Millis) -> Result<bool, DeriveFailure> {
        let Some(Compressor { provider, .. }) = self.compressor else {
            return Ok(false);
        };
        let session = self.store.session_to_close(provider, now);
        let Some(session) = session.map_err(failure)? else {
            self.end_conversations(now).await?;
            return Ok(false);
        };
        let ended = self.store.shown_session(&session, provider);
        let Some(ended) = ended.map_err(failure)? else {
            return Ok(false);
        };
        let may_ask = self.leash.may_ask(&self.store, &session.id, now);
        let answer = match may_ask.map_err(failure)? {
            _ if self.forbids_models_in(&session)? => None,
            Permission::Ask => self.ask_about_the_whole(&ended, now).await?,
            Permission::StandIn(why) => {
                self.note_stand_in(&session.id, &[], &why, now)?;
                None
            }
        };
        let answer = answer
            .as_ref()
            .map(|(closing, provenance)| (closing, provenance));
        self.store.close_session(&ended, answer).map_err(failure)?;
        Ok(true)
    }

    /// Asks in the conversation if it can go on, else by a question that stands alone.
    async fn ask_about_the_whole(
        &mut self,
        ended: &ShownSession,
        now: Millis,
    ) -> Result<Option<(Closing, Provenance)>, DeriveFailure> {
        self.compressor().conversation = self.take_conversation(&ended.session, now).await?;
        let mut asked = self.close(ended).await;
        if let Err(CompressError::Failure(failed)) = &asked
            && self.compressor().leave_conversation(failed).await
        {
            asked = self.close(ended).await;
        }
        let answer = match asked {
            Ok(answer) => Ok(answer),
            Err(CompressError::Failure(_)) => Ok(None),
            Err(CompressError::OverBudget(why)) => {
                self.note_stand_in(&ended.session.id, &[], &why, now)?;
                Ok(None)
            }
            Err(CompressError::Storage(error)) => Err(failure(error)),
            Err(CompressError::Paused(failed)) => {
                let paused = Err(DeriveFailure::Paused(failed));
                self.settle(&ended.session, &paused).await?;
                paused.map(|()| None)
            }
        };
        self.compressor().end_conversation().await;
        answer
    }

    async fn close(
        &mut self,
        ended: &ShownSession,
    ) -> Result<Option<(Closing, Provenance)>, CompressError> {
        let compressor = self.compressor.as_mut().expect("there is a model");
        let (leash, store, clock) = (&self.leash, &self.store, self.clock);
        let pause = |failure: &Failure| leash.pause_after(store, failure, clock());
        let asked = compressor.close(store, ended, clock(), pause).await;
        self.leash.tighten();
        asked
    }

    /// Takes out the conversation about a session; none if there is none that can go on.
    async fn take_conversation(
        &mut self,
        session: &HostSession,
        now: Millis,
    ) -> Result<Option<Conversation>, DeriveFailure> {
        let provider = self.compressor().provider;
        let taken = self.store.take_conversation(session, provider);
        let taken = taken.map_err(failure)?.and_then(Conversation::read);
        let Some(conversation) = taken else {
            return Ok(None);
        };
        let compressor = self.compressor();
        if compressor.can_go_on(&conversation, now) {
            return Ok(Some(conversation));
        }
        compressor.model.forget(&conversation).await;
        Ok(None)
    }

    fn new_conversation(&mut self, session: &HostSession) -> Result<Conversation, DeriveFailure> {
        let provider = self.compressor().provider;
        let so_far = self.store.shown_session(session, provider);
        let so_far = so_far.map_err(failure)?;
        let prompts = &self.compressor().prompts;
        Ok(Conversation::begin(prompts, so_far.as_ref()))
    }

    /// Deletes the conversations about sessions that are over.
    async fn end_conversations(&mut self, now: Millis) -> Result<(), DeriveFailure> {
        let provider = self.compressor().provider;
        for session in self.store.conversations_over(now).map_err(failure)? {
            let taken = self.store.take_conversation(&session, provider);
            if let Some(conversation) = taken.map_err(failure)?.and_then(Conversation::read) {
                self.compressor().model.forget(&conversation).await;
            }
        }
        Ok(())
    }

    /// Deletes conversations with other providers, the claude CLI's transcripts of conversations that
    /// are no longer stored, and what killed clients have left.
    pub(super) fn sweep_conversations(&self, home: &Home) -> rusqlite::Result<()> {
        let provider = self.leash.provider.as_str();
        self.store.delete_other_conversations(provider)?;
        let states = self.store.conversations()?.into_iter();
        let kept = states.filter_map(|state| Conversation::read((state, 0))?.client);
        let kept: Vec<String> = kept.map(|it| it.id).collect();
        let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
        agent_files::sweep(home, &kept);
        Ok(())
    }

    /// Ends processes of the provider that were not used for a while. Returns when the next one is due.
    pub(super) async fn end_unused(&mut self, now: Millis) -> Option<Millis> {
        let model = &mut self.compressor.as_mut()?.model;
        let oldest = model.end_unused(now - PROCESS_KEPT).await?;
        Some(oldest + PROCESS_KEPT)
    }
}

/// How long a process of the provider is kept for the next question.
const PROCESS_KEPT: Millis = 30_000;
