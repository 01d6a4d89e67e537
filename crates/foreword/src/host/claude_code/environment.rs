//! Variables of Claude Code: those by which it finds its login, and those that restrict it to one
//! plain request when the `claude` provider runs it as a memory agent.

/// Variables that the claude CLI needs for its login and to reach its service. `*` stands for any
/// ending.
pub const LOGIN: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "ANTHROPIC_*",
    "CLAUDE_CODE_USE_*",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "DISABLE_*",
];

/// For each back end, the variable that selects it and the variables that are passed on only then.
pub const BACK_ENDS: &[(&str, &[&str])] = &[
    (
        "CLAUDE_CODE_USE_BEDROCK",
        &["AWS_*", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"],
    ),
    (
        "CLAUDE_CODE_USE_VERTEX",
        &[
            "GOOGLE_*",
            "CLOUD_ML_*",
            "VERTEX_REGION_*",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        ],
    ),
];

/// Variables that switch off everything but one plain request. Those with a comment were observed to
/// matter; the others are in the client's documentation.
pub const QUIET: &[(&str, &str)] = &[
    // An `@path` anywhere in the question had the client read that file, wherever it was,
    // and send it along; also with no tools at all.
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    // The user's own CLAUDE.md comes with `--setting-sources user`, as do their rules.
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    // The client must not retry: Foreword does so itself, later, and counts the calls.
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
    ("CLAUDE_CODE_DISABLE_REFUSAL_RETRY", "1"),
    // Otherwise the client repeats a request that failed with 400 without each beta in turn.
    ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
    // `MAX_THINKING_TOKENS` is not enough for models that decide themselves how long to think.
    ("MAX_THINKING_TOKENS", "0"),
    ("CLAUDE_CODE_DISABLE_THINKING", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
];

/// The variable that limits the tokens of an answer.
pub const ANSWER_MAX: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
