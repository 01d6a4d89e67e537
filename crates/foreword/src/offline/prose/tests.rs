use super::super::lexicon::{contrasts, overlap, speaks_of_fault};
use super::super::markdown::strip;
use super::*;

/// The texts of the units, without asking what they are about.
fn units(markdown: &str) -> Vec<String> {
    let units = read(markdown, false).units.into_iter();
    units.map(|unit| unit.text).collect()
}

/// The units that are facts, whatever the request was.
fn facts(markdown: &str) -> Vec<String> {
    let units = read(markdown, false).units.into_iter();
    let facts = units.filter(|unit| is_fact(unit, &HashSet::new()));
    facts.map(|unit| unit.text).collect()
}

fn sorted(found: HashSet<String>) -> Vec<String> {
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort();
    found
}

#[test]
fn markup_is_stripped_and_code_spans_stay() {
    let check = |input: &str, expected: &str| assert_eq!(strip(input), expected, "{input}");
    check(
        "only ignore tc*.png and after-*.png",
        "only ignore tc*.png and after-*.png",
    );
    check("**Bold** and *soft* `**kept**`", "Bold and soft `**kept**`");
    check(
        "see [the docs](https://a.b/c) ![x](y.png)",
        "see the docs x",
    );
    check("all of `Vec<String>` → 2*3", "all of `Vec<String>` → 2*3");
    check("> ✅ quoted  text 🎉", "quoted text");
    check("*.rs and *.ts", "*.rs and *.ts");
    check("2 * 3 * 4, __init__", "2 * 3 * 4, __init__");
    check(
        "an [open link and a ` backtick",
        "an [open link and a ` backtick",
    );
}

#[test]
fn items_about_the_state_before_a_change_say_so() {
    let reply = "**Before:**\n- Returned an error from `init`\n- The hook showed its usage\n\n\
                 **After:**\n- Returns a JSON answer";
    assert_eq!(
        units(reply),
        [
            "Before: Returned an error from `init`",
            "Before: The hook showed its usage",
            "After: Returns a JSON answer",
        ]
    );
}

#[test]
fn a_column_that_counts_the_rows_is_left_out() {
    let table =
        "| # | File | Fix |\n|---|---|---|\n| 5 | `resume.go` | takes the root as an argument |";
    assert_eq!(
        units(table),
        ["`resume.go`: Fix takes the root as an argument"]
    );
}

#[test]
fn sentences_end_at_their_stops() {
    let check = |input: &str, expected: &[&str]| assert_eq!(sentences(input), expected);
    check("One. Two! Three? Four", &["One.", "Two!", "Three?", "Four"]);
    check(
        "It runs, e.g. in CI. Then it stops.",
        &["It runs, e.g. in CI.", "Then it stops."],
    );
    check(
        "Das gilt z.B. hier. Am 3. Mai nicht.",
        &["Das gilt z.B. hier.", "Am 3. Mai nicht."],
    );
    check(
        "It takes five. See `a. B` there.",
        &["It takes five.", "See `a. B` there."],
    );
    check(
        "It is 404. Then 3.9. config.rs wins.",
        &["It is 404.", "Then 3.9.", "config.rs wins."],
    );
    check("fix it. then test", &["fix it.", "then test"]);
    check(
        "He said “no.” Then (so.) It",
        &["He said “no.”", "Then (so.)", "It"],
    );
    check(
        "直しました。テストは通ります！次は？",
        &["直しました。", "テストは通ります！", "次は？"],
    );
    check(
        "an open ` tick. Still two.",
        &["an open ` tick.", "Still two."],
    );
}

#[test]
fn words_of_japanese_and_chinese_count_half_a_character() {
    let check = |input: &str, expected: usize| assert_eq!(words(input), expected, "{input}");
    check("two — words", 2);
    check("日付を修正", 3);
    check("`formatJst` を追加、した", 4);
    check("", 0);
}

#[test]
fn stems_are_what_two_texts_have_in_common() {
    let check = |input: &str, expected: &[&str]| assert_eq!(sorted(stems(input)), expected);
    check("the retries of retryCount", &["count", "retrie", "retry"]);
    check("die Rechnungen und die Rechnungsnummer", &["rechnu"]);
    check("日付表示", &["付表", "日付", "表示"]);
    let share = |a: &str, b: &str| overlap(&stems(a), &stems(b));
    assert_eq!(share("retry jobs", "the retried job queue of jobs"), 0.5);
    assert_eq!(share("", "jobs"), 0.0);
}

#[test]
fn anchors_are_names_and_figures() {
    let check = |input: &str, expected: &[&str]| assert_eq!(sorted(anchors(input)), expected);
    check(
        "`a b` in src/x.rs with --flag",
        &["--flag", "a b", "src/x.rs"],
    );
    check(
        "fooBar, snake_case, #12, 3.5%, HTTP",
        &["#12", "3.5%", "HTTP", "fooBar", "snake_case"],
    );
    check("A plain sentence, e.g. well-known words.", &[]);
    check(
        "it uses Postgres. Then says \"not found\"",
        &["Postgres", "not found"],
    );
    check("キャッシュはNext.jsの設定", &["Next.js"]);
}

#[test]
fn a_list_is_joined_to_its_lead_in() {
    let check = |input: &str, expected: &[&str]| assert_eq!(units(input), expected);
    check(
        "The worker now does:\n- claims jobs.\n- frees them;\n- logs",
        &["The worker now does: claims jobs; frees them; logs"],
    );
    check(
        "- `a.rs` — reads the file and keeps it.\n  More here.\n- Is it done?\n",
        &["`a.rs`: reads the file and keeps it. More here."],
    );
    check(
        "- parent item\n  - child one\n  - child two\n- second",
        &["parent item: child one; child two", "second"],
    );
    check(
        "Three things in `store.rs` were wrong and are right now:\n\n| a | b |\n|---|---|\n| x | y z w |",
        &[
            "Three things in `store.rs` were wrong and are right now.",
            "x: y z w",
        ],
    );
    check(
        "| File | Before | After |\n|:--|---|---|\n| `a` | 3 | — |\n| `x` | four times | five |",
        &["`x`: Before four times; After five"],
    );
}

#[test]
fn a_sentence_that_points_back_joins_the_one_before_it() {
    let check = |input: &str, expected: &[&str]| assert_eq!(units(input), expected);
    check(
        "The cache is shared. It is never freed.",
        &["The cache is shared. It is never freed."],
    );
    check(
        "Der Cache bleibt. Dies kostet.",
        &["Der Cache bleibt. Dies kostet."],
    );
    check(
        "キャッシュを共有。これは速い。",
        &["キャッシュを共有。 これは速い。"],
    );
    check(
        "The cache is shared. I left it.",
        &["The cache is shared.", "I left it."],
    );
}

#[test]
fn a_heading_with_a_name_precedes_its_first_sentence() {
    let check = |input: &str, expected: &[&str]| assert_eq!(units(input), expected);
    check(
        "## 1. `store.rs`\nKeeps all. More.",
        &["`store.rs`: Keeps all.", "More."],
    );
    check("**Summary**\nKeeps all.", &["Keeps all."]);
    let prose = read("## 1. `store.rs`\nKeeps all.", false);
    assert_eq!(prose.units[0].bare, "Keeps all.");
    assert_eq!(prose.headings, ["`store.rs`"]);
}

#[test]
fn an_offer_before_a_closing_question_is_no_fact() {
    let offer = "The lock is held.\n\n1. Drop it\n2. Keep it\n\nWhich one do you want?";
    let prose = read(offer, true);
    assert_eq!(prose.options, ["Drop it", "Keep it"]);
    assert_eq!(prose.questions, ["Which one do you want?"]);
    assert_eq!(prose.leads, ["The lock is held."]);
    assert_eq!(units(offer), ["The lock is held.", "Drop it", "Keep it"]);

    let headed = "## Option A\nFast.\n## Option B\nSafe.\n\nI prefer A. Shall I go on?";
    let prose = read(headed, true);
    assert_eq!(prose.options, ["Option A", "Option B"]);
}

#[test]
fn what_reports_nothing_is_no_fact() {
    let check = |input: &str| assert_eq!(facts(input), [""; 0], "{input}");
    check("## Root Cause");
    check("**`setup_cmd_test.go`** tests the enable/disable workflow:");
    check("For NL importing 3795.25 MWh into Germany that hour:");
    check("Yes — your model is right");
    check("Yes, you are right about `main.rs` here.");
    check("Add all entries to that function");
    check("Ready to implement the remote-tracking branch fallback fix");
    check("I looked at all of the files that there are.");
    check("You could also rename `store.rs` now.");
    check("Si quieres, cambio también `store.rs` ahora.");
    check("Du kannst `store.rs` jetzt löschen.");
    check("你可以删除 `store.rs` 文件。");
    check("Should I also rename `store.rs`?");
    check("All tests pass.");
    check("https://example.com/a/b/c see");
    check("```\nlet fact = \"a line of code in a fence\";\n```");
}

#[test]
fn facts_are_kept_in_several_languages() {
    let check = |input: &str| assert_eq!(facts(input), [input], "{input}");
    check("`Store::open` now fails if the file is newer.");
    check("Die Rechnung wird jetzt erst nach dem Versand gedruckt.");
    check("La fecha se formatea siempre en Europe/Madrid.");
    check("La facture est envoyée avant le paiement du client.");
    check("A fatura agora é enviada antes do pagamento.");
    check("原因はサーバーの時刻帯が違うことでした。");
    check("原因是服务器和浏览器的时区不同。");
}

#[test]
fn a_fact_without_a_name_is_about_the_request() {
    let unit = &read("The weather in the north is rather cold today.", false).units[0];
    assert!(!is_fact(unit, &stems("retry the failed jobs")));
    assert!(is_fact(unit, &stems("what is the weather in the north")));
}

#[test]
fn negation_and_faults_are_found_in_seven_languages() {
    for text in [
        "do not",
        "bitte nicht",
        "sin moment",
        "sans moment",
        "não use",
        "使わないで",
        "不要用",
    ] {
        assert!(contrasts(text), "{text}");
    }
    for text in [
        "it fails",
        "ein Fehler",
        "fallan",
        "une erreur",
        "falhando",
        "エラーが出る",
        "报错了",
    ] {
        assert!(speaks_of_fault(text), "{text}");
    }
    for text in ["a notion of order", "add an option", "日付を表示"] {
        assert!(!contrasts(text) && !speaks_of_fault(text), "{text}");
    }
}
