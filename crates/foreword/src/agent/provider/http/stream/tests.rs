use super::*;
use crate::agent::judge::tests::answers;

fn piece(text: &str) -> String {
    let piece = json!({"model": "m", "choices": [{"delta": {"content": text}}]});
    format!("data: {piece}\n\n")
}

#[test]
fn an_answer_in_pieces_is_the_same_as_a_whole_one_wherever_it_is_cut() {
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let stream = format!(
        ": hello\n\n{}{}data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n",
        piece("Größe "),
        piece("7")
    );
    for at in 0..stream.len() {
        let mut fold = Fold::default();
        assert!(!fold.take(&stream.as_bytes()[..at]) || at > stream.len() - 3);
        assert!(fold.take(&stream.as_bytes()[at..]));
        let expected = json!({
            "model": "m",
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
            "choices": [{"message": {"content": "Größe 7", "refusal": null}, "finish_reason": "stop"}],
        });
        assert_eq!(fold.reply(400), expected);
    }
}

#[test]
fn an_answer_that_goes_round_in_circles_is_stopped_and_a_good_one_is_not() {
    let mut stopped = Vec::new();
    for answer in answers("plain") {
        let mut fold = Fold::default();
        let words = answer.split_inclusive(' ');
        let taken = words.take_while(|word| !fold.take(piece(word).as_bytes()));
        let taken = taken.map(str::len).sum::<usize>();
        if fold.finish.as_deref() == Some(REPEATS_ITSELF) {
            stopped.push(taken * 100 / answer.len());
        }
    }
    // One of six copies the prompt's example; how much of the others came before they were stopped,
    // in hundredths.
    assert_eq!(stopped, [28, 39, 37, 19, 27]);
    let good = include_str!("../../../prompts/init.md");
    let mut fold = Fold::default();
    for word in good.split_inclusive(' ') {
        assert!(!fold.take(piece(word).as_bytes()), "{}", fold.text);
    }
    assert_eq!(fold.text, good);
}

#[test]
fn without_a_count_of_the_server_tokens_are_estimated() {
    let mut fold = Fold::default();
    fold.take(piece("half of").as_bytes());
    assert!(!fold.is_whole());
    assert!(fold.stop(TOOK_TOO_LONG));
    let reply = fold.reply(400);
    assert_eq!(
        reply["usage"],
        json!({"prompt_tokens": 100, "completion_tokens": 1})
    );
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
}

#[test]
fn the_longest_answer_fits_the_pace() {
    let time = Duration::from_secs(60);
    let cases = [
        (None, 4096),
        (Some(11.5), 690),
        (Some(500.0), 4096),
        (Some(0.5), 256),
    ];
    for (pace, expected) in cases {
        assert_eq!(fitting(4096, pace, time), expected, "{pace:?}");
    }
}
