//! Links the program without PIE on Linux with glibc.
//!
//! A hook lives for about a millisecond, and most of that is page faults: relocating a
//! position-independent image touches hundreds of pages. A plain link takes a quarter off a
//! hook's life. What it costs is address-space randomisation of the program's own image
//! (libraries, heap and stack keep theirs); ARCHITECTURE.md says so. The static archive
//! (`scripts/dist`) brings its own flags.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let linux_gnu = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu";
    let is_static = var("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    if linux_gnu && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
