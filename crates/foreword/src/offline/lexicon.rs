//! What offline derivation knows of languages: a few lists of words, and measures of a text.
//!
//! Sentences are judged by their structure; the lists hold only the words that carry structure
//! (pronouns, conjunctions, negation). Each list has English, German, Spanish, French,
//! Portuguese, Japanese and Chinese, in this order, unless its comment says otherwise. An entry
//! that ends in `*` also matches longer words; `_` stands for a space within an entry.
//! `prose` and `title` are built on this module.

use std::collections::HashSet;

use foreword_core::text;

/// The beginnings of a text's words, to compare texts by.
pub type Stems = HashSet<String>;

/// Words that stand for something said before. A sentence that begins with one is joined to the
/// sentence before it, and a title that contains one cannot be understood alone.
const POINTING: &str = "
    it its it's this that these those they them their same such both here here's there above following
    es sie dies* beide hier das_ist das_war das_wird das_hat
    esto eso ello este esta estos ellos ambos aquí
    cela ça ce cette ces ils elles ici voici
    isto isso eles ambas aqui
    これ それ この その
    这 那 它
";

/// Words that tie a sentence to the one before it without standing for anything in it.
const CONNECTING: &str = "
    and but or so also then now additionally however
    und aber auch jetzt nun dann
    y pero también ahora
    et mais aussi maintenant
    e mas também agora
    それで また ただし
    也 但 现在
";

/// The first person. A sentence about the agent itself is a fact only if it names something.
const FIRST_PERSON: &str = "
    i i'm i've i_have i'll i'd we we're we've we_have my let let's
    ich ich_habe wir wir_haben mein meine
    yo nosotros
    je j'ai nous nous_avons
    eu nós
    私
    我
";

/// Words of a heading or lead-in whose list is still to be done: its items are no facts.
const TO_DO: &str = "
    next_step* next_up todo to_do remaining follow-up* still_open not_done_yet
    nächste* offen* noch_zu_tun
    siguientes_pasos próximos_pasos pendiente*
    prochaines_étapes reste_à_faire
    próximos_passos pendente*
    次のステップ 残りの 残作業
    下一步 后续 待办
";

/// Words that turn to the user: address, advice, offers. A sentence that begins with one is no
/// fact; an entry of several words counts anywhere.
const ADDRESS: &str = "
    you your you're you'll you'd you_can you_could you_may you_might you_should you_need you_want
    let_me_know want_me_to ready_to
    du dein* du_kannst du_könntest kannst_du sag_bescheid
    tú usted puedes podrías si_quieres si_prefieres
    vous tu vous_pouvez si_vous_voulez
    você você_pode se_quiser
    あなた
    你 您
";

/// Negation and contrast: the user's sentence with one of them limits or corrects the work.
const CONTRAST: &str = "
    not no never don't doesn't didn't isn't aren't can't cannot won't without instead rather only
    because since so_that therefore due_to
    nicht kein* nie ohne statt sondern nur weil damit daher deshalb
    nunca sin sino solo sólo porque
    pas jamais sans seulement car afin
    não sem apenas
    ない せず ではなく だけ ため ので から
    不 没 只 因为 由于 所以
";

/// Words for something that does not work: the work that was asked for is a repair.
const FAULT: &str = "
    fix* bug bugs broken breaks fail* error errors wrong crash* issue panic regress* lack lacks missing
    outdated incorrect* inaccurate malicious leak leaks expos* mismatch* silently
    fehler* fehlt veraltet kaputt falsch behebe*
    repar* falla* fallo* arregl*
    erreur* corrig*
    erro erros falha* quebrad* consert*
    エラー バグ 失敗 直し 修正 不具合
    错误 修复 失败 报错 崩溃
";

/// Words of a guess or a proposal, which is not a fact.
const SUPPOSING: &str = "
    should could would might presumably probably perhaps maybe
    sollte* könnte* würde* vielleicht vermutlich wahrscheinlich
    debería* podría* quizás probablemente
    devrait pourrait peut-être probablement
    deveria* poderia* talvez provavelmente
    かもしれ べき たぶん
    应该 可能 也许
";

/// Verbs that begin the headline of a refactoring: removing, renaming, moving, splitting.
const RESHAPING: &str = "
    remov* renam* refactor* mov* simplif* extract* clean* split* delet* drop*
    entfern* umbenenn* vereinfach* verschieb*
    elimina* renombra* simplific* mueve*
    supprim* renomm* déplac*
    renomei* exclu*
    削除 移動
    删除 移除 重命名 重构
";

/// Words that open a request and say nothing of what is wanted.
const OPENERS: &str = "
    ok okay hm hmm* yes yeah yep no please hey hi so and but then also maybe great thanks thank_you cool
    question alright well btw ah oh can_you could_you would_you will_you can_we could_we let's lets
    we_should we_need_to we_want_to we_have_to i'd_like_to i'd_like_you_to i_would_like_to
    i_would_like_you_to i_want_to i_want_you_to i_need_you_to i_want i_need i_think_that i_think
    bitte und aber ja nein gut kannst_du könntest_du können_wir wir_sollten wir_müssen ich_möchte ich_will
    por_favor sí bueno vale puedes podemos podrías quiero
    oui s'il_te_plaît peux-tu pouvez-vous je_veux
    sim você_pode vamos
    はい では
    好的 好
";

/// Function words before which a title that is too long can be cut.
const CUT: &str = "
    and or but which that who because so since when where while if as to for with without from by in on at
    of into via per before after using
    und oder aber die der das weil dass wenn da um zu für mit ohne von durch an auf bei
    y o pero que porque cuando si para con sin de por en
    et ou mais qui parce car pour avec sans dans par sur
    e mas quando se com sem em
";

/// Words that begin a subordinate clause: a title that begins with one lacks its main clause.
const SUBORDINATORS: &str = "
    if since when while because although though rather after before once by to as for unless
    wenn weil da falls obwohl während nachdem um
    si cuando como porque aunque
    quand comme parce afin pour
    quando se embora
";

/// Words that report the state of the work (English): a title made only of them says nothing
/// about what was done.
const STATUS: &str = "
    test tests pass* lint* clean build builds green suite full typech* type check* commit* push pushed
    fixed fixes applied change* made summary complete* update updated added cover* done code look* found
    issue* everything final report result*
";

/// Whether a sentence, after any signs, begins with a word that needs the sentence before it.
pub fn leans_back(text: &str) -> bool {
    begins_with(text, POINTING) || begins_with(text, CONNECTING)
}

/// How many words point outside of the text, at most `max`.
pub fn pointing_words(text: &str, max: usize) -> usize {
    mentions(text, POINTING).take(max).count()
}

pub fn is_in_first_person(text: &str) -> bool {
    begins_with(text, FIRST_PERSON)
}

/// A report without its first person: "moved the parser" of "I've moved the parser". Only if the
/// sentence is in a past tense: "I have", "I've", or a verb in -ed. Other sentences are returned as
/// they are.
pub fn without_reporter(text: &str) -> &str {
    let after = |entry| Some((entry, after_entry(text, entry)?));
    let found = entries(FIRST_PERSON).filter_map(after);
    let Some((entry, rest)) = found.min_by_key(|(_, rest)| rest.len()) else {
        return text;
    };
    let rest = rest.trim_start();
    let is_completed = entry.contains('_') || entry.ends_with("'ve") || entry.ends_with("'ai");
    if is_completed || begins_with_deed(rest) {
        rest
    } else {
        text
    }
}

/// Whether a sentence begins with an English verb in the past tense: "Added …", "Renamed …".
pub fn begins_with_deed(text: &str) -> bool {
    let first = text.split(|it: char| !it.is_alphabetic()).next();
    first.is_some_and(|it| it.len() > 4 && it.ends_with("ed"))
}

/// Whether a sentence turns to the user instead of reporting something.
pub fn addresses_the_user(text: &str) -> bool {
    begins_with(text, ADDRESS) || mentions(text, ADDRESS).any(|entry| entry.contains('_'))
}

/// Whether the user is spoken to anywhere in a text.
pub fn mentions_the_user(text: &str) -> bool {
    mentions(text, ADDRESS).next().is_some()
}

pub fn contrasts(text: &str) -> bool {
    mentions(text, CONTRAST).next().is_some()
}

pub fn speaks_of_fault(text: &str) -> bool {
    mentions(text, FAULT).next().is_some()
}

pub fn supposes(text: &str) -> bool {
    mentions(text, SUPPOSING).next().is_some()
}

pub fn begins_with_reshaping(text: &str) -> bool {
    begins_with(text, RESHAPING)
}

pub fn begins_subordinate(text: &str) -> bool {
    begins_with(text, SUBORDINATORS)
}

/// A request without the words that open it ("ok, can you please …").
pub fn without_openers(text: &str) -> &str {
    let is_between = |it: char| it.is_whitespace() || ",.:!，。、！—–-".contains(it);
    let opener = |text| entries(OPENERS).filter_map(move |entry| after_entry(text, entry));
    let mut text = text;
    while let Some(rest) = opener(text).min_by_key(|rest| rest.len()) {
        text = rest.trim_start_matches(is_between);
    }
    text
}

/// Whether a title can be cut before this word.
pub fn is_cut_word(word: &str) -> bool {
    entries(CUT).any(|entry| entry == word.to_lowercase())
}

pub fn is_stop_word(word: &str) -> bool {
    let word = word.to_lowercase();
    let is_filler = matches!(&*word, "use" | "used" | "using" | "new" | "via" | "per");
    is_filler || text::is_stop_word(&word) || text::is_function_word(&word)
}

/// How many words say what a title is about: no stop words, no words of state.
pub fn telling_words(title: &str) -> usize {
    let words = title.split(|it: char| !it.is_alphabetic());
    let is_status = |word: &str| entries(STATUS).any(|entry| after_entry(word, entry) == Some(""));
    words
        .filter(|word| word.chars().count() >= 3 && !is_stop_word(word) && !is_status(word))
        .count()
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split_ascii_whitespace()
}

/// Whether a heading or lead-in announces what is still to be done.
pub fn announces_work(label: &str) -> bool {
    words(label) <= 8 && mentions(label, TO_DO).next().is_some()
}

/// Whether a sentence only reports that the work is in a good state: "All 42 tests pass."
pub fn is_status(text: &str) -> bool {
    let letters = text.chars().filter(|it| it.is_alphabetic()).count();
    letters >= 6 && telling_words(text) < 2 && !has_cjk(text)
}

/// The longer words of a text, in lower case, without stop words.
pub fn nouns(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|it: char| !is_word(it));
    let words = words.filter(|it| it.chars().count() >= 4 && it.chars().all(char::is_alphabetic));
    words.map(str::to_lowercase).filter(|it| !is_stop_word(it))
}

/// How alike two sets are: the share of all stems that both have.
pub fn likeness(a: &Stems, b: &Stems) -> f32 {
    let both = a.intersection(b).count();
    both as f32 / (a.len() + b.len() - both).max(1) as f32
}

fn begins_with(text: &str, list: &str) -> bool {
    let text = text.trim_start_matches(|it: char| !it.is_alphanumeric());
    entries(list).any(|entry| after_entry(text, entry).is_some())
}

/// The entries of a list that the text contains, in order of the text.
fn mentions<'a>(text: &'a str, list: &'a str) -> impl Iterator<Item = &'a str> {
    let mut before = ' ';
    let starts = text.char_indices().filter(move |&(_, here)| {
        let is_apart = !is_word(before) || is_unspaced(before) || is_unspaced(here);
        let is_start = here.is_alphanumeric() && is_apart;
        before = here;
        is_start
    });
    starts.flat_map(move |(at, _)| {
        let rest = &text[at..];
        entries(list).filter(move |entry| after_entry(rest, entry).is_some())
    })
}

/// The text after an entry of a list, if the text begins with it and the word ends there.
fn after_entry<'a>(text: &'a str, entry: &str) -> Option<&'a str> {
    let mut rest = text;
    for expected in entry.chars() {
        let found = rest.chars().next();
        match expected {
            '*' => rest = rest.trim_start_matches(is_word),
            '_' if found.is_some_and(char::is_whitespace) => rest = rest.trim_start(),
            _ if found.is_some_and(|it| is_same_letter(it, expected)) => {
                rest = &rest[found.map_or(0, char::len_utf8)..];
            }
            _ => return None,
        }
    }
    let goes_on = rest.starts_with(|it| (is_word(it) || "'’".contains(it)) && !is_unspaced(it));
    (!goes_on || entry.ends_with(is_unspaced)).then_some(rest)
}

fn is_same_letter(found: char, expected: char) -> bool {
    let found = if found == '’' { '\'' } else { found };
    found == expected || found.to_lowercase().eq(std::iter::once(expected))
}

/// How many words a text has. Two characters of Japanese or Chinese count as one.
pub fn words(text: &str) -> usize {
    let spaced = text.split(|it: char| it.is_whitespace() || is_unspaced(it));
    let spaced = spaced.filter(|it| it.contains(char::is_alphanumeric));
    let unspaced = text.chars().filter(|it| is_unspaced(*it));
    spaced.count() + unspaced.count().div_ceil(2)
}

/// The subjects of a text, for comparison: the first six letters of its words and of the parts of
/// its names, and the pairs of characters where words are not separated.
pub fn stems(text: &str) -> Stems {
    let mut stems = Stems::new();
    let characters: Vec<char> = text.chars().collect();
    let same_word = |before: &char, here: &char| {
        before.is_alphanumeric()
            && here.is_alphanumeric()
            && is_unspaced(*before) == is_unspaced(*here)
            && !(before.is_lowercase() && here.is_uppercase())
    };
    for run in characters.chunk_by(same_word) {
        if is_unspaced(run[0]) {
            stems.extend(run.windows(2).map(String::from_iter));
        } else if run.len() >= 3 {
            let word: String = run.iter().flat_map(|it| it.to_lowercase()).collect();
            if !is_stop_word(&word) {
                stems.insert(word.chars().take(6).collect());
            }
        }
    }
    stems
}

/// The share of the stems of `a` that `b` has too.
pub fn overlap(a: &Stems, b: &Stems) -> f32 {
    a.intersection(b).count() as f32 / a.len().max(1) as f32
}

/// The names and figures in a text that tie it to this project: code spans, identifiers, paths,
/// flags, numbers, acronyms, quoted strings, proper names.
pub fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    let mut plain = String::new();
    for (is_code, piece) in code_spans(text) {
        if is_code {
            anchors.insert(piece.trim_matches('`').trim().to_owned());
            plain.push(' ');
        } else {
            plain.push_str(piece);
        }
    }
    let quoted = plain.split(['"', '“', '”', '„', '«', '»', '「', '」']);
    let quoted = quoted.skip(1).step_by(2);
    let is_short = |it: &&str| (3..=40).contains(&it.chars().take(41).count());
    anchors.extend(quoted.filter(is_short).map(str::to_owned));
    let is_part = |it: char| is_word(it) && !is_unspaced(it) || "./-#%@".contains(it);
    let mut start = 0;
    for token in plain.split_inclusive(|it| !is_part(it)) {
        let before = plain[..start].strip_suffix(' ').unwrap_or_default();
        start += token.len();
        let name = token.trim_end_matches(|it| !is_part(it) || ".-/".contains(it));
        let name = name.trim_start_matches('.');
        let inside_sentence = before.ends_with(|it: char| it.is_lowercase() || ",)".contains(it));
        if is_name(name) || inside_sentence && is_capitalised(name) {
            anchors.insert(name.to_owned());
        }
    }
    anchors.remove("");
    anchors
}

/// Whether a label has a name from code: a code span, or a word with the form of one.
pub fn names_code(label: &str) -> bool {
    let is_part = |it: char| is_word(it) && !is_unspaced(it) || "./-#%@".contains(it);
    label.contains('`') || label.split(|it| !is_part(it)).any(is_name)
}

/// Whether a token has the shape of a name or figure rather than of a plain word: a flag, a
/// number, capitals, `camelCase`, `a_b`, `a/b` or `name.ext`.
fn is_name(token: &str) -> bool {
    let is_flag = token.starts_with('-') && token.ends_with(is_word);
    let is_number = |part: &str| part.starts_with(|it: char| it.is_ascii_digit());
    let is_acronym = |part: &str| part.len() >= 2 && part.chars().all(|it| it.is_ascii_uppercase());
    let mut parts = token.split(|it: char| !is_word(it));
    let next = token.chars().skip(1);
    let mut pairs = token.chars().zip(next);
    is_flag
        || parts.any(|part| is_number(part) || is_acronym(part))
        || pairs.any(|(before, here)| before.is_lowercase() && here.is_uppercase())
        || token.trim_matches(['_', '/']).contains(['_', '/'])
        || is_file_name(token) && token.chars().nth(1) != Some('.')
}

/// Whether a token is `name.ext`.
pub fn is_file_name(token: &str) -> bool {
    token.rsplit_once('.').is_some_and(|(name, extension)| {
        name.ends_with(is_word)
            && (1..=5).contains(&extension.len())
            && extension.chars().all(|it| it.is_ascii_alphanumeric())
    })
}

fn is_capitalised(token: &str) -> bool {
    let mut characters = token.chars();
    characters.next().is_some_and(char::is_uppercase)
        && characters.next().is_some_and(char::is_lowercase)
        && characters.next().is_some()
}

/// The text in pieces: code spans with their backticks (true), and what is between them (false).
/// A backtick that is never closed is an ordinary character.
pub fn code_spans(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let open = rest.find('`');
        let close = open.and_then(|open| rest[open + 1..].find('`').map(|at| open + at + 2));
        let (is_code, end) = match (open, close) {
            (Some(0), Some(close)) => (true, close),
            (Some(open), Some(_)) => (false, open),
            _ => (false, rest.len()),
        };
        let piece;
        (piece, rest) = rest.split_at(end);
        (!piece.is_empty()).then_some((is_code, piece))
    })
}

pub fn has_cjk(text: &str) -> bool {
    text.contains(is_unspaced)
}

/// Whether a character belongs to a writing system without spaces between words.
pub fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
