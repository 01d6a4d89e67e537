//! Which of the tags in a reply are its own, and which are only quoted.
//!
//! A reply about this very program quotes our tags in its narratives, and a cut or
//! careless one lacks some of its own, so no local rule can tell them apart. Instead
//! every way to read the reply has a price, and the cheapest is taken: it costs to
//! pass over a tag that fits as if it were text, more to need one that is missing, and
//! very little to take one for text that does not fit. In a reply whose blocks are
//! whole, tags that do not fit are therefore never structure: the right reading pays
//! one for each of them and nothing else, and no other reading can be cheaper.
//!
//! The search keeps the best reading for each state after each tag (Viterbi), so time
//! is linear in the length of the reply.

use std::collections::BTreeMap;

use super::tags::{Block, Field, Form, Name, Tag};

/// A block as it was found. Contents are as they stand in the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'a> {
    pub block: Block,
    /// The opening tag, for its attributes; empty if that was forgotten.
    pub tag: &'a str,
    /// By name.
    pub fields: Vec<(&'static str, &'a str)>,
    /// Its end was found, and not only supposed.
    pub closed: bool,
}

// What each oddity costs. What matters is how they compare; the tests say why.

/// A tag that does not fit, taken as text: nearly nothing.
const STRAY: u32 = 1;
/// A tag that does not fit, taken as structure all the same.
const LOOSE: u32 = 4;
/// A tag that fits, taken as text inside a field; more if it begins a block.
const DENIED: u32 = 10;
const DENIED_BLOCK: u32 = 14;
/// The same outside all blocks: an end without a beginning is odder than the reverse.
const DENIED_START_OUTSIDE: u32 = 10;
const DENIED_END_OUTSIDE: u32 = 20;
/// A tag on a line of its own in a field that has but one line.
const SECOND_LINE: u32 = 20;
/// Between two fields there should be nothing.
const JUNK: u32 = 3;
const DENIED_JUNK: u32 = 20;
/// A field without its end, at the next field or at the block's end. Of two prices the
/// first is for a tag that begins a line: those that are meant mostly do, quotations
/// seldom.
const NO_FIELD_END: [u32; 2] = [8, 16];
const NO_FIELD_END_IN_BLOCK: [u32; 2] = [10, 25];
/// `<title>…</subtitle>`, `<observation>…</summary>`.
const WRONG_END: u32 = 17;
/// A field that can only be there once, once more.
const TWICE: u32 = 25;
/// A block without its beginning, or its end.
const NO_BLOCK_START: u32 = 25;
const NO_BLOCK_END: [u32; 2] = [5, 25];
/// A block that is left in the middle of a field for another.
const ABANDONED: [u32; 2] = [15, 30];
/// A whole block quoted in a field; and another beginning or end in that.
const QUOTATION: u32 = 15;
const NESTED: u32 = 24;
/// The reply ends in the middle.
const CUT_BETWEEN_FIELDS: u32 = 6;
const CUT_IN_FIELD: u32 = 8;
/// The same in a field that quotes a whole block: rather is the quotation none.
const CUT_AFTER_QUOTATION: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Outside,
    /// In a block, between its fields.
    Between(Block),
    Inside(Block, Field),
    /// In a whole block that is quoted in a field.
    Quoting(Block, Field),
}

impl State {
    /// After a block's opening tag.
    fn begun(block: Block) -> State {
        match block {
            Block::Nothing => State::Inside(block, Field::WHY),
            Block::Observation | Block::Summary => State::Between(block),
        }
    }
}

/// The best reading so far that ends in a certain state.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    cost: u32,
    /// The fields that the block has so far, as bits.
    seen: u32,
    /// The field that is open quotes a whole block.
    quotes: bool,
    /// The last tag that is not mere text.
    last: Option<usize>,
}

impl Path {
    fn costing(self, cost: u32) -> Path {
        Path {
            cost: self.cost.saturating_add(cost),
            ..self
        }
    }

    /// With the price of the reply being over.
    fn final_cost(self, state: State) -> u32 {
        let cut = match state {
            State::Outside => 0,
            State::Between(_) => CUT_BETWEEN_FIELDS,
            State::Inside(..) if !self.quotes => CUT_IN_FIELD,
            State::Inside(..) | State::Quoting(..) => CUT_AFTER_QUOTATION,
        };
        self.cost.saturating_add(cut)
    }
}

/// What a tag does in a reading, if it is not mere text.
#[derive(Debug, Clone, Copy)]
struct Link<'t> {
    before: Option<usize>,
    tag: &'t Tag,
    from: State,
    to: State,
}

pub fn cheapest<'a>(reply: &'a str, tags: &[Tag]) -> Vec<Found<'a>> {
    let mut search = Search {
        links: Vec::new(),
        paths: BTreeMap::from([(State::Outside, Path::default())]),
    };
    for tag in tags {
        for (state, path) in std::mem::take(&mut search.paths) {
            search.moves(state, path, tag);
        }
    }
    blocks(reply, &search.best())
}

struct Search<'t> {
    links: Vec<Link<'t>>,
    paths: BTreeMap<State, Path>,
}

impl<'t> Search<'t> {
    /// All that a tag can mean in a state.
    fn moves(&mut self, state: State, path: Path, tag: &'t Tag) {
        let loose = if tag.fits { 0 } else { LOOSE };
        let priced = |prices: [u32; 2]| prices[usize::from(!tag.begins_line)];
        let wrong = |right: bool| if right { 0 } else { WRONG_END };
        let twice = |field: Field| match path.seen & field.bit() != 0 && !field.repeats() {
            true => TWICE,
            false => 0,
        };
        let text = price_as_text(state, tag);
        self.offer(state, path.costing(text));
        let mut go = |to: State, cost: u32| self.follow(state, to, path.costing(cost), tag);
        match (state, tag.name, tag.form) {
            (State::Outside, Name::Block(block), Form::Open) => go(State::begun(block), loose),
            (State::Outside, Name::Block(Block::Nothing), Form::Empty) => go(state, loose),
            (State::Outside, Name::Field(field), Form::Open) if tag.begins_line => {
                let block = match field.of(Block::Observation) {
                    true => Block::Observation,
                    false => Block::Summary,
                };
                go(State::Inside(block, field), NO_BLOCK_START + loose);
            }
            (State::Between(block), Name::Field(field), Form::Open) if field.of(block) => {
                go(State::Inside(block, field), loose + twice(field));
            }
            // An empty field says nothing.
            (State::Between(block), Name::Field(field), Form::Empty) if field.of(block) => {
                self.offer(state, path.costing(loose));
            }
            (State::Between(block), Name::Block(end), Form::Close) => {
                go(State::Outside, loose + wrong(end == block));
            }
            (State::Between(_), Name::Block(block), Form::Open) if tag.fits => {
                go(State::begun(block), priced(NO_BLOCK_END));
            }
            (State::Inside(Block::Nothing, _), Name::Block(Block::Nothing), Form::Close) => {
                go(State::Outside, loose);
            }
            (State::Inside(Block::Nothing, _), Name::Field(_), _) => {}
            (State::Inside(block, field), Name::Field(end), Form::Close) => {
                go(State::Between(block), loose + wrong(end == field));
            }
            (State::Inside(block, _), Name::Field(field), Form::Open) if field.of(block) => {
                let cost = priced(NO_FIELD_END) + twice(field);
                go(State::Inside(block, field), cost);
            }
            (State::Inside(block, _), Name::Block(end), Form::Close) => {
                let missing = priced(NO_FIELD_END_IN_BLOCK);
                go(State::Outside, missing + loose + wrong(end == block));
            }
            (State::Inside(block, field), Name::Block(other), Form::Open) if tag.fits => {
                go(State::begun(other), priced(ABANDONED));
                let quoting = Path {
                    quotes: true,
                    ..path.costing(QUOTATION)
                };
                self.offer(State::Quoting(block, field), quoting);
            }
            (State::Quoting(block, field), Name::Block(end), Form::Close)
                if tag.fits && end != Block::Nothing =>
            {
                self.offer(State::Inside(block, field), path);
            }
            _ => {}
        }
    }

    /// A tag that is structure: it begins or ends something.
    fn follow(&mut self, from: State, to: State, mut path: Path, tag: &'t Tag) {
        if self.has_cheaper(to, path) {
            return;
        }
        if from == State::Outside || tag.is_of_block() {
            path.seen = 0;
        }
        if let State::Inside(_, field) = to {
            path.seen |= field.bit();
            path.quotes = false;
        }
        let before = path.last.replace(self.links.len());
        self.links.push(Link {
            before,
            tag,
            from,
            to,
        });
        self.offer(to, path);
    }

    fn offer(&mut self, to: State, path: Path) {
        if !self.has_cheaper(to, path) {
            self.paths.insert(to, path);
        }
    }

    fn has_cheaper(&self, to: State, path: Path) -> bool {
        let best = self.paths.get(&to);
        best.is_some_and(|best| best.cost <= path.cost)
    }

    fn best(&self) -> Vec<Link<'t>> {
        let ends = self.paths.iter();
        let best = ends.min_by_key(|&(&state, path)| path.final_cost(state));
        let mut links = Vec::new();
        let mut at = best.and_then(|(_, path)| path.last);
        while let Some(link) = at.map(|at| self.links[at]) {
            links.push(link);
            at = link.before;
        }
        links.reverse();
        links
    }
}

fn price_as_text(state: State, tag: &Tag) -> u32 {
    let begins_block = tag.is_of_block() && tag.form == Form::Open;
    match (state, tag.fits) {
        (State::Inside(_, field), false) if field.is_one_line() && tag.begins_line => SECOND_LINE,
        (State::Between(_), false) => JUNK,
        (_, false) => STRAY,
        (State::Outside, true) if tag.form == Form::Close => DENIED_END_OUTSIDE,
        (State::Outside, true) => DENIED_START_OUTSIDE,
        (State::Between(_), true) => DENIED_JUNK,
        (State::Inside(..), true) if begins_block => DENIED_BLOCK,
        (State::Inside(..), true) => DENIED,
        (State::Quoting(..), true) if tag.is_of_block() => NESTED,
        (State::Quoting(..), true) => 0,
    }
}

/// What the steps of a reading cut out of the reply.
fn blocks<'a>(reply: &'a str, links: &[Link<'_>]) -> Vec<Found<'a>> {
    let mut blocks: Vec<Found> = Vec::new();
    let mut open: Option<(Field, usize)> = None;
    for Link { tag, from, to, .. } in links {
        let begins_block = *from == State::Outside || (tag.is_of_block() && tag.form == Form::Open);
        // A field that is open when another block begins was cut.
        if let Some((field, start)) = open.take()
            && let Some(found) = blocks.last_mut().filter(|_| !begins_block)
        {
            found.fields.push((field.name(), &reply[start..tag.start]));
        }
        if begins_block {
            let (block, text) = match (tag.name, *to) {
                (Name::Block(block), _) => (block, &reply[tag.start..tag.end]),
                (_, State::Inside(block, _)) => (block, ""),
                _ => continue,
            };
            blocks.push(Found {
                block,
                tag: text,
                fields: Vec::new(),
                closed: false,
            });
        }
        if let (State::Outside, Some(found)) = (to, blocks.last_mut()) {
            found.closed = true;
        }
        if let State::Inside(_, field) = to {
            open = Some((*field, tag.end));
        }
    }
    blocks
}
