//! Parts a shell line into its commands, as a shell would: quotes, here-documents, pipes and
//! redirections are understood, and nothing is expanded. `tools` reads what the commands mean.

/// One command of a shell line, without the assignments, keywords and helpers in front of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    pub words: Vec<String>,
    /// The words as they were typed, with their quotes.
    pub text: String,
    /// How the next command depends on this one.
    pub joint: Joint,
    /// Files that its standard output goes to.
    pub writes: Vec<String>,
    /// The here-document that it reads.
    pub document: Option<String>,
}

/// What stands between a command and the next one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// `;`, `&` or a new line: the next one runs in any case.
    #[default]
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
}

/// The commands of a typed line.
pub fn commands(typed: &str) -> Vec<ShellCommand> {
    let (line, documents) = without_documents(typed);
    let mut parser = Parser {
        rest: &line,
        documents: &documents,
        commands: Vec::new(),
        command: ShellCommand::default(),
        word: None,
        raw: String::new(),
    };
    parser.parse();
    let mut commands = Vec::new();
    for command in parser.commands {
        match inner(&command.words) {
            // `bash -c 'a && b'` is what it runs.
            Some(inner) => {
                let from = commands.len();
                commands.extend(self::commands(inner));
                if let Some(last) = commands[from..].last_mut() {
                    last.joint = command.joint;
                }
            }
            None => commands.push(command),
        }
    }
    commands
}

fn inner(words: &[String]) -> Option<&str> {
    match words {
        [shell, option, line, ..]
            if matches!(shell.as_str(), "bash" | "sh" | "zsh")
                && option.starts_with('-')
                && option.ends_with('c') =>
        {
            Some(line)
        }
        _ => None,
    }
}

/// Stands for a here-document in a line; its number follows.
const DOCUMENT: char = '\u{1}';

/// Takes the here-documents out of a line: `<<'EOF'` becomes `<<` and a mark. A document whose end
/// is missing stays as it is.
fn without_documents(typed: &str) -> (String, Vec<String>) {
    let mut line = String::with_capacity(typed.len());
    let mut documents = Vec::new();
    let mut rest = typed;
    while let Some(at) = rest.find("<<") {
        let (before, after) = rest.split_at(at);
        line += before;
        let after = &after[2..];
        rest = after;
        line += "<<";
        if let Some(more) = after.strip_prefix('<') {
            line.push('<');
            rest = more;
            continue;
        }
        let opening = after
            .strip_prefix('-')
            .unwrap_or(after)
            .trim_start_matches(' ');
        let opening = opening.trim_start_matches(['\'', '"', '\\']);
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        let name = opening.split(|it| !is_name(it)).next().unwrap_or_default();
        let behind = &opening[name.len()..];
        let behind = behind.strip_prefix(['\'', '"']).unwrap_or(behind);
        // The document begins on the next line that no earlier document of this line takes.
        let Some((same_line, below)) = behind.split_once('\n') else {
            continue;
        };
        let end = lines_with_places(below).find(|(_, it)| it.trim() == name);
        if let (Some((place, last)), false) = (end, name.is_empty()) {
            line.push(DOCUMENT);
            line += &documents.len().to_string();
            line.push(' ');
            documents.push(below[..place].trim_end_matches('\n').to_owned());
            line += same_line;
            rest = &below[place + last.len()..];
        }
    }
    line += rest;
    (line, documents)
}

fn lines_with_places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').scan(0, |place, line| {
        let at = *place;
        *place += line.len() + 1;
        Some((at, line))
    })
}

struct Parser<'a> {
    rest: &'a str,
    documents: &'a [String],
    commands: Vec<ShellCommand>,
    command: ShellCommand,
    /// The word that is being read, without its quotes; none between words.
    word: Option<String>,
    /// The same with its quotes.
    raw: String,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn skip(&mut self, expected: &str) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
        self.raw.push(character);
    }

    fn parse(&mut self) {
        while let Some(character) = self.next() {
            match character {
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '`' => {
                    self.push('`');
                    self.copy_until('`');
                }
                '$' if self.skip("(") => self.substitution("$("),
                '\\' if self.skip("\n") => {}
                '\\' => {
                    self.raw.push('\\');
                    if let Some(escaped) = self.next() {
                        self.push(escaped);
                    }
                }
                '&' if self.skip("&") => self.end_command(Joint::And),
                '&' if self.rest.starts_with('>') => {}
                '|' if self.skip("|") => self.end_command(Joint::Or),
                '|' => {
                    self.skip("&");
                    self.end_command(Joint::Pipe);
                }
                '(' if self.word.is_some() => self.substitution("("),
                ';' | '&' | '\n' | '(' | ')' => self.end_command(Joint::Then),
                '#' if self.word.is_none() => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                '>' => self.output_to(),
                '<' => self.input_from(),
                space if space.is_whitespace() => self.end_word(),
                other => self.push(other),
            }
        }
        self.end_command(Joint::Then);
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_default();
        self.raw.push('\'');
        self.copy_until('\'');
    }

    fn copy_until(&mut self, end: char) {
        while let Some(character) = self.next() {
            if character == end {
                self.raw.push(end);
                return;
            }
            self.push(character);
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        self.raw.push('"');
        while let Some(character) = self.next() {
            match character {
                '"' => break,
                '$' if self.skip("(") => self.substitution("$("),
                '\\' => {
                    self.raw.push('\\');
                    match self.next() {
                        Some(it @ ('"' | '\\' | '$' | '`')) => self.push(it),
                        Some('\n') | None => {}
                        Some(other) => {
                            self.word.get_or_insert_default().push('\\');
                            self.push(other);
                        }
                    }
                }
                other => self.push(other),
            }
        }
        self.raw.push('"');
    }

    /// `$(…)`: the text of a document that it shows (`$(cat <<EOF …)`), else as it was typed.
    fn substitution(&mut self, opening: &str) {
        let mut depth = 1;
        let mut quote = None;
        let end = self.rest.char_indices().find(|&(_, it)| {
            match (quote, it) {
                (Some(open), _) if it == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(it),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let end = end.map_or(self.rest.len(), |(at, _)| at);
        let inside = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        let document = inside
            .split_once(DOCUMENT)
            .and_then(|(_, it)| self.document(it));
        let word = self.word.get_or_insert_default();
        match document {
            Some(document) => word.push_str(document),
            None => *word += &format!("{opening}{inside})"),
        }
        self.raw += "$(…)";
    }

    /// The document whose number this text begins with.
    fn document(&self, number: &str) -> Option<&'a str> {
        let number = number.split(' ').next()?;
        let document = self.documents.get(number.parse::<usize>().ok()?)?;
        Some(document)
    }

    /// A redirection of the output: `> a`, `2>&1`, `&>> log`.
    fn output_to(&mut self) {
        // The number of a stream stands right before the arrow.
        let stream = self
            .word
            .take_if(|it| it.chars().all(|it| it.is_ascii_digit()));
        if stream.is_some() {
            self.raw.clear();
        }
        self.end_word();
        let _ = self.skip(">") || self.skip("|");
        if self.skip("&") {
            self.target();
        } else if self.rest.starts_with('(') {
            self.next();
            self.substitution("(");
            self.end_word();
        } else if let Some(file) = self.target()
            && stream.is_none_or(|it| it == "1")
            && !file.starts_with("/dev/")
        {
            self.command.writes.push(file);
        }
    }

    /// A redirection of the input: a here-document, `<<< text`, `< file`, `<(command)`.
    fn input_from(&mut self) {
        if self.rest.starts_with('(') {
            self.next();
            self.substitution("<(");
            return;
        }
        self.end_word();
        let is_document = self.skip("<") && !self.skip("<");
        let target = self.target().unwrap_or_default();
        if is_document && let Some(number) = target.strip_prefix(DOCUMENT) {
            self.command.document = self.document(number).map(str::to_owned);
        }
    }

    /// The word that a redirection names. It is no word of the command.
    fn target(&mut self) -> Option<String> {
        let words = self.command.words.len();
        let text = self.command.text.len();
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        while let Some(next) = self.rest.chars().next() {
            match next {
                _ if next.is_whitespace() || ";&|<>()".contains(next) => break,
                '\'' => {
                    self.next();
                    self.single_quoted();
                }
                '"' => {
                    self.next();
                    self.double_quoted();
                }
                _ => {
                    self.next();
                    self.push(next);
                }
            }
        }
        self.end_word();
        self.command.text.truncate(text);
        self.command.words.drain(words..).next()
    }

    fn end_word(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        let Some(word) = self.word.take() else {
            return;
        };
        if self.command.words.is_empty() && is_before_a_command(&word) {
            return;
        }
        if !self.command.words.is_empty() {
            self.command.text.push(' ');
        }
        self.command.text += &raw;
        self.command.words.push(word);
    }

    fn end_command(&mut self, joint: Joint) {
        self.end_word();
        let mut command = std::mem::take(&mut self.command);
        if command.words.is_empty() {
            // `(a && b) | c`: what ties the group ties its last command.
            if let Some(last) = self.commands.last_mut().filter(|_| joint != Joint::Then) {
                last.joint = joint;
            }
            return;
        }
        command.joint = joint;
        self.commands.push(command);
    }
}

/// Keywords of the shell, assignments and helpers: `do`, `RUST_LOG=1`, `sudo`.
fn is_before_a_command(word: &str) -> bool {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let assigned = word.split_once('=').map(|(name, _)| name);
    matches!(
        word,
        "do" | "then"
            | "else"
            | "if"
            | "elif"
            | "while"
            | "until"
            | "!"
            | "{"
            | "}"
            | "done"
            | "fi"
    ) || matches!(word, "sudo" | "time" | "nohup" | "env" | "command" | "exec")
        || assigned.is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
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
