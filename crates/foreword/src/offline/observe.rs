//! Words what a turn came to as observations.
//!
//! A title names the thing changed, not the tool; facts carry files, commands and
//! the line that said what was wrong. Nothing is claimed that no event shows, and
//! what somebody said stands in quotes.

use foreword_core::model::{Observation, ObservationType, Origin};
use foreword_core::text::{capitalised, one_line, shorten};

use super::findings::Trouble;
use super::request::{self, Asked};
use super::runs::failed_sentence;
use super::teller::Teller;
use super::undone::Commit;
use super::{changes, code, concepts, output, quote, quotes, said};

const FACTS_MAX: usize = 8;

pub fn observations(teller: &Teller<'_>) -> Vec<Observation> {
    let (mut repairs, failures): (Vec<&Trouble>, Vec<&Trouble>) = teller
        .troubles()
        .into_iter()
        .partition(|it| it.passed.is_some());
    let mut observations = quotes::decisions(teller);
    let mut edits = teller.lasting();
    for commit in teller.commits() {
        let within = |trouble: &mut &Trouble| {
            trouble.last() < commit.step && trouble.edits.iter().all(|it| commit.edits.contains(it))
        };
        let within: Vec<&Trouble> = repairs.extract_if(.., within).collect();
        edits.retain(|at| !commit.edits.contains(at));
        observations.push(teller.commit(commit, within));
    }
    let (on_the_way, repairs) = teller.parted(repairs);
    for repair in repairs {
        edits.retain(|at| !repair.edits.contains(at));
        observations.extend(teller.repair(repair));
    }
    if !edits.is_empty() {
        observations.push(teller.changed(&edits, &on_the_way));
    }
    for failure in failures {
        observations.extend(teller.failure(failure));
    }
    let rejected = teller.rejected();
    observations.extend(rejected.iter().map(|it| teller.rejection(it)));
    observations.extend(quotes::findings(teller));
    for it in &mut observations {
        let said = format!("{} {}", it.title, it.facts.join(" "));
        it.concepts = concepts::concepts(&it.files, &said);
        it.title = one_line(&it.title);
        it.subtitle = one_line(&it.subtitle);
        it.facts.truncate(FACTS_MAX);
    }
    if let Some(first) = observations.iter_mut().find(|it| it.origin != Origin::User) {
        first.facts.extend(teller.versions());
    }
    // The closing words are in the summary; here they would be paid for once per observation.
    if let [only] = observations.as_mut_slice()
        && only.origin == Origin::Agent
        && let Some(closing) = teller.closing_words()
    {
        only.narrative = format!("{} {closing}", only.narrative);
    }
    observations.sort_by_key(|observation| observation.at);
    observations
}

impl Teller<'_> {
    /// What passed on the way of other work, and what is a repair.
    fn parted<'t>(&self, repairs: Vec<&'t Trouble>) -> (Vec<&'t Trouble>, Vec<&'t Trouble>) {
        let repairs = repairs.into_iter();
        repairs.partition(|it| self.is_on_the_way(it))
    }

    fn commit(&self, commit: &Commit, within: Vec<&Trouble>) -> Observation {
        let (passed, fixed) = self.parted(within);
        let here = commit.edits.iter().copied();
        let here: Vec<usize> = here.filter(|&at| self.is_here(at)).collect();
        let (all, own) = (self.edits(&commit.edits), self.edits(&here));
        let mut facts: Vec<String> = fixed.iter().flat_map(|it| self.run_facts(it)).collect();
        facts.extend(passed.iter().filter_map(|it| self.passed_fact(it)));
        facts.extend(changes::facts(&own));
        if all.is_empty() {
            facts.extend(self.commands_that_change_files(commit.step));
        }
        let id = match &commit.id {
            Some(id) => format!("Committed as {id}"),
            None => "Committed".to_owned(),
        };
        let names = changes::names(&all);
        let mut narrative = self.asked(300);
        let failed = fixed.first().and_then(|it| self.command(it.runs[0]));
        narrative.extend(failed.map(failed_sentence));
        narrative.push(changes::sentence(&own));
        if own.len() < all.len() {
            narrative.push("The commit takes in edits of an earlier prompt.".to_owned());
        }
        narrative.push(format!("{id}, “{}”.", commit.subject));
        narrative.retain(|it| !it.is_empty());
        let runs = fixed.iter().flat_map(|it| [it.runs[0], it.last()]);
        let involved = here.iter().copied().chain(runs).chain([commit.step]);
        let seed = format!("commit:{}", self.steps()[commit.step].event);
        let kind = request::kind_of(&commit.subject).unwrap_or(ObservationType::Feature);
        self.resting_on(
            involved.collect(),
            Observation {
                title: match request::without_prefix(&commit.subject) {
                    "" => format!("Committed {names}"),
                    // `wip` says nothing; its files do.
                    word if word.len() <= 12 && !word.contains(' ') && !all.is_empty() => {
                        format!("{} ({names})", capitalised(word))
                    }
                    subject => capitalised(subject),
                },
                subtitle: match all.is_empty() {
                    true => format!("{id}: which files is not known"),
                    false => format!("{id}: {names}"),
                },
                facts,
                narrative: narrative.join(" "),
                files: self.files(&all, here.first().copied()),
                ..Observation::blank(seed, kind, Origin::Agent)
            },
        )
    }

    fn repair(&self, repair: &Trouble) -> Option<Observation> {
        let failed = self.command(repair.runs[0])?;
        let edits = self.edits(&repair.edits);
        let name = failed.name();
        let (place, after, changed) = if edits.is_empty() {
            let by = self.changed_by(&repair.commands);
            (
                format!(", changed by {by}"),
                by.clone(),
                format!("Ran {by}."),
            )
        } else {
            let names = changes::names(&edits);
            let after = format!("changes to {names}");
            (format!(" in {names}"), after, changes::sentence(&edits))
        };
        let line = failed.key_line().map(|line| quote(&line, 70));
        let title = match (output::failing_test(&failed.output), line) {
            (Some(test), Some(line)) => format!("Fixed {test}{place}: {line}"),
            (None, Some(line)) => format!("Fixed {line}{place}"),
            (_, None) => format!("`{name}` passes again after {after}"),
        };
        let mut facts = self.run_facts(repair);
        facts.extend(changes::facts(&edits));
        let mut narrative = self.asked(300);
        narrative.push(failed_sentence(failed));
        narrative.push(format!("{changed} After that `{name}` passed."));
        narrative.extend(self.cause());
        let runs = [repair.runs[0], repair.last()];
        let seed = self.trouble_seed(repair);
        Some(self.resting_on(
            [&repair.edits[..], &repair.commands, &runs].concat(),
            Observation {
                title,
                subtitle: format!("`{name}` failed and passes now"),
                facts,
                narrative: narrative.join(" "),
                files: self.files(&edits, Some(repair.runs[0])),
                ..Observation::blank(seed, ObservationType::Bugfix, Origin::Agent)
            },
        ))
    }

    /// Edits that neither a repair nor a commit accounts for.
    fn changed(&self, at: &[usize], passed: &[&Trouble]) -> Observation {
        let edits = self.edits(at);
        let request = self.words().request().unwrap_or_default();
        // What was asked for is in the commit; this came beside or after it.
        let asked = Asked::of(request).filter(|_| self.commits().is_empty());
        let defined = changes::new_names(&edits);
        let created = edits.iter().any(|edit| edit.created);
        let asked_kind = asked.as_ref().and_then(|it| it.kind);
        let open = self.unrepaired(at);
        let unfixed = open.filter(|_| asked_kind == Some(ObservationType::Bugfix));
        let kind = match (unfixed, asked_kind) {
            (Some(_), _) => ObservationType::Discovery,
            (None, Some(kind)) => kind,
            (None, None) if created || !defined.is_empty() => ObservationType::Feature,
            (None, None) => ObservationType::Refactor,
        };
        let names = changes::names(&edits);
        let passed = passed.iter().filter_map(|it| self.passed_fact(it));
        let mut facts: Vec<String> = passed.collect();
        let change = changes::facts(&edits);
        let title = match (asked, defined.as_slice(), change.as_slice()) {
            (Some(asked), ..) => match unfixed {
                Some(how) => format!("{}, {how} ({names})", request::as_attempt(&asked.title)),
                None => format!("{} ({names})", asked.title),
            },
            (None, [], [one]) => one.clone(),
            (None, [], _) => format!("Changed {names}"),
            (None, defined, _) => format!("Added {} ({names})", changes::quoted(defined)),
        };
        facts.extend(change.into_iter().filter(|fact| *fact != title));
        let mut narrative = self.asked(300);
        narrative.push(changes::sentence(&edits));
        let sizes = changes::sizes(&edits);
        let seed = format!("edits:{}", self.prompt_seed());
        self.resting_on(
            at.to_vec(),
            Observation {
                title,
                // The user's word makes it a bugfix; only a run that passes would prove it.
                subtitle: if kind == ObservationType::Bugfix || unfixed.is_some() {
                    format!("{sizes}; meant as a fix, no failing run was seen to pass")
                } else if asked_kind.is_none() && open.is_some() {
                    format!("{sizes}; no failing run was seen to pass")
                } else {
                    sizes
                },
                facts,
                narrative: narrative.join(" "),
                files: self.files(&edits, at.first().copied()),
                ..Observation::blank(seed, kind, Origin::Agent)
            },
        )
    }

    /// What is known of a fix that these edits may have been, if no run proves it:
    /// a command fails, or the agent says that it did not succeed.
    fn unrepaired(&self, edits: &[usize]) -> Option<&'static str> {
        let told = self.troubles();
        // Also when the trouble went on and is told in a later turn.
        let is_of_them =
            |it: &&Trouble| told.contains(it) || edits.iter().any(|edit| it.edits.contains(edit));
        let open = self.story.findings.troubles.iter();
        let open = open.filter(|it| it.passed.is_none() && is_of_them(it));
        let open: Vec<&Trouble> = open.collect();
        let failed_after = |trouble: &&Trouble| edits.last().is_some_and(|&at| at < trouble.last());
        let reply = self.words().reply().unwrap_or_default();
        if open.iter().any(failed_after) || said::not_fixed(reply) {
            Some("not fixed")
        } else {
            open.first().map(|_| "not seen to pass")
        }
    }

    fn failure(&self, trouble: &Trouble) -> Option<Observation> {
        let last = *trouble.runs.last()?;
        let command = self.command(last)?;
        let name = command.name();
        let line = command.key_line()?;
        let mut facts = self.run_facts(trouble);
        facts.extend(self.ran_after(last));
        let mut narrative = self.asked(300);
        narrative.push(format!(
            "{} failed with “{line}” and was not seen to pass afterwards.",
            code(&command.text, 120)
        ));
        narrative.extend(self.cause());
        let runs = match trouble.runs.len() {
            1 => "One failing run".to_owned(),
            runs => format!("{runs} failing runs"),
        };
        let edits = self.edits(&trouble.edits);
        let seed = self.trouble_seed(trouble);
        Some(self.resting_on(
            trouble.runs.clone(),
            Observation {
                title: format!("`{name}` fails: {}", shorten(&line, 80)),
                subtitle: format!("{runs} of `{name}`, none that passed afterwards"),
                facts,
                narrative: narrative.join(" "),
                files: self.files(&edits, Some(trouble.runs[0])),
                ..Observation::blank(seed, ObservationType::Discovery, Origin::Agent)
            },
        ))
    }
}
