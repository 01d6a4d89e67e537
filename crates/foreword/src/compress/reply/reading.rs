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

use super::tags::{Block, Field, Form, Name, Tag};

/// A block as it was found. Contents are as they stand in the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'a> {
    pub block: Block,
    /// The opening tag, for its attributes; empty if that was forgotten.
    pub tag: &'a str,
    pub fields: Vec<(Field, &'a str)>,
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
/// A field without its end, at the next field or at the block's end. Here and below:
/// tags that are meant mostly begin a line, quotations seldom do.
const NO_FIELD_END: u32 = 16;
const NO_FIELD_END_AT_LINE: u32 = 8;
const NO_FIELD_END_IN_BLOCK: u32 = 25;
const NO_FIELD_END_IN_BLOCK_AT_LINE: u32 = 10;
/// `<title>…</subtitle>`, `<observation>…</summary>`.
const WRONG_END: u32 = 17;
/// A field that can only be there once, once more.
const TWICE: u32 = 25;
/// A block without its beginning, or its end.
const NO_BLOCK_START: u32 = 25;
const NO_BLOCK_END: u32 = 25;
const NO_BLOCK_END_AT_LINE: u32 = 5;
/// A block that is left in the middle of a field for another.
const ABANDONED_AT_LINE: u32 = 15;
const ABANDONED: u32 = 30;
/// A whole block quoted in a field; and another beginning or end in that.
const QUOTATION: u32 = 15;
const NESTED: u32 = 24;
/// The reply ends in the middle.
const CUT_BETWEEN_FIELDS: u32 = 6;
const CUT_IN_FIELD: u32 = 8;
/// The same in a field that quotes a whole block: rather is the quotation none.
const CUT_AFTER_QUOTATION: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    /// In a block, between its fields.
    Between(Block),
    Inside(Block, Field),
    /// In a whole block that is quoted in a field.
    Quoting(Block, Field),
}

impl State {
    const COUNT: usize = 1 + 3 + 2 * 3 * Field::COUNT;

    fn slot(self) -> usize {
        let field =
            |block: Block, field: Field| 4 + 2 * (block as usize * Field::COUNT + field as usize);
        match self {
            State::Outside => 0,
            State::Between(block) => 1 + block as usize,
            State::Inside(block, name) => field(block, name),
            State::Quoting(block, name) => field(block, name) + 1,
        }
    }
}

/// What a tag does in a reading, if it is not mere text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    BlockStart(Block),
    FieldStart(Field),
    FieldEnd,
    BlockEnd,
    /// The block ends without its end, and without the field that is open.
    BlockCut,
}

/// The best reading so far that ends in a certain state.
#[derive(Debug, Clone, Copy)]
struct Path {
    cost: u32,
    /// The fields that the block has so far, as bits.
    seen: u32,
    /// The field that is open quotes a whole block.
    quotes: bool,
    /// The last of its steps.
    last: Option<usize>,
}

impl Path {
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

struct Link {
    before: Option<usize>,
    tag: usize,
    step: Step,
}

pub fn cheapest<'a>(reply: &'a str, tags: &[Tag]) -> Vec<Found<'a>> {
    let mut search = Search::new();
    for (index, tag) in tags.iter().enumerate() {
        search.take(index, tag);
    }
    blocks(reply, tags, &search.best())
}

struct Search {
    links: Vec<Link>,
    /// By state; `live` says which are there.
    paths: Vec<Option<Path>>,
    live: Vec<State>,
    next_paths: Vec<Option<Path>>,
    next_live: Vec<State>,
}

impl Search {
    fn new() -> Search {
        let mut paths = vec![None; State::COUNT];
        paths[State::Outside.slot()] = Some(Path {
            cost: 0,
            seen: 0,
            quotes: false,
            last: None,
        });
        Search {
            links: Vec::new(),
            paths,
            live: vec![State::Outside],
            next_paths: vec![None; State::COUNT],
            next_live: Vec::new(),
        }
    }

    fn take(&mut self, index: usize, tag: &Tag) {
        let live = std::mem::take(&mut self.live);
        for &state in &live {
            if let Some(path) = self.paths[state.slot()].take() {
                self.moves(state, path, index, tag);
            }
        }
        self.live = live;
        self.live.clear();
        std::mem::swap(&mut self.live, &mut self.next_live);
        std::mem::swap(&mut self.paths, &mut self.next_paths);
    }

    /// All that a tag can mean in a state.
    fn moves(&mut self, state: State, path: Path, index: usize, tag: &Tag) {
        let loose = if tag.fits { 0 } else { LOOSE };
        let mut go = |to: State, cost: u32, steps: &[Step]| {
            self.offer(to, path, cost, index, steps);
        };
        go(state, price_as_text(state, tag), &[]);
        match (state, tag.name, tag.form) {
            (State::Outside, Name::Block(block), Form::Open) => {
                let (to, steps) = start(block);
                go(to, loose, steps);
            }
            (State::Outside, Name::Block(Block::Nothing), Form::Empty) => {
                let steps = [Step::BlockStart(Block::Nothing), Step::BlockEnd];
                go(State::Outside, loose, &steps);
            }
            (State::Outside, Name::Field(field), Form::Open) if tag.begins_line => {
                let block = match field.of(Block::Observation) {
                    true => Block::Observation,
                    false => Block::Summary,
                };
                let steps = [Step::BlockStart(block), Step::FieldStart(field)];
                go(State::Inside(block, field), NO_BLOCK_START + loose, &steps);
            }
            (State::Between(block), Name::Field(field), Form::Open) if field.of(block) => {
                let cost = loose + twice(path, field);
                go(
                    State::Inside(block, field),
                    cost,
                    &[Step::FieldStart(field)],
                );
            }
            (State::Between(block), Name::Field(field), Form::Empty) if field.of(block) => {
                go(state, loose, &[Step::FieldStart(field), Step::FieldEnd]);
            }
            (State::Between(block), Name::Block(end), Form::Close) => {
                let wrong = if end == block { 0 } else { WRONG_END };
                go(State::Outside, loose + wrong, &[Step::BlockEnd]);
            }
            (State::Between(_), Name::Block(block), Form::Open) if tag.fits => {
                let (to, steps) = start(block);
                let cost = match tag.begins_line {
                    true => NO_BLOCK_END_AT_LINE,
                    false => NO_BLOCK_END,
                };
                go(to, cost, &[&[Step::BlockCut], steps].concat());
            }
            (State::Inside(Block::Nothing, _), Name::Block(Block::Nothing), Form::Close) => {
                go(State::Outside, loose, &[Step::FieldEnd, Step::BlockEnd]);
            }
            (State::Inside(Block::Nothing, _), Name::Field(_), _) => {}
            (State::Inside(block, field), Name::Field(end), Form::Close) => {
                let wrong = if end == field { 0 } else { WRONG_END };
                go(State::Between(block), loose + wrong, &[Step::FieldEnd]);
            }
            (State::Inside(block, _), Name::Field(field), Form::Open) if field.of(block) => {
                let missing = match tag.begins_line {
                    true => NO_FIELD_END_AT_LINE,
                    false => NO_FIELD_END,
                };
                let cost = missing + twice(path, field);
                let steps = [Step::FieldEnd, Step::FieldStart(field)];
                go(State::Inside(block, field), cost, &steps);
            }
            (State::Inside(block, _), Name::Block(end), Form::Close) => {
                let wrong = if end == block { 0 } else { WRONG_END };
                let missing = match tag.begins_line {
                    true => NO_FIELD_END_IN_BLOCK_AT_LINE,
                    false => NO_FIELD_END_IN_BLOCK,
                };
                let cost = missing + loose + wrong;
                go(State::Outside, cost, &[Step::FieldEnd, Step::BlockEnd]);
            }
            (State::Inside(block, field), Name::Block(other), Form::Open) if tag.fits => {
                let (to, steps) = start(other);
                let cost = match tag.begins_line {
                    true => ABANDONED_AT_LINE,
                    false => ABANDONED,
                };
                go(to, cost, &[&[Step::BlockCut], steps].concat());
                go(State::Quoting(block, field), QUOTATION, &[]);
            }
            (State::Quoting(block, field), Name::Block(end), Form::Close)
                if tag.fits && end != Block::Nothing =>
            {
                go(State::Inside(block, field), 0, &[]);
            }
            _ => {}
        }
    }

    fn offer(&mut self, to: State, from: Path, cost: u32, tag: usize, steps: &[Step]) {
        let slot = &mut self.next_paths[to.slot()];
        let cost = from.cost.saturating_add(cost);
        match slot {
            Some(best) if best.cost <= cost => return,
            Some(_) => {}
            None => self.next_live.push(to),
        }
        let mut path = Path { cost, ..from };
        path.quotes |= matches!(to, State::Quoting(..));
        for &step in steps {
            match step {
                Step::BlockStart(_) => path.seen = 0,
                Step::FieldStart(field) => {
                    path.seen |= 1 << field as u32;
                    path.quotes = false;
                }
                _ => {}
            }
            let before = path.last.replace(self.links.len());
            self.links.push(Link { before, tag, step });
        }
        *slot = Some(path);
    }

    fn best(&self) -> Vec<(usize, Step)> {
        let ends = self
            .live
            .iter()
            .filter_map(|&state| Some((state, self.paths[state.slot()]?)));
        let best = ends.min_by_key(|&(state, path)| path.final_cost(state));
        let mut steps = Vec::new();
        let mut at = best.and_then(|(_, path)| path.last);
        while let Some(link) = at.map(|at| &self.links[at]) {
            steps.push((link.tag, link.step));
            at = link.before;
        }
        steps.reverse();
        steps
    }
}

fn start(block: Block) -> (State, &'static [Step]) {
    match block {
        Block::Nothing => (
            State::Inside(Block::Nothing, Field::Why),
            &[
                Step::BlockStart(Block::Nothing),
                Step::FieldStart(Field::Why),
            ],
        ),
        Block::Observation => (
            State::Between(block),
            &[Step::BlockStart(Block::Observation)],
        ),
        Block::Summary => (State::Between(block), &[Step::BlockStart(Block::Summary)]),
    }
}

fn price_as_text(state: State, tag: &Tag) -> u32 {
    let begins_block = matches!((tag.name, tag.form), (Name::Block(_), Form::Open));
    let bounds_block = matches!(tag.name, Name::Block(_));
    match (state, tag.fits) {
        (State::Inside(_, field), false) if field.is_one_line() && tag.begins_line => SECOND_LINE,
        (State::Between(_), false) => JUNK,
        (_, false) => STRAY,
        (State::Outside, true) if tag.form == Form::Close => DENIED_END_OUTSIDE,
        (State::Outside, true) => DENIED_START_OUTSIDE,
        (State::Between(_), true) => DENIED_JUNK,
        (State::Inside(..), true) if begins_block => DENIED_BLOCK,
        (State::Inside(..), true) => DENIED,
        (State::Quoting(..), true) if bounds_block => NESTED,
        (State::Quoting(..), true) => 0,
    }
}

fn twice(path: Path, field: Field) -> u32 {
    let seen = path.seen & (1 << field as u32) != 0;
    if seen && !field.repeats() { TWICE } else { 0 }
}

/// What the steps cut out of the reply.
fn blocks<'a>(reply: &'a str, tags: &[Tag], steps: &[(usize, Step)]) -> Vec<Found<'a>> {
    let mut blocks: Vec<Found> = Vec::new();
    let mut open: Option<(Field, usize)> = None;
    for &(index, step) in steps {
        let tag = &tags[index];
        match step {
            Step::BlockStart(block) => blocks.push(Found {
                block,
                tag: match tag.name {
                    Name::Block(_) => &reply[tag.start..tag.end],
                    Name::Field(_) => "",
                },
                fields: Vec::new(),
                closed: false,
            }),
            Step::FieldStart(field) => open = Some((field, tag.end)),
            Step::FieldEnd => {
                if let (Some((field, start)), Some(found)) = (open.take(), blocks.last_mut()) {
                    let content = reply.get(start..tag.start).unwrap_or_default();
                    found.fields.push((field, content));
                }
            }
            Step::BlockEnd => {
                if let Some(found) = blocks.last_mut() {
                    found.closed = true;
                }
            }
            Step::BlockCut => open = None,
        }
    }
    blocks
}
