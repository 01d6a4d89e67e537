//! Checks the documents against the schema and the files that they describe.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foreword_core::queue::Queue;
use foreword_core::store::Store;
use rusqlite::Connection;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(document: &str) -> String {
    std::fs::read_to_string(root().join(document)).unwrap()
}

/// Both databases as the program creates them.
fn databases(dir: &Path) -> [(&'static str, Connection); 2] {
    drop(Queue::open(&dir.join("queue.db"), &dir.join("backups")).unwrap());
    drop(Store::open(&dir.join("memory.db"), &dir.join("backups")).unwrap());
    #[expect(
        clippy::disallowed_methods,
        reason = "a reader of the document would open them so"
    )]
    ["queue", "memory"].map(|name| {
        (
            name,
            Connection::open(dir.join(format!("{name}.db"))).unwrap(),
        )
    })
}

#[test]
fn every_query_of_the_schema_page_runs() {
    let dir = tempfile::tempdir().unwrap();
    let page = read("docs/schema.md");
    let mut queries = 0;
    for (name, database) in databases(dir.path()) {
        for block in page.split(&format!("```sql {name}\n")).skip(1) {
            let sql = block.split("```").next().unwrap();
            database
                .execute_batch(sql)
                .unwrap_or_else(|error| panic!("{error}: {sql}"));
            queries += 1;
        }
    }
    assert_eq!(queries, page.matches("```sql").count());
    assert!(queries > 5);
}

#[test]
fn the_schema_page_names_every_table_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let page = read("docs/schema.md");
    let named: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let mut present = BTreeSet::new();
    for (_, database) in databases(dir.path()) {
        let mut statement = database
            .prepare("select name from pragma_table_list where schema = 'main' and type in ('table', 'virtual')")
            .unwrap();
        let names = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        present.extend(
            names
                .map(Result::unwrap)
                .filter(|name| !name.starts_with("sqlite_")),
        );
    }
    assert_eq!(named, present);
    assert!(present.len() < 32);
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut documents: Vec<PathBuf> = ["README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY"]
        .map(|name| root().join(name).with_extension("md"))
        .into();
    let pages = root().join("docs").read_dir().unwrap();
    documents.extend(pages.map(|page| page.unwrap().path()));
    let mut paths = 0;
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            let is_path = ["crates/", "scripts/", "docs/", "bench/", "testdata/"]
                .iter()
                .any(|folder| word.starts_with(folder));
            if is_path && !word.contains([' ', '*', '<', '{']) {
                assert!(
                    root().join(word).exists(),
                    "{} names {word}, which is not there",
                    document.display()
                );
                paths += 1;
            }
        }
    }
    assert!(paths > 100);
}

#[test]
fn every_test_that_the_reliability_page_names_exists() {
    let mut sources = String::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let page = read("docs/reliability.md");
    let words = page.split('`').skip(1).step_by(2);
    let names = words.filter_map(|word| word.rsplit_once("::")?.1.strip_suffix('…'));
    let names: Vec<&str> = names.collect();
    for name in &names {
        assert!(sources.contains(&format!("fn {name}")), "no test {name}…");
    }
    assert!(names.len() > 40);
}

#[test]
fn the_architecture_stays_short() {
    assert!(read("ARCHITECTURE.md").lines().count() < 200);
}
