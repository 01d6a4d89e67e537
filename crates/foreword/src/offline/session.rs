//! Makes the observations of a session from its turns, and says what the session came to.
//!
//! A turn gives one observation, or one for each of several commits. Then turns are folded into
//! each other, so that one thing is recorded once: a turn that only commits belongs to the edits
//! before it, an attempt that was given up to the change that replaced it, and a turn without a
//! good title gives its facts to its neighbour.

use std::collections::{HashMap, HashSet};

use foreword_core::model::{Derived, ObservationType, Origin, SessionDigest, TouchedFile, Turn};
use foreword_core::text;

use super::draft::{self, Draft, Fact};
use super::headline::{self, Title, TitleSource};
use super::kind;
use super::lexicon::{self, Stems};
use super::markdown;
use super::prose;
use super::survival::{Survival, names_any, red_at_end, survival};
use super::title;
use super::turn::{self, FACTS_MAX, TurnReading};
use crate::agent::origin;
use crate::evidence::Commit;

/// The most observations of one turn.
const PIECES_MAX: usize = 8;
/// A session's discovery beside a change needs a title this good, and this many facts.
const DISCOVERY_ALONE: f32 = 4.0;
const DISCOVERY_FACTS: usize = 4;
/// The beginning of the only fact of a turn of which nothing but the changed files is known.
const CHANGED: &str = "Changed ";
/// The most findings of earlier turns that are told with a repair.
const CAUSES_MAX: usize = 2;
/// A fact goes to a neighbour that edits other files only if it shares this many stems with it.
const SHARED_STEMS: usize = 3;
/// A title of the agent's words needs at least this to stand in a list.
const TITLE_ALONE: f32 = 2.0;

/// What was derived from a session: one `Derived` for each turn, and the whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DerivedSession {
    pub turns: Vec<Derived>,
    pub digest: SessionDigest,
}

pub fn derive(turns: &[Turn]) -> DerivedSession {
    let mut session = Session::read(turns);
    session.leave_out_dead_names();
    session.fold_commits();
    let mut drafts = session.drafts();
    let given_up = session.give_up(&mut drafts);
    session.mark_outdated(&mut drafts);
    session.carry_to_neighbours(&mut drafts);
    let digest = session.digest(&drafts, given_up);
    session.finish(drafts, digest)
}

struct Session<'a> {
    readings: Vec<TurnReading<'a>>,
    /// Turns that were folded into another one.
    folded: Vec<bool>,
    /// Facts that came with a folded commit, by turn.
    carried: Vec<Vec<Fact>>,
    survival: Vec<Survival>,
    /// Checks that stayed red to the end of the session, by turn: command and telling line.
    red: Vec<Vec<(String, String)>>,
    /// How often each word occurs in what was said, for concepts.
    nouns: HashMap<String, usize>,
}

impl<'a> Session<'a> {
    fn read(turns: &'a [Turn]) -> Session<'a> {
        let mut readings: Vec<TurnReading<'a>> = Vec::new();
        let mut offered: Vec<String> = Vec::new();
        for (number, turn) in turns.iter().enumerate() {
            let reading = TurnReading::of(turn, number == 0, &offered);
            offered.clone_from(&reading.prose.options);
            if let Some(before) = readings.last_mut() {
                for objection in reading.objections() {
                    before.contradict(&objection);
                }
            }
            readings.push(reading);
        }
        let statements: Vec<String> = readings.iter().flat_map(TurnReading::statements).collect();
        let events = turns.iter().flat_map(|it| &it.events);
        let copied = origin::copied(events, statements.iter().map(String::as_str));
        for reading in &mut readings {
            reading.mark_copied(&copied);
        }
        let mut nouns = HashMap::new();
        for reading in &readings {
            for text in [
                &reading.typed,
                reading.closing.as_ref().unwrap_or(&String::new()),
            ] {
                for word in lexicon::nouns(text) {
                    *nouns.entry(word).or_insert(0) += 1;
                }
            }
        }
        Session {
            folded: vec![false; readings.len()],
            carried: vec![Vec::new(); readings.len()],
            survival: survival(&readings.iter().collect::<Vec<_>>()),
            red: red_at_end(&readings),
            readings,
            nouns,
        }
    }

    /// Leaves out sentences about names and lines that a turn added and a later turn removed again.
    /// An attempt that was given up as a whole is told elsewhere.
    fn leave_out_dead_names(&mut self) {
        for (reading, survival) in self.readings.iter_mut().zip(&self.survival) {
            if !survival.overtaken {
                reading.leave_out(|text| {
                    let gone = lexicon::stems(text).intersection(&survival.gone).count();
                    gone >= 2 || names_any(text, &survival.dead)
                });
            }
            if !survival.put_back.is_empty() {
                reading.leave_out(|text| {
                    let names = lexicon::anchors(text);
                    let mut names = names.iter().filter(|it| it.chars().count() >= 5);
                    names.any(|name| survival.put_back.iter().any(|it| it.contains(name)))
                });
            }
        }
    }

    /// A turn that only commits names the turn whose edits it commits; so does the commit of a turn
    /// that added tests to earlier edits, if it names those.
    fn fold_commits(&mut self) {
        let mut committed = vec![false; self.readings.len()];
        for at in 0..self.readings.len() {
            let reading = &self.readings[at];
            if reading.commits.is_empty() {
                continue;
            }
            let open: Vec<usize> = (0..at)
                .filter(|&it| self.readings[it].has_edits() && !committed[it])
                .collect();
            let only_documents = reading.edits().all(|it| turn::is_prose_file(&it.path));
            let subjects: Vec<&str> = reading
                .commits
                .iter()
                .map(|it| it.subject.as_str())
                .collect();
            let subjects = lexicon::stems(&subjects.join(" "));
            let likeness = |&it: &usize| {
                let reading = &self.readings[it];
                let mut said = lexicon::stems(&draft::joined(&reading.facts));
                said.extend(reading.asked.iter().cloned());
                lexicon::overlap(&subjects, &said) + 0.1 * (1.0 + reading.edit_size() as f32).ln()
            };
            let best = open
                .iter()
                .copied()
                .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let named = |it: usize| lexicon::overlap(&subjects, &self.readings[it].edited);
            let names_earlier = only_documents
                || reading.edits().all(|it| turn::is_test_file(&it.path))
                    && best.is_some_and(|it| named(it) > named(at));
            let Some(best) = best.filter(|_| names_earlier) else {
                (0..=at).for_each(|it| committed[it] |= self.readings[it].has_edits());
                continue;
            };
            open.iter().for_each(|&it| committed[it] = true);
            let commits = std::mem::take(&mut self.readings[at].commits);
            self.readings[best].commits.extend(commits);
            if !only_documents {
                continue;
            }
            let by_user = std::mem::take(&mut self.readings[at].by_user);
            let facts = self.readings[at]
                .facts
                .iter()
                .filter(|it| lexicon::words(&it.text) >= 10);
            self.carried[best].extend(facts.cloned());
            self.readings[best].by_user.extend(by_user);
            self.folded[at] = true;
        }
    }

    fn drafts(&self) -> Vec<Draft> {
        let mut drafts: Vec<Draft> = Vec::new();
        for (at, reading) in self.readings.iter().enumerate() {
            if self.folded[at] {
                continue;
            }
            let own: usize = reading.steps.iter().map(|it| it.commits.len()).sum();
            if own >= 2 && reading.commits.len() >= 2 && reading.commits.len() <= own {
                let pieces = reading.pieces(PIECES_MAX);
                let mut made: Vec<Draft> = Vec::new();
                for (number, piece) in pieces.iter().enumerate() {
                    made.extend(self.draft(at, piece, Some(number), &drafts));
                }
                if made.len() >= 2 {
                    drafts.append(&mut made);
                    continue;
                }
            }
            drafts.extend(self.draft(at, reading, None, &drafts));
        }
        drafts
    }

    /// None if nothing happened in the turn that is worth keeping.
    fn draft(
        &self,
        at: usize,
        reading: &TurnReading<'_>,
        piece: Option<usize>,
        earlier: &[Draft],
    ) -> Option<Draft> {
        let mut facts = reading.facts.clone();
        let red = self.red[at].first();
        if let Some((_, telling)) = red {
            let closing = reading.closing.as_deref().unwrap_or_default();
            let sentences = markdown::clauses(closing).into_iter();
            let mut sentences = sentences.map(|it| markdown::strip(&it));
            facts.retain(|it| !lexicon::is_status(&it.text));
            let claim = sentences.find(|it| {
                lexicon::words(it) >= 3
                    && lexicon::is_status(it)
                    && !lexicon::addresses_the_user(it)
            });
            let claim = claim.map(|it| {
                format!(
                    "The agent said: “{it}”; the run shows: {}",
                    text::quoted(telling)
                )
            });
            facts.extend(claim.map(|it| Fact::new(it, Origin::Read)));
        }
        let nothing = Stems::default();
        for commit in &reading.commits {
            let body = prose::read(&commit.body, false);
            for unit in body
                .units
                .iter()
                .filter(|it| prose::is_fact(it, &nothing))
                .take(4)
            {
                for fact in Fact::parted(&unit.text, &reading.copied) {
                    let text = match fact.origin {
                        Origin::Read => fact.text,
                        _ => title::capitalised(&title::clip(&fact.text, 40)),
                    };
                    add_fact(&mut facts, Fact { text, ..fact }, 0.6);
                }
            }
        }
        for fact in &self.carried[at] {
            add_fact(&mut facts, fact.clone(), 1.0);
        }
        // What was printed when it failed is part of the statement.
        facts.extend(reading.repaired().map(|it| Fact::new(it, Origin::Read)));
        if facts.is_empty() && reading.has_edits() {
            let files = reading.changed_files();
            let names = files.iter().take(3).map(|it| format!("`{}`", it.path));
            let changed = format!("{CHANGED}{}", names.collect::<Vec<_>>().join(", "));
            facts.push(Fact::new(changed, Origin::Agent));
        }
        if let Some((command, telling)) = red {
            facts.insert(0, Fact::new(failed(command, telling), Origin::Read));
        }
        let by_user = reading.by_user.iter().take(2);
        let by_user = by_user.map(|it| Fact::new(it.clone(), Origin::User));
        let said = facts.len();
        facts.splice(0..0, by_user);
        let commits = reading.commits.iter();
        // Words that were merely read are not repeated as the message of a commit.
        let subject = |it: &Commit| match reading.copied.contains_key(&it.subject) {
            true => String::new(),
            false => it.subject.clone(),
        };
        let commits = commits.filter_map(|it| Some((it.hash.clone()?, subject(it))));
        let commits: Vec<(String, String)> = commits.collect();
        let rest = facts.split_off(
            facts
                .len()
                .min(FACTS_MAX - usize::from(!commits.is_empty())),
        );
        let rest = rest.into_iter().filter(|it| it.origin != Origin::Read);
        let mut rest: Vec<String> = rest.map(|it| it.text).collect();
        rest.extend(reading.rest.iter().cloned());
        let taken: Vec<Stems> = earlier
            .iter()
            .map(|it| lexicon::stems(&it.title.text))
            .collect();
        let title = headline::choose(reading, &taken)?;
        let kind = match kind::of(reading) {
            ObservationType::Feature | ObservationType::Refactor
                if lexicon::speaks_of_fault(&title.text) =>
            {
                ObservationType::Bugfix
            }
            ObservationType::Feature if lexicon::begins_with_reshaping(&title.text) => {
                ObservationType::Refactor
            }
            kind => kind,
        };
        if is_nothing(reading, kind, &title, &facts, said) {
            return None;
        }
        let prompt = reading.turn.prompt_id.as_deref().unwrap_or_default();
        let files = match kind {
            ObservationType::Discovery if !reading.has_edits() => {
                reading.read_files(&draft::joined(&facts))
            }
            _ => reading.changed_files(),
        };
        Some(Draft {
            turn: at,
            seed: match piece {
                None => format!("turn:{prompt}"),
                Some(number) => format!("turn:{prompt}:{number}"),
            },
            kind,
            title,
            facts,
            rest,
            commits,
            files,
            size: reading.edit_size(),
            overtaken: self.survival[at].overtaken,
            outdated: false,
            retracted: None,
        })
    }

    /// An attempt of which hardly anything is left is told with the change that replaced it.
    fn give_up(&self, drafts: &mut Vec<Draft>) -> Vec<String> {
        let mut given_up = Vec::new();
        let mut at = 0;
        while at < drafts.len() {
            let draft = &drafts[at];
            let next = drafts[at + 1..].iter().position(|it| {
                !it.overtaken
                    && it.turn > draft.turn
                    && (shares_file(it, draft) || it.kind != ObservationType::Discovery)
            });
            if !draft.overtaken {
                at += 1;
                continue;
            }
            let reading = &self.readings[draft.turn];
            let dead = &self.survival[draft.turn].dead;
            let is_dead = |text: &&String| names_any(text, dead);
            let facts = reading.facts.iter().map(|it| &it.text);
            let mut said = std::iter::once(&draft.title.text).chain(facts);
            let what = said.find(is_dead).map(|it| title::squeeze(it, 14, true).0);
            let why = self.readings.get(draft.turn + 1);
            let why = why.and_then(|it| it.correction.as_deref());
            let why = why.filter(|it| lexicon::words(it) >= 3);
            let why = why.map(|it| format!(" (then the user: “{}”)", title::clip(it, 25)));
            let why = why.unwrap_or_default();
            let told = what.map(|it| format!("{it}{why}"));
            given_up.extend(told.clone());
            let told = told.map(|it| Fact::new(format!("Given up: {it}"), Origin::Agent));
            let cause = reading
                .facts
                .iter()
                .find(|it| !is_dead(&&it.text) && lexicon::contrasts(&it.text));
            let cause = cause.filter(|_| told.is_some()).cloned();
            match next {
                Some(next) => {
                    let later = &mut drafts[at + 1 + next];
                    later
                        .facts
                        .truncate(FACTS_MAX - 1 - usize::from(cause.is_some()));
                    later.facts.extend(cause);
                    later.facts.extend(told);
                    drafts.remove(at);
                }
                None => {
                    drafts[at].retracted = Some("given up in the same session".to_owned());
                    at += 1;
                }
            }
        }
        given_up
    }

    /// Marks what a later turn changed or the user corrected, since it does not hold any more.
    fn mark_outdated(&self, drafts: &mut [Draft]) {
        for at in 0..drafts.len() {
            let draft = &drafts[at];
            let named: Stems = draft
                .facts
                .iter()
                .flat_map(|it| lexicon::anchors(&it.text))
                .collect();
            let names_file = |path: &str| {
                let name = path.rsplit('/').next().unwrap_or_default();
                let name = name.split('.').next().unwrap_or_default();
                !name.is_empty() && named.iter().any(|it| it.contains(name))
            };
            let changed_later = drafts.iter().any(|later| {
                later.turn > draft.turn
                    && later.kind != ObservationType::Discovery
                    && later.files.iter().any(|it| names_file(&it.path))
            });
            let next = self
                .readings
                .get(draft.turn + 1)
                .filter(|it| !it.by_host && it.plan.is_none());
            let stems = lexicon::stems(&draft.title.text);
            let about = |reading: &TurnReading<'_>| {
                let prompt = lexicon::stems(&reading.typed.chars().take(400).collect::<String>());
                prompt.intersection(&stems).count() >= 2
            };
            let contradicted = next.is_some_and(|it| {
                it.has_edits()
                    && (lexicon::contrasts(&it.typed) || lexicon::speaks_of_fault(&it.typed))
                    && about(it)
            });
            let correction = next.and_then(|it| it.correction.clone());
            let is_discovery = draft.kind == ObservationType::Discovery;
            let draft = &mut drafts[at];
            draft.outdated = contradicted || changed_later && is_discovery;
            if let Some(correction) = correction.filter(|_| is_discovery) {
                draft.retracted = Some(turn::said_by_user(&correction));
            }
        }
    }

    /// Keeps what has a title of its own; the facts of the others go to their neighbours.
    fn carry_to_neighbours(&self, drafts: &mut Vec<Draft>) {
        let has_change = drafts
            .iter()
            .any(|it| it.kind != ObservationType::Discovery);
        let worth = |it: &Draft| it.title.alone + 0.3 * it.facts.len() as f32;
        let mut best: Vec<f32> = drafts.iter().map(worth).collect();
        best.sort_by(|a, b| b.total_cmp(a));
        let second = best.get(1).or(best.first()).copied().unwrap_or_default();
        let is_kept = |it: &Draft| {
            let is_discovery = it.kind == ObservationType::Discovery;
            let titled = it.title.source.is_headline()
                || self.readings[it.turn].is_named_by_commit()
                || it.title.alone >= TITLE_ALONE
                    && it.facts.len() >= 2
                    && (is_discovery || it.title.source != TitleSource::Request);
            let alone_enough = !has_change && worth(it) >= second
                || it.title.alone >= DISCOVERY_ALONE
                    && it.facts.len() >= DISCOVERY_FACTS
                    && it.title.source == TitleSource::Said;
            let outdated = is_discovery && it.outdated && it.title.source != TitleSource::Heading;
            titled && !outdated && (!is_discovery || alone_enough)
        };
        if drafts.is_empty() {
            return;
        }
        let mut kept: Vec<bool> = drafts.iter().map(is_kept).collect();
        if !kept.contains(&true) {
            let best =
                (0..drafts.len()).max_by(|&a, &b| worth(&drafts[a]).total_cmp(&worth(&drafts[b])));
            kept[best.unwrap_or_default()] = true;
        }
        for at in (0..drafts.len()).filter(|&at| !kept[at]) {
            let distance = |&to: &usize| {
                let (draft, neighbour) = (&drafts[at], &drafts[to]);
                let apart = !draft.files.is_empty() && !shares_file(draft, neighbour);
                let unrelated = said(draft).intersection(&said(neighbour)).count() < 2;
                let turns = neighbour.turn.abs_diff(draft.turn);
                (apart, unrelated, turns, neighbour.turn < draft.turn)
            };
            let Some(to) = (0..drafts.len())
                .filter(|&it| kept[it])
                .min_by_key(distance)
            else {
                continue;
            };
            let is_older =
                drafts[at].turn < drafts[to].turn && drafts[to].kind != ObservationType::Discovery;
            // What was found before a change may not be true after it.
            let is_before = drafts[at].kind == ObservationType::Discovery && is_older;
            if drafts[at].retracted.is_some() || drafts[at].outdated && !is_before {
                continue;
            }
            let about = said(&drafts[to]);
            let same_files = shares_file(&drafts[at], &drafts[to]);
            let mut facts = std::mem::take(&mut drafts[at].facts);
            let files = std::mem::take(&mut drafts[at].files);
            // A fact under a title about something else misleads.
            facts.retain(|it| {
                let shared = lexicon::stems(&it.text).intersection(&about).count();
                let is_about = same_files && shared > 0 || shared >= SHARED_STEMS;
                is_about && !it.text.starts_with(CHANGED)
            });
            facts.sort_by_key(|it| (!it.is_by_user(), !lexicon::contrasts(&it.text)));
            let neighbour = &mut drafts[to];
            if is_before {
                let is_near = same_files || to == at + 1;
                facts = causes(facts, neighbour, if is_near { 1 } else { 2 });
            }
            let mut carried: Vec<Fact> = Vec::new();
            for fact in facts {
                let stems = lexicon::stems(&fact.text);
                let known = neighbour.facts.iter().chain(&carried);
                if !known
                    .map(|it| lexicon::stems(&it.text))
                    .any(|it| lexicon::overlap(&stems, &it) > 0.55)
                {
                    carried.push(fact);
                }
            }
            let most = FACTS_MAX - usize::from(!neighbour.commits.is_empty());
            carried.truncate(most.saturating_sub(neighbour.facts.len()).clamp(1, 3));
            neighbour.facts.truncate(most - carried.len());
            neighbour.facts.append(&mut carried);
            add_files(&mut neighbour.files, files);
        }
        let mut kept = kept.into_iter();
        drafts.retain(|_| kept.next().unwrap_or_default());
    }

    fn digest(&self, drafts: &[Draft], given_up: Vec<String>) -> SessionDigest {
        let live: Vec<&Draft> = drafts
            .iter()
            .filter(|it| !it.overtaken && it.retracted.is_none())
            .collect();
        let weight = |it: &Draft| match it.title.source {
            TitleSource::Commit | TitleSource::Plan => 1.3,
            _ => 1.0,
        };
        let rank = |it: &Draft| {
            if it.kind == ObservationType::Discovery {
                (false, it.title.alone + 0.15 * it.facts.len() as f32)
            } else {
                (true, (50.0 + it.size as f32).ln() * weight(it))
            }
        };
        let mut ranked = live;
        ranked.sort_by(|a, b| {
            let ((a_change, a), (b_change, b)) = (rank(a), rank(b));
            b_change.cmp(&a_change).then(b.total_cmp(&a))
        });
        let laid_down = self.readings.iter().flat_map(|it| &it.laid_down);
        // A session is never called by words that were merely read.
        ranked.retain(|it| it.title.origin() != Origin::Read);
        let mut titles = ranked.iter().map(|it| it.title.text.clone());
        let mut titles = titles.by_ref().chain(laid_down.map(|it| it.title.clone()));
        let request = || {
            let requests = self.readings.iter().filter(|it| !it.by_host);
            let mut requests = requests.filter_map(|it| title::request_title(it.prompt));
            requests.next().map(|(title, _)| title)
        };
        SessionDigest {
            title: titles.next().or_else(request).unwrap_or_default(),
            subtitle: titles.next().unwrap_or_default(),
            open: self.open(),
            given_up,
        }
    }

    /// What was unfinished at the end of the session.
    fn open(&self) -> Vec<String> {
        let mut open = Vec::new();
        let Some(last) = self.readings.last() else {
            return open;
        };
        let is_begun = last.has_edits() || !last.commits.is_empty();
        if last.closing.is_none() && !last.by_host && lexicon::words(&last.typed) >= 4 && !is_begun
        {
            let typed = last.typed.replace('\n', " ");
            open.push(format!(
                "Asked last and not answered: “{}”",
                title::clip(&typed, 30)
            ));
        } else if let Some(question) = last.prose.questions.last()
            && last.commits.is_empty()
        {
            open.push(format!(
                "The agent asked last: “{}”",
                title::clip(question, 30)
            ));
        }
        let steps = last.prose.next_steps.iter().take(3);
        open.extend(steps.map(|it| format!("Named as next: {}", title::clip(it, 20))));
        for (command, telling) in self.red.iter().filter_map(|it| it.first()) {
            open.push(failed(command, telling));
        }
        open.dedup();
        open
    }

    fn finish(&self, drafts: Vec<Draft>, digest: SessionDigest) -> DerivedSession {
        let mut turns: Vec<Derived> = self.readings.iter().map(|_| Derived::default()).collect();
        for (turn, reading) in turns.iter_mut().zip(&self.readings) {
            let prompt = reading.turn.prompt_id.as_deref().unwrap_or_default();
            let laid_down = reading.laid_down.iter().enumerate();
            let laid_down = laid_down
                .map(|(number, it)| draft::decision(it, format!("user:{prompt}:{number}")));
            turn.observations.extend(laid_down);
        }
        for draft in drafts {
            let reading = &self.readings[draft.turn];
            let turn = &mut turns[draft.turn];
            turn.observations
                .push(draft::observation(draft, reading, &self.nouns));
        }
        for (turn, reading) in turns.iter_mut().zip(&self.readings) {
            turn.summary = draft::summary(reading, &turn.observations);
        }
        DerivedSession { turns, digest }
    }
}

/// A check that was left red, with the line that it printed.
fn failed(command: &str, telling: &str) -> String {
    let command = title::clip(command, 8);
    format!(
        "`{command}` failed in its last run: {}",
        text::quoted(telling)
    )
}

/// A turn in which nothing happened that anybody would look for later.
fn is_nothing(
    reading: &TurnReading<'_>,
    kind: ObservationType,
    title: &Title,
    facts: &[Fact],
    said: usize,
) -> bool {
    let words: usize = facts.iter().map(|it| lexicon::words(&it.text)).sum();
    let anchors = lexicon::anchors(&draft::joined(facts)).len();
    let is_discovery = kind == ObservationType::Discovery;
    let silent_user = reading.by_user.is_empty();
    let telling = |it: &&Fact| !lexicon::anchors(&it.text).is_empty();
    let interrupted = reading.closing.is_none() && !reading.has_edits() && silent_user;
    let is_command = reading.prompt.starts_with('/') && !reading.prompt.trim().contains(' ');
    let talk = reading.steps.is_empty() && facts.iter().filter(telling).count() < 2;
    let thin_answer = words < 10 || said < 2 && words < 18 && anchors < 2;
    let thin_change = title.alone < TITLE_ALONE
        && (words < 9 && anchors < 2 || silent_user && facts.len() == 1 && anchors < 2);
    let uncommitted = reading.commits.is_empty();
    let only_options = !reading.prose.options.is_empty()
        && !facts
            .iter()
            .any(|it| lexicon::words(&it.text) >= 10 && lexicon::anchors(&it.text).len() >= 2);
    // A check that failed and passes now, or a commit of what was edited, is proof enough.
    if !facts.is_empty() && (reading.repaired().is_some() || reading.is_named_by_commit()) {
        return false;
    }
    facts.is_empty()
        || interrupted
        || is_discovery && is_command && reading.steps.len() < 4
        || is_discovery
            && silent_user
            && (reading.is_plumbing() || talk || thin_answer || only_options)
        || is_discovery && said == 0 && reading.chosen.is_none()
        || !is_discovery && uncommitted && thin_change
        || title.alone < 0.9 && facts.len() < 2
}

/// The findings before a change that say why it was made: the user's words and, if the change is a
/// bugfix, the cause of the fault. Each has at least `names` names in common with the change. Other
/// findings may not be true after the change.
fn causes(findings: Vec<Fact>, change: &Draft, names: usize) -> Vec<Fact> {
    let facts = change.facts.iter().map(|it| &it.text);
    let texts = facts.chain([&change.title.text]);
    let named: HashSet<String> = texts.flat_map(|it| lexicon::anchors(it)).collect();
    let is_cause = |it: &Fact| {
        let own = lexicon::anchors(&it.text);
        let shared = own.intersection(&named);
        let shared = shared.filter(|it| it.contains(|it: char| it.is_alphabetic()));
        shared.count() >= names && (it.is_by_user() || lexicon::contrasts(&it.text))
    };
    let findings = findings.into_iter().filter(is_cause);
    let findings = findings.filter(|it| change.kind == ObservationType::Bugfix || it.is_by_user());
    let labelled = findings.map(|it| match it.is_by_user() {
        true => it,
        false => Fact::new(format!("Found before the change: {}", it.text), it.origin),
    });
    labelled.take(CAUSES_MAX).collect()
}

/// Adds a fact unless more than this share of it is said already; true if it was added.
fn add_fact(facts: &mut Vec<Fact>, fact: Fact, share: f32) -> bool {
    let stems = lexicon::stems(&fact.text);
    let known = facts
        .iter()
        .map(|it| lexicon::stems(&it.text))
        .any(|it| lexicon::overlap(&stems, &it) > share);
    let new = !known && !facts.contains(&fact);
    if new {
        facts.push(fact);
    }
    new
}

fn add_files(files: &mut Vec<TouchedFile>, more: Vec<TouchedFile>) {
    for file in more {
        if !files.iter().any(|it| it.path == file.path) {
            files.push(file);
        }
    }
}

/// The stems of a draft's title and facts.
fn said(draft: &Draft) -> Stems {
    let mut stems = lexicon::stems(&draft.title.text);
    stems.extend(draft.facts.iter().flat_map(|it| lexicon::stems(&it.text)));
    stems
}

fn shares_file(a: &Draft, b: &Draft) -> bool {
    a.files
        .iter()
        .any(|file| b.files.iter().any(|it| it.path == file.path))
}
