//! Random replies: prose, code and our own tags, whole and half, quoted
//! inside of fields and strewn between blocks.
//!
//! The seed is fixed, so a failure is the same everywhere.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::*;
use crate::agent::repair::TAGS;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_261_116),
        ..ProptestConfig::default()
    }
}

/// Our own tags, and what looks like one.
const QUOTES: &[&str] = &[
    "<observation>",
    "</observation>",
    "<summary>",
    "</summary>",
    "<nothing>",
    "</nothing>",
    "<type>",
    "</type>",
    "<title>",
    "</title>",
    "<subtitle>",
    "</subtitle>",
    "<facts>",
    "</facts>",
    "<fact>",
    "</fact>",
    "<narrative>",
    "</narrative>",
    "<concepts>",
    "</concept>",
    "<files/>",
    "<files_read>",
    "</files_modified>",
    "<text>",
    "</text>",
    "<events>",
    "<Observation id=\"1\">",
    "</ TITLE >",
    "<request>",
    "</notes>",
    "<item>",
    "</item>",
    "`</narrative>`",
    "<observ",
    "</narrati",
    "<",
    "</",
    "/>",
    "<!--",
    "<![CDATA[",
    "]]>",
    "```xml",
    "```",
    "Vec<Title>",
    "HashMap<Text, Vec<Type>>",
    "a < b && c > d",
    "x << 2",
    "->",
    "&'a str",
];

const CODE: &[&str] = &[
    "a < b && c > d",
    "x << 2",
    "->",
    "&'a str",
    "```",
    "Vec<u8>",
    "<b>",
    "</",
];

/// Tags that stand together as they do in a block, and whole blocks.
const PASSAGES: &[&str] = &[
    "<observation><title>",
    "<observation>\n<type>",
    "<observation><narrative>",
    "</narrative></observation>",
    "</narrative>\n</observation>",
    "</facts>\n</observation>",
    "</title>\n<narrative>",
    "</title><subtitle>",
    "<title>x</title><narrative>",
    "<summary><request>x</request></summary>",
    "<observation><type>a</type><title>b</title></observation>",
    "<observation>\n<type>a</type>\n<narrative>b</narrative>\n</observation>",
    "<nothing>why</nothing>",
];

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Zäé日0-9.,()']{1,6}"
}

fn gap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![" ", " ", " ", "\n", "\n\n  ", "\t"])
}

/// Words with quotations between them; never two together, but perhaps one at an end.
fn text(quotes: &'static [&'static str]) -> impl Strategy<Value = String> {
    let quote = prop::sample::select(quotes);
    let pairs = prop::collection::vec((word(), gap(), quote.clone(), gap()), 0..5);
    let ends = (prop::option::of(quote), prop::option::of(word()));
    (pairs, ends).prop_map(|(pairs, (first, last))| {
        let mut text = first.unwrap_or_default().to_owned();
        for (word, before, quote, after) in pairs {
            text += &format!("{word}{before}{quote}{after}");
        }
        text + &last.unwrap_or_default()
    })
}

/// The same with a word at both ends, for text around a block and for fields that are not empty.
fn enclosed(quotes: &'static [&'static str]) -> impl Strategy<Value = String> {
    (word(), gap(), text(quotes), gap(), word())
        .prop_map(|(first, before, text, after, last)| first + before + &text + after + &last)
}

/// One passage, without other tags in the same narrative: together they could form the end of a
/// block and the beginning of another, which cannot be distinguished from real ones.
fn with_a_passage() -> impl Strategy<Value = String> {
    (
        enclosed(CODE),
        prop::sample::select(PASSAGES),
        enclosed(CODE),
    )
        .prop_map(|(before, passage, after)| format!("{before} {passage} {after}"))
}

fn on_one_line(text: String) -> String {
    text.replace('\n', " ")
}

fn lines(quotes: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(enclosed(quotes), 0..4)
}

/// An observation, field by field.
#[derive(Debug, Clone, Default, PartialEq)]
struct Observation {
    kind: String,
    title: String,
    subtitle: String,
    facts: Vec<String>,
    narrative: String,
    concepts: Vec<String>,
    files_read: Vec<String>,
    files_modified: Vec<String>,
    files: Vec<String>,
    events: Vec<u32>,
}

fn observations(reply: &str) -> Vec<Observation> {
    let observation = |it: &ReplyBlock| Observation {
        kind: it.short(&["type"]),
        title: it.short(&["title"]),
        subtitle: it.short(&["subtitle"]),
        facts: it.list(&["facts"], "fact"),
        narrative: it.verbatim(&["narrative"]),
        concepts: it.list(&["concepts"], "concept"),
        files_read: it.list(&["files_read"], "file"),
        files_modified: it.list(&["files_modified"], "file"),
        files: it.list(&["files"], "file"),
        events: numbers(&it.verbatim(&["events"])),
    };
    read(reply, TAGS)
        .observations
        .iter()
        .map(observation)
        .collect()
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z]{1,6}/[a-z]{1,6}\\.rs", 0..3)
}

prop_compose! {
    fn observation(quotes: &'static [&'static str])(
        kind in "[a-z]{3,9}",
        title in enclosed(quotes).prop_map(on_one_line),
        subtitle in text(quotes).prop_map(on_one_line),
        facts in lines(quotes),
        narrative in text(quotes),
        concepts in prop::collection::vec("[a-z]{2,8}", 0..3),
        files_read in paths(),
        files_modified in paths(),
        files in paths(),
        events in prop::collection::vec(0_u32..20, 0..3),
    ) -> Observation {
        Observation {
            kind,
            title,
            subtitle: subtitle.trim().to_owned(),
            facts,
            narrative: narrative.trim().to_owned(),
            concepts,
            files_read,
            files_modified,
            files,
            events,
        }
    }
}

/// The text of an observation that follows the prompt, with its fields in some order.
fn written(it: &Observation, turn: usize) -> String {
    let list = |name: &str, child: &str, items: &[String]| {
        let items = items
            .iter()
            .map(|item| format!("\n<{child}>{item}</{child}>"));
        format!("<{name}>{}\n</{name}>\n", items.collect::<String>())
    };
    let numbers: Vec<String> = it.events.iter().map(u32::to_string).collect();
    let mut fields = [
        format!("<type>{}</type>\n", it.kind),
        format!("<title>{}</title>\n", it.title),
        format!("<subtitle>{}</subtitle>", it.subtitle),
        list("facts", "fact", &it.facts),
        format!("<narrative>{}</narrative>\n\n", it.narrative),
        list("concepts", "concept", &it.concepts),
        list("files_read", "file", &it.files_read),
        list("files_modified", "file", &it.files_modified),
        list("files", "file", &it.files),
        format!("<events>{}</events>\n", numbers.join(", ")),
    ];
    let count = fields.len();
    fields.rotate_left(turn % count);
    format!("<observation>\n{}</observation>", fields.concat())
}

fn is_cdata(it: &Observation) -> bool {
    let wrapped = |text: &str| text.starts_with("<![CDATA[") && text.ends_with("]]>");
    wrapped(&it.narrative) || wrapped(&it.subtitle)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_panics_on_any_text(reply in any::<String>()) {
        read(&reply, TAGS);
    }

    #[test]
    fn nothing_panics_on_any_heap_of_tags(
        tags in prop::collection::vec(prop::sample::select(QUOTES), 0..60),
        between in prop::sample::select(vec!["", "\n", " é "]),
    ) {
        read(&tags.join(between), TAGS);
    }

    #[test]
    fn well_formed_blocks_are_found_among_anything_with_exactly_their_fields(
        blocks in prop::collection::vec((text(QUOTES), observation(QUOTES)), 1..4),
        last in text(QUOTES),
        turn in 0_usize..10,
    ) {
        prop_assume!(!blocks.iter().any(|(_, it)| is_cdata(it)));
        let mut reply = String::new();
        for (garbage, it) in &blocks {
            reply += &format!("{garbage}\n{}\n", written(it, turn));
        }
        reply += &last;
        let expected: Vec<Observation> = blocks.into_iter().map(|(_, it)| it).collect();
        prop_assert_eq!(observations(&reply), expected, "{}", reply);
    }

    #[test]
    fn a_passage_or_whole_block_quoted_in_a_narrative_stays_text(
        narrative in with_a_passage(),
        others in prop::collection::vec(enclosed(QUOTES), 0..3),
        at in 0_usize..3,
        subtitle in enclosed(QUOTES).prop_map(on_one_line),
    ) {
        let mut narratives = others;
        narratives.insert(at.min(narratives.len()), narrative);
        let expected: Vec<Observation> = narratives
            .into_iter()
            .map(|narrative| Observation {
                kind: "bugfix".into(),
                title: "A title".into(),
                subtitle: subtitle.clone(),
                facts: vec!["A fact.".into()],
                narrative,
                ..Observation::default()
            })
            .collect();
        let reply: Vec<String> = expected.iter().map(|it| written(it, 0)).collect();
        let reply = reply.join("\n\n");
        prop_assert_eq!(observations(&reply), expected, "{}", reply);
    }

    #[test]
    fn half_blocks_before_a_block_do_not_swallow_it(
        garbage in text(&[
            "<observation><title>", "<observation>\n<type>bugfix</type>\n<title>",
            "<observation><facts><fact>", "<summary><request>", "<title>x</title>",
        ]),
        it in observation(QUOTES),
    ) {
        prop_assume!(!is_cdata(&it));
        let reply = format!("{garbage}\n{}", written(&it, 0));
        prop_assert_eq!(observations(&reply), vec![it], "{}", reply);
    }

    #[test]
    fn blocks_before_the_cut_survive_it(
        first in observation(QUOTES),
        second in observation(QUOTES),
        cut in 0.0..1.0_f64,
    ) {
        prop_assume!(!is_cdata(&first) && !is_cdata(&second));
        let (first_written, second_written) = (written(&first, 0), written(&second, 0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short text")]
        #[expect(clippy::cast_precision_loss, reason = "a place in a short text")]
        let at = (second_written.len() as f64 * cut) as usize;
        let at = second_written.floor_char_boundary(at);
        let read = observations(&format!("{first_written}\n{}", &second_written[..at]));
        prop_assert_eq!(read.first(), Some(&first));
        // If the text is cut right after a quoted end tag, that tag counts as the end.
        let read_second = read.get(1);
        prop_assert!(read_second.is_none_or(|it| second.narrative.starts_with(&it.narrative)), "{:?}", read_second);
    }
}
