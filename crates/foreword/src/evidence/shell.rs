//! Parts a shell line into its commands, as a shell would: quotes, here-documents, pipes and
//! redirections are understood, and nothing is expanded. `runs` reads what the commands mean.

use std::path::PathBuf;

/// One command of a shell line, without the assignments, keywords and helpers in front of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    pub words: Vec<String>,
    /// The folder in which it ran. The parser does not know it.
    pub folder: PathBuf,
    /// The words as they were typed, with their quotes.
    pub text: String,
    /// How the next command depends on this one.
    pub joint: Joint,
    /// Files that its standard output goes to.
    pub writes: Vec<String>,
    /// The here-document that it reads.
    pub document: Option<String>,
}

/// The joint between a command and the next one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// The next one runs in any case.
    #[default]
    Then,
    And,
    Or,
    Pipe,
}

const JOINTS: [(&str, Joint); 4] = [
    ("&&", Joint::And),
    ("||", Joint::Or),
    ("|&", Joint::Pipe),
    ("|", Joint::Pipe),
];

/// Keywords of the shell and helpers in front of a command.
const BEFORE_COMMAND: &str =
    "do then else if elif while until ! { } done fi sudo time nohup env command exec";

/// The commands of a typed line.
pub fn commands(typed: &str) -> Vec<ShellCommand> {
    let mut parser = Parser {
        line: typed.to_owned(),
        ..Parser::default()
    };
    parser.parse();
    let mut commands = Vec::new();
    for command in parser.commands {
        match &command.words[..] {
            // `bash -c 'a && b'` is what it runs.
            [shell, option, line, ..]
                if matches!(shell.as_str(), "bash" | "sh" | "zsh")
                    && option.starts_with('-')
                    && option.ends_with('c') =>
            {
                commands.extend(self::commands(line));
                if let Some(last) = commands.last_mut() {
                    last.joint = command.joint;
                }
            }
            _ => commands.push(command),
        }
    }
    commands
}

#[derive(Default)]
struct Parser {
    /// The typed line, without the here-documents that were read.
    line: String,
    at: usize,
    commands: Vec<ShellCommand>,
    command: ShellCommand,
    /// The word that is being read, without its quotes; none between words.
    word: Option<String>,
    /// The place in the line where the word begins.
    word_from: usize,
}

impl Parser {
    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, expected: &str) -> bool {
        let is_there = self.rest().starts_with(expected);
        self.at += if is_there { expected.len() } else { 0 };
        is_there
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn parse(&mut self) {
        while let Some(next) = self.peek() {
            let rest = self.rest();
            let joint = JOINTS.iter().find(|(mark, _)| rest.starts_with(mark));
            if next == '#' && self.word.is_none() {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if next == '<' || next == '>' || rest.starts_with("&>") {
                self.redirection();
            } else if next == '(' && self.word.is_some() {
                self.part_of_word();
            } else if let Some((mark, joint)) = joint {
                self.end_command(*joint);
                self.at += mark.len();
            } else if ";&\n()".contains(next) {
                self.end_command(Joint::Then);
                self.next();
            } else if next.is_whitespace() {
                self.end_word();
                self.next();
            } else {
                self.part_of_word();
            }
        }
        self.end_command(Joint::Then);
    }

    /// Reads one character of a word, or all that is quoted or substituted here.
    fn part_of_word(&mut self) {
        let from = self.at;
        if self.word.is_none() {
            self.word_from = from;
        }
        match self.next() {
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            Some('`') => {
                self.push_from(from);
                self.quoted('`');
            }
            Some('$') if self.skip("(") => self.substitution(from),
            Some('(') => self.substitution(from),
            Some('\\') => {
                if self.next() != Some('\n') {
                    self.push_from(from + 1);
                }
            }
            _ => self.push_from(from),
        }
    }

    fn quoted(&mut self, quote: char) {
        self.push("");
        loop {
            let from = self.at;
            match self.next() {
                None => return,
                Some(end) if end == quote => return,
                Some('$') if quote == '"' && self.skip("(") => self.substitution(from),
                Some('\\') if quote == '"' => match self.next() {
                    Some('"' | '\\' | '$' | '`') => self.push_from(from + 1),
                    Some('\n') => {}
                    _ => self.push_from(from),
                },
                Some(_) => self.push_from(from),
            }
        }
    }

    /// Adds what was read since a place to the word.
    fn push_from(&mut self, from: usize) {
        let text = &self.line[from..self.at];
        self.word.get_or_insert_default().push_str(text);
    }

    /// `$(…)` up to its end: the text of a document that it shows (`$(cat <<EOF …)`), else as it
    /// was typed.
    fn substitution(&mut self, from: usize) {
        let (mut depth, mut quote, mut document) = (1, None, None);
        while depth > 0
            && let Some(next) = self.next()
        {
            match (quote, next) {
                (Some(open), _) => quote = Some(open).filter(|it| *it != next),
                (None, '\'' | '"') => quote = Some(next),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                (None, '<') if self.skip("<") => document = self.document().or(document),
                _ => {}
            }
        }
        match document {
            Some(document) => self.push(&document),
            None => self.push_from(from),
        }
    }

    /// Takes a here-document out of the lines below; `<<` was read. None if its end is missing.
    fn document(&mut self) -> Option<String> {
        let opening = self.rest().trim_start_matches(['-', ' ', '\'', '"', '\\']);
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        let name = opening.split(|it| !is_name(it)).next()?;
        let behind = opening[name.len()..].trim_start_matches(['\'', '"']);
        let behind = self.line.len() - behind.len();
        let first_line = behind + self.line[behind..].find('\n')?;
        let mut end = first_line + 1;
        let mut lines = self.line[end..].split('\n');
        let last = lines.find(|it| {
            let is_last = it.trim() == name;
            end += if is_last { 0 } else { it.len() + 1 };
            is_last
        });
        let last = last.filter(|_| !name.is_empty())?.len();
        let document = self.line[first_line + 1..end].trim_end_matches('\n');
        let document = document.to_owned();
        self.line.replace_range(first_line..end + last, "");
        self.at = behind;
        Some(document)
    }

    /// `> a`, `2>&1`, `&>> log`, `< a`, a here-document, `<<< text`, `<(command)`.
    fn redirection(&mut self) {
        let from = self.at;
        if self.skip("<(") || self.skip(">(") {
            self.end_word();
            self.word_from = from;
            self.substitution(from);
            return;
        }
        // The number of a stream stands right before the arrow.
        let is_number = |it: &mut String| it.chars().all(|it| it.is_ascii_digit());
        let stream = self.word.take_if(is_number);
        self.end_word();
        if self.skip("<<<") || !self.skip("<<") && self.skip("<") {
            self.target();
        } else if self.line[from..self.at].starts_with('<') {
            self.command.document = self.document();
        } else {
            self.skip("&");
            let _ = self.skip(">>") || self.skip(">|") || self.skip(">");
            let is_file = !self.skip("&") && stream.is_none_or(|it| it == "1");
            let file = self.target().filter(|it| !it.starts_with("/dev/"));
            self.command.writes.extend(file.filter(|_| is_file));
        }
    }

    /// The word that a redirection names. It is no word of the command.
    fn target(&mut self) -> Option<String> {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        let ends = |it: char| it.is_whitespace() || ";&|<>()".contains(it);
        while self.peek().is_some_and(|it| !ends(it)) {
            self.part_of_word();
        }
        self.word.take()
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let assigned = word.split_once('=').map_or("", |(name, _)| name);
        let is_assignment = !assigned.is_empty() && assigned.chars().all(is_name);
        let command = &mut self.command;
        if !command.words.is_empty() {
            command.text.push(' ');
        } else if is_assignment || BEFORE_COMMAND.split(' ').any(|it| it == word) {
            return;
        }
        command.text += &self.line[self.word_from..self.at];
        command.words.push(word);
    }

    fn end_command(&mut self, joint: Joint) {
        self.end_word();
        let mut command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            command.joint = joint;
            self.commands.push(command);
        } else if let Some(last) = self.commands.last_mut().filter(|_| joint != Joint::Then) {
            // `(a && b) | c`: the joint of the group is that of its last command.
            last.joint = joint;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &str) -> Vec<(String, Joint)> {
        let commands = commands(typed).into_iter();
        commands.map(|it| (it.words.join("|"), it.joint)).collect()
    }

    #[test]
    fn a_line_is_parted_as_a_shell_does() {
        for (typed, expected) in [
            (
                "cd app && RUST_LOG=1 cargo test -q 2>&1 | tail -5",
                vec![
                    ("cd|app", Joint::And),
                    ("cargo|test|-q", Joint::Pipe),
                    ("tail|-5", Joint::Then),
                ],
            ),
            (
                "echo 'a && b; c' \"x \\\" y\" || true # && rm x",
                vec![("echo|a && b; c|x \" y", Joint::Or), ("true", Joint::Then)],
            ),
            (
                "(cd a; make 2>/dev/null) && ls > /tmp/x; sleep 1 & wait",
                vec![
                    ("cd|a", Joint::Then),
                    ("make", Joint::And),
                    ("ls", Joint::Then),
                    ("sleep|1", Joint::Then),
                    ("wait", Joint::Then),
                ],
            ),
            (
                "for f in a b; do pytest \"$f\"; done",
                vec![("for|f|in|a|b", Joint::Then), ("pytest|$f", Joint::Then)],
            ),
            (
                "bash -lc 'npm ci && npm test' | tee log",
                vec![
                    ("npm|ci", Joint::And),
                    ("npm|test", Joint::Pipe),
                    ("tee|log", Joint::Then),
                ],
            ),
            (
                "python3 - <<'PY' | head\nimport os; x = 'a && b'\nPY\ngit status",
                vec![
                    ("python3|-", Joint::Pipe),
                    ("head", Joint::Then),
                    ("git|status", Joint::Then),
                ],
            ),
            (
                "git commit -m \"$(cat <<'EOF'\nIt's a; b\n\nMore (1).\nEOF\n)\" && git push",
                vec![
                    ("git|commit|-m|It's a; b\n\nMore (1).", Joint::And),
                    ("git|push", Joint::Then),
                ],
            ),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(it, joint)| (it.to_owned(), joint))
                .collect();
            assert_eq!(words(typed), expected, "{typed}");
        }
    }

    #[test]
    fn redirections_and_documents_are_no_words() {
        let command = |typed: &str| commands(typed).remove(0);
        assert_eq!(
            command("cat > src/a.rs <<-EOF 2>&1\n\tone\n\ttwo\n\tEOF"),
            ShellCommand {
                words: vec!["cat".to_owned()],
                folder: PathBuf::new(),
                text: "cat".to_owned(),
                writes: vec!["src/a.rs".to_owned()],
                document: Some("\tone\n\ttwo".to_owned()),
                joint: Joint::Then,
            }
        );
        assert_eq!(
            command("printf '%s\\n' x >>\"a b.txt\"").writes,
            ["a b.txt"]
        );
        assert_eq!(command("make 2>err.log &>/dev/null").writes, [""; 0]);
        assert_eq!(command("sed -n '1,5p' a").text, "sed -n '1,5p' a");
        assert_eq!(command("wc <<< \"a << b\"").words, ["wc"]);
        assert_eq!(command("echo \"1 << 2\"").words, ["echo", "1 << 2"]);
    }
}
