//! Reads one turn: what was asked, what the tools did, what the agent concluded, what the user
//! laid down. `session` makes observations of it, when it knows the other turns.

use std::collections::HashSet;

use foreword_core::model::{Event, EventKind, Millis, Origin, TouchedFile, Turn};
use uuid::Uuid;

use super::cues::{self, Cue};
use super::draft::Fact;
use super::lexicon::{self, Stems};
use super::markdown;
use super::prose::{self, Prose};
use super::title;
use crate::agent::origin::{self, Copied};
use crate::evidence::{self, Answer, Commit, Edit, Run, Step};

/// The most facts of an observation, and the most words of all of them.
pub const FACTS_MAX: usize = 7;
const FACT_WORDS_MAX: usize = 170;
/// The most words of one fact.
const CLIP_WORDS: usize = 48;
/// A fact is left out if an earlier one has more than this share of its stems.
const REPEATED: f32 = 0.6;
/// The most items of answers that one turn gives.
const ANSWERS_MAX: usize = 4;
/// A prompt with more typed words is a description, of which no single sentence is quoted.
const TYPED_WORDS_MAX: usize = 140;
/// Contrasting sentences of a prompt with more words than this are not kept: such a prompt describes
/// a fault, and the change that follows makes the description untrue.
const REMARK_WORDS_MAX: usize = 50;
/// One turn of a session, read.
pub struct TurnReading<'a> {
    pub turn: &'a Turn,
    pub prompt: &'a str,
    /// The user's own words of the prompt: without pasted blocks, logs and tags.
    pub typed: String,
    /// The turn was begun by the host, not by the user.
    pub by_host: bool,
    /// The heading of the plan that the prompt has the agent carry out.
    pub plan: Option<String>,
    /// The agent's last words; none if the turn did not end.
    pub closing: Option<String>,
    pub steps: Vec<Step>,
    pub commits: Vec<Commit>,
    pub prose: Prose,
    /// Stems of the request, of edited paths and texts, and of names in them.
    pub asked: Stems,
    pub edited: Stems,
    names: Stems,
    /// What the agent concluded, best sentences in order; `rest` is what was too much for facts.
    pub facts: Vec<Fact>,
    pub rest: Vec<String>,
    /// The sentences of the closing words and of commits that are copied out of what tools printed.
    pub copied: Copied,
    /// What the user said that belongs to the observation of this turn.
    pub by_user: Vec<String>,
    /// What the user laid down: an item of its own.
    pub laid_down: Vec<LaidDown>,
    /// The option of the agent's that the user chose.
    pub chosen: Option<String>,
    /// The prompt begins with a correction of what came before.
    pub correction: Option<String>,
    /// A check failed before the first edit.
    pub red_first: bool,
}

/// A rule or choice of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaidDown {
    pub title: String,
    pub facts: Vec<String>,
    pub event: Uuid,
    pub at: Millis,
}

impl<'a> TurnReading<'a> {
    /// Reads a turn. `offered` are the options that the agent offered last.
    pub fn of(turn: &'a Turn, is_first: bool, offered: &[String]) -> TurnReading<'a> {
        let event = |kinds: &[EventKind]| {
            let mut events = turn.events.iter().rev();
            events.find(|it| kinds.contains(&it.kind))
        };
        let prompt_event = turn
            .events
            .iter()
            .find(|it| matches!(it.kind, EventKind::Prompt | EventKind::Notification));
        let prompt = prompt_event.and_then(|it| it.payload.prompt.as_deref());
        let prompt = prompt.unwrap_or_default();
        let by_host = prompt.trim_start().starts_with('<')
            || prompt_event.is_some_and(|it| it.kind == EventKind::Notification);
        let stop = event(&[EventKind::Stop]).and_then(|it| it.payload.reply.clone());
        let between = event(&[EventKind::Words]).and_then(|it| it.payload.reply.clone());
        let closing = match (stop, between) {
            (Some(stop), Some(between)) => Some(format!("{between}\n\n{stop}")),
            (stop, between) => stop.or(between),
        };
        let mut steps: Vec<Step> = turn.events.iter().filter_map(evidence::step).collect();
        leave_out_undone(&mut steps);
        let plan = title::plan_heading(prompt).filter(|_| !by_host);
        let typed = title::typed(prompt);
        // Edits of documents alone may be a plan, so the closing words can still be an offer.
        let mut edits = steps.iter().flat_map(|it| &it.edits);
        let changes_code = edits.any(|it| !is_prose_file(&it.path));
        let prose = prose::read(closing.as_deref().unwrap_or_default(), !changes_code);
        let asked = lexicon::stems(plan.as_deref().unwrap_or(&typed));
        let mut reading = TurnReading {
            turn,
            prompt,
            by_host,
            closing,
            commits: lasting_commits(&steps),
            red_first: red_first(&steps),
            edited: Stems::default(),
            names: Stems::default(),
            facts: Vec::new(),
            rest: Vec::new(),
            copied: Copied::new(),
            by_user: Vec::new(),
            laid_down: Vec::new(),
            chosen: None,
            correction: None,
            steps,
            prose,
            asked,
            plan,
            typed,
        };
        reading.read_edits();
        reading.read_facts();
        reading.read_user(prompt_event, is_first, offered);
        reading
    }

    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.steps.iter().flat_map(|it| &it.edits)
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.steps.iter().flat_map(|it| &it.runs)
    }

    pub fn has_edits(&self) -> bool {
        self.edits().next().is_some()
    }

    /// The number of bytes that edits touched.
    pub fn edit_size(&self) -> usize {
        self.edits()
            .map(|it| it.before.len() + it.after.len())
            .sum()
    }

    fn read_edits(&mut self) {
        let edits = self.steps.iter().flat_map(|it| &it.edits);
        for edit in edits {
            self.edited
                .extend(lexicon::stems(&edit.path.replace('/', " ")));
            let name = edit.path.rsplit('/').next().unwrap_or_default();
            self.names.extend(lexicon::stems(name));
            for text in [&edit.before, &edit.after] {
                let text = foreword_core::text::shorten(text, 3_000);
                self.edited.extend(lexicon::stems(&text));
                let compound =
                    text.split(|it: char| !(it.is_alphanumeric() || it == '_' || it == '-'));
                for word in compound.filter(|it| is_compound(it)) {
                    self.names.extend(lexicon::stems(word));
                }
            }
        }
    }

    /// The first sentences of the closing words that can be facts.
    fn read_facts(&mut self) {
        let context: Stems = self.asked.union(&self.edited).cloned().collect();
        let (mut chosen, mut total) = (Vec::<Stems>::new(), 0);
        let has_edits = self.has_edits();
        for unit in self
            .prose
            .units
            .iter()
            .filter(|it| prose::is_fact(it, &context))
        {
            let stems = lexicon::stems(&unit.text);
            // After an edit, "should" and "probably" are guesses about its effect: left out.
            let is_guess =
                lexicon::supposes(&unit.text) && !lexicon::is_in_first_person(&unit.text);
            if has_edits && is_guess || lexicon::is_status(&unit.text) {
                continue;
            }
            if chosen
                .iter()
                .any(|it| lexicon::overlap(&stems, it) > REPEATED)
            {
                continue;
            }
            let text = title::capitalised(&title::clip(&unit.text, CLIP_WORDS));
            let words = lexicon::words(&unit.text);
            if self.facts.len() < FACTS_MAX && (total == 0 || total + words <= FACT_WORDS_MAX) {
                total += words;
                self.facts.push(Fact::new(text, Origin::Agent));
            } else {
                self.rest.push(text);
            }
            chosen.push(stems);
        }
    }

    /// What the user chose, refused, laid down or corrected.
    fn read_user(&mut self, prompt: Option<&Event>, is_first: bool, offered: &[String]) {
        let answers = self.steps.iter();
        let answers = answers.flat_map(|step| step.answers.iter().map(move |it| (step, it)));
        let (passing, lasting): (Vec<_>, Vec<_>) = answers.partition(|(_, it)| is_passing(it));
        self.laid_down.extend(answered(&lasting));
        self.by_user
            .extend(passing.iter().map(|(_, it)| answer_fact(it)));
        for event in self
            .turn
            .events
            .iter()
            .filter(|it| it.kind == EventKind::Refusal)
        {
            let tool = event.tool_name.as_deref().unwrap_or("tool");
            if let Some(reason) = &event.payload.reason {
                let reason = title::clip(&markdown::strip(reason), 35);
                self.by_user
                    .push(format!("The user refused {tool} and said: “{reason}”"));
            }
        }
        let Some(prompt) = prompt.filter(|_| !self.by_host && self.plan.is_none()) else {
            return;
        };
        if lexicon::words(&self.typed) > TYPED_WORDS_MAX {
            return;
        }
        if let Some(option) = chosen_option(&self.typed, offered) {
            let option = option.clone();
            self.by_user
                .push(format!("The user chose: “{}”", title::clip(&option, 30)));
            self.chosen = Some(option);
        }
        for (number, sentence) in markdown::clauses(&self.typed).into_iter().enumerate() {
            let sentence = markdown::strip(&sentence);
            match cues::cue(&sentence) {
                Some(Cue::Rule | Cue::Choice) if self.laid_down.len() < 3 => {
                    let title = title::squeeze(lexicon::without_openers(&sentence), 14, true).0;
                    if lexicon::words(&title) >= 2 {
                        self.laid_down.push(LaidDown {
                            title: title::capitalised(&title),
                            facts: vec![said_by_user(&sentence)],
                            event: prompt.id,
                            at: prompt.at,
                        });
                    }
                    continue;
                }
                Some(Cue::Correction) if number < 2 && !is_first => {
                    self.correction.get_or_insert_with(|| sentence.clone());
                }
                _ => {}
            }
            let least = if lexicon::has_cjk(&sentence) { 4 } else { 6 };
            if !is_first
                && self.by_user.len() < 2
                && !markdown::is_question(&sentence)
                && lexicon::words(&sentence) >= least
                && (self.correction.as_ref() == Some(&sentence)
                    || lexicon::words(&self.typed) <= REMARK_WORDS_MAX
                        && lexicon::contrasts(&sentence)
                        && !(self.has_edits() && lexicon::names_code(&sentence))
                        && !lexicon::speaks_of_fault(&sentence))
            {
                self.by_user.push(said_by_user(&sentence));
            }
        }
    }

    /// Sentences of the prompt that correct the turn before, or limit it ("but not …") where this
    /// turn then edited something.
    pub fn objections(&self) -> Vec<String> {
        let sentences = markdown::clauses(&self.typed).into_iter();
        let sentences = sentences.map(|it| markdown::strip(&it));
        let objects = |it: &String| {
            self.correction.as_ref() == Some(it)
                || self.has_edits() && lexicon::contrasts(it) && !markdown::is_question(it)
        };
        sentences.filter(objects).take(4).collect()
    }

    /// Leaves out what the user objected to: sentences that share a number or name with the
    /// objection, or most of its words.
    pub fn contradict(&mut self, objection: &str) {
        let wrong = lexicon::anchors(objection);
        let stems = lexicon::stems(objection);
        self.leave_out(|text| {
            let shared = lexicon::stems(text).intersection(&stems).count();
            shared >= 2 && shared * 2 >= stems.len() || !lexicon::anchors(text).is_disjoint(&wrong)
        });
    }

    /// Leaves out sentences of the closing words, as facts and as titles.
    pub fn leave_out(&mut self, is_wrong: impl Fn(&str) -> bool) {
        self.facts.retain(|it| !is_wrong(&it.text));
        self.rest.retain(|it| !is_wrong(it));
        self.prose.leads.retain(|it| !is_wrong(it));
        self.prose.headings.retain(|it| !is_wrong(it));
        self.prose.units.retain(|it| !is_wrong(&it.text));
    }

    /// The statements of the agent that may be copied out of what tools printed.
    pub fn statements(&self) -> impl Iterator<Item = String> {
        let prose = &self.prose;
        let of_prose = [&prose.leads, &prose.headings, &prose.questions];
        let of_prose = of_prose.into_iter().chain([&prose.next_steps, &self.rest]);
        let mut statements: Vec<String> = of_prose.flatten().cloned().collect();
        let sentences = statements.iter().flat_map(|it| origin::sentences(it));
        let sentences: Vec<String> = sentences.map(str::to_owned).collect();
        statements.extend(sentences);
        statements.extend(prose.units.iter().map(|it| it.text.clone()));
        let facts = self.facts.iter().flat_map(|it| origin::sentences(&it.text));
        statements.extend(facts.map(str::to_owned));
        for commit in &self.commits {
            statements.push(commit.subject.clone());
            let body = prose::read(&commit.body, false);
            for unit in &body.units {
                let sentences = origin::sentences(&unit.text).into_iter();
                statements.extend(sentences.chain([unit.text.as_str()]).map(str::to_owned));
            }
        }
        statements.into_iter()
    }

    /// Takes note of the statements that are copied. They make no next step, no question and no
    /// narrative; as facts they are told as what they are.
    pub fn mark_copied(&mut self, copied: &Copied) {
        let own = self.statements().filter_map(|it| {
            let copy = copied.get(&it)?.clone();
            Some((it, copy))
        });
        self.copied = own.collect();
        let copied = &self.copied;
        let facts = std::mem::take(&mut self.facts).into_iter();
        self.facts = facts
            .flat_map(|it| Fact::parted(&it.text, copied))
            .collect();
        let prose = &mut self.prose;
        for statements in [&mut self.rest, &mut prose.next_steps, &mut prose.questions] {
            statements.retain(|it| {
                let mut sentences = origin::sentences(it).into_iter().chain([it.as_str()]);
                !sentences.any(|it| copied.contains_key(it))
            });
        }
    }

    /// The turn as one reading for each of its commits, at most this many. The agent's sentences go
    /// to the commit that they are about.
    pub fn pieces(&self, max: usize) -> Vec<TurnReading<'a>> {
        let mut pieces: Vec<TurnReading<'a>> = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        for step in &self.steps {
            steps.push(step.clone());
            for commit in &step.commits {
                let amended = pieces.last_mut().filter(|_| commit.amend);
                if let Some(piece) = amended {
                    piece.steps.append(&mut steps);
                    piece.commits = lasting_commits(&piece.steps);
                } else {
                    pieces.push(self.piece(std::mem::take(&mut steps), commit.clone()));
                }
            }
        }
        if let Some(last) = pieces.last_mut() {
            last.steps.append(&mut steps);
        }
        while pieces.len() > max {
            let sizes = pieces.iter().map(TurnReading::edit_size).enumerate();
            let smallest = sizes.min_by_key(|(_, size)| *size).map_or(0, |(at, _)| at);
            pieces.remove(smallest);
        }
        for piece in &mut pieces {
            piece.red_first = red_first(&piece.steps);
            piece.read_edits();
        }
        let about: Vec<Stems> = pieces.iter().map(TurnReading::subject_stems).collect();
        for fact in &self.facts {
            let stems = lexicon::stems(&fact.text);
            let shares = about.iter().map(|it| lexicon::overlap(&stems, it));
            let best = shares.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
            if let Some(piece) = best.and_then(|(at, _)| pieces.get_mut(at)) {
                piece.facts.push(fact.clone());
            }
        }
        if let Some(first) = pieces.first_mut() {
            first.by_user.clone_from(&self.by_user);
        }
        pieces
    }

    fn piece(&self, steps: Vec<Step>, commit: Commit) -> TurnReading<'a> {
        TurnReading {
            turn: self.turn,
            prompt: "",
            typed: self.typed.clone(),
            by_host: self.by_host,
            plan: None,
            closing: self.closing.clone(),
            commits: vec![commit],
            prose: Prose::default(),
            asked: self.asked.clone(),
            edited: Stems::default(),
            names: Stems::default(),
            facts: Vec::new(),
            rest: Vec::new(),
            copied: self.copied.clone(),
            by_user: Vec::new(),
            laid_down: Vec::new(),
            chosen: None,
            correction: None,
            red_first: false,
            steps,
        }
    }

    /// Stems of what a commit says and of the files that it is about.
    fn subject_stems(&self) -> Stems {
        let mut stems = self.names.clone();
        for commit in &self.commits {
            stems.extend(lexicon::stems(&commit.subject));
            stems.extend(lexicon::stems(&commit.body));
            stems.extend(lexicon::stems(&commit.files.join(" ")));
        }
        stems
    }

    /// Whether the commit's subject names something that was edited; "address review" does not. If
    /// only the file is known of an edit, the subject is believed.
    pub fn is_named_by_commit(&self) -> bool {
        telling_commit(&self.commits).is_some_and(|commit| {
            let (_, subject) = title::conventional(&commit.subject);
            let stems = lexicon::stems(without_number(&subject));
            let shared = stems.intersection(&self.edited).count();
            let names_it = self.names.is_empty() || !stems.is_disjoint(&self.names);
            let is_known = |it: &Edit| !it.before.is_empty() || !it.after.is_empty();
            shared >= 2 || shared == 1 && names_it || !self.edits().all(is_known)
        })
    }

    /// Checks whose last run of this turn failed: command and telling line.
    pub fn red_checks(&self) -> Vec<(&str, &str)> {
        let mut red: Vec<&Run> = Vec::new();
        for run in self.runs() {
            red.retain(|it| !runs_again(&it.command, &run.command));
            if run.check && !run.passed {
                red.push(run);
            }
        }
        let red = red.into_iter();
        red.map(|it| (it.command.as_str(), it.telling.as_str()))
            .collect()
    }

    /// A check that failed, with a line that tells why, and passed in its last run: the repair is
    /// proven.
    pub fn repaired(&self) -> Option<String> {
        let mut runs = self.runs().filter(|it| it.check && self.red_first);
        let red = runs.find(|it| !it.passed && !it.telling.is_empty())?;
        let last = runs.filter(|it| runs_again(&red.command, &it.command));
        let proven = self.has_edits() && last.last().is_some_and(|it| it.passed);
        let (command, telling) = (title::clip(&red.command, 8), title::clip(&red.telling, 20));
        let telling = foreword_core::text::quoted(&telling);
        proven.then(|| format!("`{command}` failed ({telling}) and passes now"))
    }

    /// Files that the turn changed, as they were last seen.
    pub fn changed_files(&self) -> Vec<TouchedFile> {
        let edited: HashSet<&str> = self.edits().map(|it| it.path.as_str()).collect();
        let files = self.steps.iter().flat_map(|it| &it.files);
        let files = files.filter(|it| edited.contains(it.path.as_str()));
        last_of_each(files)
    }

    /// Files that the turn read and that a text names.
    pub fn read_files(&self, text: &str) -> Vec<TouchedFile> {
        let files = self.steps.iter().flat_map(|it| &it.files);
        let files = files.filter(|it| {
            let name = it.path.rsplit('/').next().unwrap_or_default();
            !name.is_empty() && text.contains(name)
        });
        last_of_each(files)
    }

    /// Whether nothing but housekeeping of git was done.
    pub fn is_plumbing(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|it| it.plumbing)
    }
}

fn last_of_each<'a>(files: impl Iterator<Item = &'a TouchedFile>) -> Vec<TouchedFile> {
    let mut last: Vec<TouchedFile> = Vec::new();
    for file in files {
        last.retain(|it| it.path != file.path);
        last.push(file.clone());
    }
    last
}

/// Whether a later command runs a check again, alone or among others: both end in the same word, or
/// the later one is the same without the part of it that was named (`pytest` after `pytest a.py`).
pub fn runs_again(check: &str, later: &str) -> bool {
    let words = |command: &str| -> Vec<String> {
        let words = command.split(|it: char| !(it.is_alphanumeric() || "_:./-".contains(it)));
        let words = words.filter(|it| !it.is_empty());
        words.map(str::to_owned).collect()
    };
    let (check_words, later_words) = (words(check), words(later));
    let is_part = |word: &String| word.starts_with('-') || word.contains(['.', '/', ':', '_']);
    let rest = check_words.strip_prefix(later_words.as_slice());
    let is_wider = rest.is_some_and(|it| !later_words.is_empty() && it.iter().all(is_part));
    check == later || check_words.last() == later_words.last() || is_wider
}

/// What a prompt lays down first.
#[cfg(test)]
pub fn laid_down_by(prompt: &str) -> Option<Cue> {
    let clauses = markdown::clauses(&title::typed(prompt));
    clauses
        .iter()
        .find_map(|it| cues::cue(&markdown::strip(it)))
}

pub fn said_by_user(sentence: &str) -> String {
    format!("The user: “{}”", title::clip(sentence, 40))
}

/// Leaves out edits that git took back before they were committed.
fn leave_out_undone(steps: &mut [Step]) {
    for at in 0..steps.len() {
        let (before, after) = steps.split_at_mut(at);
        let restored = &after[0].restored;
        let uncommitted = before.iter_mut().rev();
        for step in uncommitted.take_while(|it| it.commits.is_empty()) {
            step.edits.retain(|it| !restored.contains(&it.path));
        }
    }
}

/// The commits of a turn, without those that a later one amends.
fn lasting_commits(steps: &[Step]) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    for commit in steps.iter().flat_map(|it| &it.commits) {
        if commit.amend
            && let Some(amended) = commits.pop()
        {
            let mut commit = commit.clone();
            if commit.subject.is_empty() {
                (commit.subject, commit.body) = (amended.subject, amended.body);
            }
            commits.push(commit);
        } else {
            commits.push(commit.clone());
        }
    }
    commits
}

/// The commit that names a turn: the last one that is no chore.
pub fn telling_commit(commits: &[Commit]) -> Option<&Commit> {
    let is_work = |it: &&Commit| {
        let (prefix, _) = title::conventional(&it.subject);
        matches!(prefix, None | Some("fix" | "feat" | "refactor" | "perf"))
    };
    let last = commits.iter().rev().find(is_work).or(commits.last());
    last.filter(|it| {
        let subject = it.subject.as_str();
        !["Merge ", "Revert \"", "WIP", "wip"]
            .iter()
            .any(|start| subject.starts_with(start))
    })
}

fn red_first(steps: &[Step]) -> bool {
    let Some(first) = steps.iter().position(|it| !it.edits.is_empty()) else {
        return false;
    };
    let mut runs = steps[..first].iter().flat_map(|it| &it.runs);
    runs.any(|it| it.check && !it.passed)
}

/// Whether an answer only chooses the next step and lays down nothing lasting: the question addresses
/// the user ("What would you like to do?"), and neither question nor answer has a name or number.
fn is_passing(answer: &Answer) -> bool {
    let sentences = markdown::sentences(&answer.question);
    let question = sentences.last().map_or("", String::as_str);
    let named = [question, &answer.answer];
    lexicon::mentions_the_user(question) && named.iter().all(|it| lexicon::anchors(it).is_empty())
}

/// The user's answers of a turn: few items, with a fact for each answer.
fn answered(answers: &[(&Step, &Answer)]) -> Vec<LaidDown> {
    let items = answers.chunks(FACTS_MAX).map(|chunk| {
        let (step, first) = chunk[0];
        let question = first.question.trim_end_matches(['?', '？', ' ']);
        let chosen = first.answer.split(" (").next().unwrap_or_default();
        let chosen = title::clip(chosen, 5);
        let left = title::MAX_WORDS - lexicon::words(&chosen);
        LaidDown {
            title: format!("{} → {chosen}", title::clip(question, left)),
            facts: chunk
                .iter()
                .map(|(_, answer)| answer_fact(answer))
                .collect(),
            event: step.event,
            at: step.at,
        }
    });
    items.take(ANSWERS_MAX).collect()
}

fn answer_fact(answer: &Answer) -> String {
    let refused = answer.refused.iter().take(3).map(|it| title::clip(it, 8));
    let not = match refused.collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => none,
        refused => format!(" (not: {refused})"),
    };
    let (question, answer) = (
        title::clip(&answer.question, 20),
        title::clip(&answer.answer, 25),
    );
    format!("The user: “{answer}” to “{question}”{not}")
}

/// The offered option that a short prompt names by number or letter: "let's do 2", "B".
fn chosen_option<'a>(typed: &str, offered: &'a [String]) -> Option<&'a String> {
    if lexicon::words(typed) > 8 {
        return None;
    }
    let mut words = typed.split(|it: char| !(it.is_alphanumeric() || it == '.' || it == '_'));
    let place = words.find_map(|word| match word.as_bytes() {
        [digit @ b'1'..=b'9'] => Some(usize::from(digit - b'1')),
        [letter @ b'A'..=b'D'] => Some(usize::from(letter - b'A')),
        _ => None,
    })?;
    offered.get(place)
}

/// A commit's subject without the number of its pull request.
pub fn without_number(subject: &str) -> &str {
    let Some((start, end)) = subject.rsplit_once(" (") else {
        return subject;
    };
    let number = end.trim_end_matches(')').trim_start_matches('#');
    if !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()) {
        start
    } else {
        subject
    }
}

/// `camelCase`, `snake_case` or `kebab-case`: a name in code.
pub fn is_compound(word: &str) -> bool {
    let mut last = ' ';
    word.chars().any(|it| {
        let joint = last.is_lowercase() && it.is_uppercase() || matches!(it, '_' | '-');
        last = it;
        joint
    })
}

pub fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    name.contains("test") || name.contains("spec")
}

/// Plans, documents and lock files define nothing.
pub fn is_prose_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    matches!(
        extension,
        "md" | "mdx" | "txt" | "rst" | "adoc" | "tex" | "lock" | "sum"
    )
}
