//! What the agent concluded: its closing words, read as markdown and taken apart into units.
//!
//! A unit is a sentence, list or table row that may become a fact. Parsing does most of the
//! work: headings, questions, proposals and lead-ins never become units of their own. `markdown`
//! parses; `title` makes titles out of sentences; the words that decide are in `lexicon`.

use std::collections::HashSet;

use super::lexicon::{
    addresses_the_user, anchors, announces_work, begins_subordinate, has_cjk, is_in_first_person,
    leans_back, names_code, speaks_of_fault, stems, words,
};
use super::markdown::{Block, blocks, is_lead_in, is_question, sentences};

/// The most bytes of a label that is repeated before each item of its list.
const LABEL_MAX: usize = 20;

/// What a unit was in the markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitSource {
    /// One or more sentences of a paragraph.
    Paragraph,
    /// A lead-in with the items of its list.
    Joined,
    Item,
    /// A row of a table.
    Row,
}

/// A piece of the closing words that may become a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub text: String,
    /// The text without the heading that it stands under.
    pub bare: String,
    pub source: UnitSource,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Prose {
    pub units: Vec<Unit>,
    /// Sentences and lead-ins in order, for titles. A lead-in ends in a colon.
    pub leads: Vec<String>,
    pub headings: Vec<String>,
    /// The first heading stands before everything else, so it is about the whole.
    pub opens_with_heading: bool,
    pub questions: Vec<String>,
    /// Items of lists that are still to be done.
    pub next_steps: Vec<String>,
    /// What the agent offered to do, if it closed with a question.
    pub options: Vec<String>,
}

/// Reads closing words. `may_offer`: the turn changed nothing, so that a list before a closing
/// question is an offer and not a report.
pub fn read(markdown: &str, may_offer: bool) -> Prose {
    let blocks = blocks(markdown);
    let last = blocks.iter().rposition(is_text);
    let question =
        last.filter(|&last| matches!(&blocks[last], Block::Paragraph(text) if is_question(text)));
    let mut reader = Reader {
        blocks: &blocks,
        may_offer,
        question,
        prose: Prose::default(),
    };
    reader.read();
    reader.prose.opens_with_heading = matches!(blocks.first(), Some(Block::Heading(_)));
    let Prose {
        options, headings, ..
    } = &mut reader.prose;
    if may_offer && question.is_some() && options.is_empty() {
        // "Option 1: …", "Option 2: …"
        let first_word = |it: &String| it.split(' ').next().map(str::to_owned);
        let mut runs = headings.chunk_by(|a, b| first_word(a) == first_word(b));
        options.extend(
            runs.find(|run| run.len() > 1)
                .into_iter()
                .flatten()
                .cloned(),
        );
    }
    reader.prose
}

fn is_text(block: &Block) -> bool {
    matches!(block, Block::Paragraph(_) | Block::Item { .. })
}

/// Whether a unit is worth keeping. `context`: the stems of the request and of what was edited;
/// if empty, the unit need not be about them.
pub fn is_fact(unit: &Unit, context: &HashSet<String>) -> bool {
    let text = unit.text.as_str();
    let length = words(text);
    if length < 4 || is_question(text) || is_lead_in(text) {
        return false;
    }
    let after_label = after_label(text).unwrap_or(text);
    if [text, after_label].into_iter().any(addresses_the_user) {
        return false;
    }
    if !anchors(text).is_empty() {
        return true;
    }
    let related =
        context.is_empty() || has_cjk(text) || stems(text).intersection(context).count() >= 2;
    length >= 7 && related && !is_in_first_person(text)
}

/// The text after a short label ("Yes, ", "Root cause: "), if it begins with one: at most two
/// words before a comma or dash, three before a colon, six in the first person ("I made two
/// changes: ").
pub fn after_label(text: &str) -> Option<&str> {
    let signs = [", ", "! ", ": ", " — ", " – ", " - ", "，", "、", "："];
    let found = signs
        .into_iter()
        .filter_map(|it| Some((text.find(it)?, it)));
    let (end, sign) = found.min()?;
    let (label, rest) = (&text[..end], text[end + sign.len()..].trim_start());
    let most = match sign.starts_with([':', '：']) {
        true if is_in_first_person(label) => 6,
        true => 3,
        false => 2,
    };
    let is_label = words(label) <= most && words(rest) >= 3 && !names_code(label);
    // "Before: …" describes the state before the change, so the label must stay.
    let is_label = is_label && !begins_subordinate(label);
    is_label.then_some(rest)
}

struct Reader<'a> {
    blocks: &'a [Block],
    may_offer: bool,
    /// The last paragraph, if it closes the message with a question.
    question: Option<usize>,
    prose: Prose,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut at = 0;
        while let Some(block) = self.blocks.get(at) {
            at = match block {
                Block::Heading(heading) => {
                    self.prose.headings.push(heading.clone());
                    at + 1
                }
                Block::Code => at + 1,
                Block::Row(_) => self.table(at),
                Block::Paragraph(text) => self.paragraph(at, text),
                Block::Item { .. } => self.list(at, None),
            };
        }
    }

    /// Reads a paragraph and, if it leads in to one, the list after it. Returns the next block.
    fn paragraph(&mut self, at: usize, text: &str) -> usize {
        let mut sentences = sentences(text);
        let mut lead = None;
        if let Some(last) = sentences.pop_if(|last| is_lead_in(last)) {
            let bare = last.trim_end_matches([':', '：', ' ']).to_owned();
            match self.blocks.get(at + 1) {
                Some(Block::Item { .. } | Block::Code) => lead = Some(bare),
                // What it leads in to was dropped; it stays if it is a statement by itself.
                _ if is_statement(&bare) => {
                    sentences.push(format!("{bare}."));
                }
                _ => {}
            }
        }
        let (questions, statements): (Vec<String>, Vec<String>) = sentences
            .into_iter()
            .partition(|sentence| is_question(sentence));
        let lead_in = lead.iter().map(|it| format!("{it}:"));
        let leads = statements.iter().cloned().chain(lead_in);
        self.prose.leads.extend(leads);
        let is_offer = self.question == Some(at) && questions.len() + statements.len() <= 2;
        self.prose.questions.extend(questions);
        if !is_offer {
            self.statements(at, statements);
        }
        match (lead, self.blocks.get(at + 1)) {
            (Some(lead), Some(Block::Item { .. })) => self.list(at + 1, Some(&lead)),
            _ => at + 1,
        }
    }

    /// Adds the sentences of a paragraph: the first after its heading, if that names something; one
    /// that points back joins the one before it.
    fn statements(&mut self, at: usize, statements: Vec<String>) {
        let heading = match self.blocks[..at].last() {
            Some(Block::Heading(heading)) => heading.as_str(),
            _ => "",
        };
        // Text under "The problem" describes the state before the change, so it keeps that heading.
        let names_something =
            words(heading) <= 12 && (!anchors(heading).is_empty() || speaks_of_fault(heading));
        for (number, sentence) in statements.into_iter().enumerate() {
            let length = words(&sentence);
            if number > 0
                && leans_back(&sentence)
                && !is_in_first_person(&sentence)
                && let Some(before) = self.prose.units.last_mut()
                && words(&before.text) + length <= 48
            {
                for text in [&mut before.text, &mut before.bare] {
                    text.push(' ');
                    text.push_str(&sentence);
                }
                continue;
            }
            let text = match number {
                0 if names_something => format!("{}: {sentence}", heading.trim_end_matches(':')),
                _ => sentence.clone(),
            };
            let (bare, source) = (sentence, UnitSource::Paragraph);
            self.prose.units.push(Unit { text, bare, source });
        }
    }

    fn push(&mut self, text: String, source: UnitSource) {
        let bare = text.clone();
        self.prose.units.push(Unit { text, bare, source });
    }

    /// Reads the rows of a table, eight at most; the first names the columns. Returns the next
    /// block.
    fn table(&mut self, at: usize) -> usize {
        let rows = self.blocks[at..].iter().map_while(|block| match block {
            Block::Row(cells) => Some(cells),
            _ => None,
        });
        let rows: Vec<&Vec<String>> = rows.collect();
        for cells in rows[1..].iter().take(8) {
            if let Some(text) = row_text(cells, rows[0]) {
                self.push(text, UnitSource::Row);
            }
        }
        at + rows.len()
    }

    /// Reads a list. Returns the next block.
    fn list(&mut self, at: usize, lead: Option<&str>) -> usize {
        let is_list = |block: &&Block| matches!(block, Block::Item { .. } | Block::Code);
        let next = at + self.blocks[at..].iter().take_while(is_list).count();
        let items = self.blocks[at..next]
            .iter()
            .filter_map(|block| match block {
                Block::Item { text, depth } => Some((text.as_str(), *depth)),
                _ => None,
            });
        let items: Vec<(&str, usize)> = items.collect();
        let top = items[0].1;
        let topmost = || items.iter().filter(|(_, depth)| *depth == top);
        if self.may_offer && self.is_before_question(next) && topmost().nth(1).is_some() {
            self.prose
                .options
                .extend(topmost().map(|(text, _)| (*text).to_owned()));
            return next;
        }
        let label = match (lead, self.blocks[..at].last()) {
            (None, Some(Block::Heading(heading))) => Some(heading.as_str()),
            (lead, _) => lead,
        };
        // "Would you like me to: …"
        if lead.is_some_and(addresses_the_user) {
            return next;
        }
        if label.is_some_and(announces_work) {
            let steps = topmost().map(|(text, _)| (*text).to_owned());
            self.prose.next_steps.extend(steps);
            return next;
        }
        let mut items = with_nested(&items, top);
        // Items under "Before" or "Problem" describe what was, so each of them keeps that label.
        let of_before =
            |it: &&str| it.len() <= LABEL_MAX && (begins_subordinate(it) || speaks_of_fault(it));
        if let Some(label) = label.filter(of_before) {
            for item in &mut items {
                item.text = format!("{label}: {}", item.text);
            }
        }
        let lead = lead.filter(|lead| words(lead) >= 3);
        let are_short = items.len() > 1 && items.iter().all(|item| item.length <= 16);
        match lead {
            Some(lead) if are_short => self.joined(lead, &items),
            _ => self.items(lead, &items),
        }
        next
    }

    /// Whether the next text after a list is the question that closes the message.
    fn is_before_question(&self, at: usize) -> bool {
        let next = self.blocks[at..].iter().position(is_text);
        next.is_some() && next.map(|next| at + next) == self.question
    }

    /// Adds `lead-in: a; b; c`.
    fn joined(&mut self, lead: &str, items: &[ListItem]) {
        let items = items.iter().map(|it| it.text.trim_end_matches(['.', ';']));
        let items: Vec<&str> = items.collect();
        self.push(format!("{lead}: {}", items.join("; ")), UnitSource::Joined);
    }

    /// Adds one unit for each item, the first with its lead-in if that is short.
    fn items(&mut self, lead: Option<&str>, items: &[ListItem]) {
        for (number, item) in items.iter().enumerate() {
            let Some(mut text) = item_statement(&item.text) else {
                continue;
            };
            if let Some(lead) = lead.filter(|_| number == 0)
                && words(lead) >= 4
                && words(lead) + words(&text) <= 40
            {
                text = format!("{lead}: {text}");
            }
            self.push(text, UnitSource::Item);
        }
    }
}

/// Whether a lead-in says something without what it leads in to.
fn is_statement(lead: &str) -> bool {
    let is_whole = !leans_back(lead) && !begins_subordinate(lead);
    words(lead) >= 8 && is_whole && !anchors(lead).is_empty()
}

/// `first: second header second cell; third header third cell` or `first: second`.
fn row_text(cells: &[String], header: &[String]) -> Option<String> {
    let filled = header.iter().zip(cells);
    let filled = filled.filter(|(_, cell)| cell.contains(char::is_alphanumeric));
    let filled: Vec<(&String, &String)> = filled.collect();
    let length: usize = filled.iter().map(|(_, cell)| words(cell)).sum();
    // A first column of numbers only counts the rows.
    let counts_rows = |cell: &str| !cell.contains(char::is_alphabetic);
    let filled = match filled.split_first()? {
        ((_, number), rest) if counts_rows(number) && rest.len() > 1 => rest,
        _ => &filled,
    };
    let ((_, first), others) = filled.split_first()?;
    if others.is_empty() || length < 4 {
        return None;
    }
    let named = others.iter().map(|(name, cell)| match cells.len() {
        2 => (*cell).clone(),
        _ => format!("{name} {cell}"),
    });
    Some(format!("{first}: {}", named.collect::<Vec<_>>().join("; ")))
}

/// A list item together with the short items nested under it.
struct ListItem {
    text: String,
    length: usize,
}

fn with_nested(items: &[(&str, usize)], top: usize) -> Vec<ListItem> {
    let mut joined: Vec<ListItem> = Vec::new();
    let mut nested = 0;
    for &(text, depth) in items {
        let length = words(text);
        match joined.last_mut() {
            Some(parent) if depth > top && parent.length + length <= 40 => {
                let end = parent.text.trim_end_matches(['.', ';', ':']).len();
                parent.text.truncate(end);
                parent.text.push_str(if nested == 0 { ": " } else { "; " });
                parent.text.push_str(text);
                parent.length += length;
                nested += 1;
            }
            _ => {
                let text = text.to_owned();
                joined.push(ListItem { text, length });
                nested = 0;
            }
        }
    }
    joined
}

/// The statements of a list item; `name — what` becomes `name: what`.
fn item_statement(item: &str) -> Option<String> {
    let mut text = item.to_owned();
    if let Some((name, what)) = [" — ", " – ", " - "]
        .iter()
        .find_map(|dash| item.split_once(dash))
        && (2..=60).contains(&name.chars().count())
    {
        text = format!("{name}: {what}");
    }
    let mut statements = sentences(&text);
    statements.retain(|sentence| !is_question(sentence));
    (!statements.is_empty()).then(|| statements.join(" "))
}

#[cfg(test)]
mod tests;
