//! What is known of programs: which only look around, which check something, and what they are told
//! to do. `runs` and `output` ask here.

/// The kind of a program, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only prepares others or prints something.
    Silent,
    /// It looks around, moves files or fetches. Its failure says nothing about the project, and its
    /// arguments are no names of checks.
    Looking,
    Interpreter,
    Check,
    Other,
}

const KINDS: [(Kind, &str); 4] = [
    (
        Kind::Silent,
        "cd pushd popd export set source . echo printf true sleep wait : unset for case exit trap \
         pwd",
    ),
    (
        Kind::Looking,
        "ls cat grep rg find head tail which test [ [[ stat wc file diff ps kill curl wget ping \
         ssh man mkdir rm cp mv touch sed awk tree printenv git gh glab jq less tee xargs sort \
         chmod ln open vim code",
    ),
    (
        Kind::Interpreter,
        "python python3 node ruby perl php bash sh zsh tsx deno bun",
    ),
    (
        Kind::Check,
        "pytest tox nox jest vitest mocha ava eslint biome mypy pyright ruff flake8 pylint rspec \
         rubocop phpunit pest phpstan psalm ctest playwright cypress gradle gradlew mvn mvnw \
         shellcheck tsc",
    ),
];

/// Parts of the names of tasks and scripts that check something.
const CHECK_NAMES: &str = "test tests spec specs e2e unittest pytest jest vitest mocha rspec \
     phpunit nextest playwright lint check checks typecheck build compile verify validate clippy \
     vet tsc";

/// The program and its arguments without what only starts it: `npx`, `poetry run`, `python -m`.
pub fn program(words: &[String]) -> (&str, &[String]) {
    let at = |number: usize| words.get(number).map_or("", String::as_str);
    let name = at(0).rsplit('/').next().unwrap_or_default();
    let started = match (name, at(1), at(2)) {
        ("npx" | "bunx" | "uvx" | "dotenv" | "nice", ..) => 1,
        ("timeout", ..) | ("python" | "python3", "-m", _) | (_, "exec" | "dlx", _) => 2,
        ("uv" | "poetry" | "pipenv" | "pdm" | "hatch", "run", _) => 2,
        ("docker", "compose", "exec" | "run") => 3,
        _ => 0,
    };
    let rest = words.iter().skip(started);
    let options = rest.take_while(|it| it.starts_with('-')).count();
    // The container follows.
    let from = started + options + usize::from(name == "docker");
    match words.get(from..) {
        Some(rest) if started > 0 && !rest.is_empty() => program(rest),
        _ => (name, words.get(1..).unwrap_or_default()),
    }
}

pub fn kind(words: &[String]) -> Kind {
    let (name, _) = program(words);
    let has = |names: &str| names.split(' ').any(|it| it == name);
    let found = KINDS.iter().find(|(_, names)| has(names));
    found.map_or(Kind::Other, |(kind, _)| *kind)
}

/// Whether a command is a test, a lint, a build or a type check.
pub fn is_check(words: &[String]) -> bool {
    let (name, arguments) = program(words);
    let has_check_name = || std::iter::once(name).chain(tasks(words)).any(is_check_name);
    match kind(words) {
        Kind::Silent | Kind::Looking => false,
        Kind::Check => true,
        _ => {
            arguments.iter().any(|it| it == "--check" || it == "--test")
                || name == "make" && arguments.is_empty()
                || has_check_name()
        }
    }
}

/// The words that name what a program does: `test:unit` of `npm run test:unit`. A path is such a
/// name only as the script of an interpreter, and code that is typed into the line is none.
pub fn tasks(words: &[String]) -> impl Iterator<Item = &str> {
    let (_, arguments) = program(words);
    let is_name = |it: &&str| {
        it.chars()
            .all(|it| it.is_alphanumeric() || "_-./:@".contains(it))
    };
    let names = arguments.iter().map(String::as_str);
    let names = names.filter(|it| !it.starts_with('-') && *it != "run");
    let may_be_path = kind(words) == Kind::Interpreter;
    let most = if may_be_path { 1 } else { 2 };
    let names = names.take(most).filter(is_name);
    names.filter(move |it| may_be_path || !it.contains('/'))
}

fn is_check_name(name: &str) -> bool {
    let mut parts = name.split(|it: char| !it.is_alphanumeric());
    parts.any(|part| CHECK_NAMES.split(' ').any(|it| it == part))
}
