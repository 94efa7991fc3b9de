//! `cargo xtask dist [TARGET]`: builds the program and packs it with its completions, manual pages and licences. Everything
//! comes from this checkout and from crates that are cached or vendored; the same commit gives the same bytes.
//! `cargo xtask wheel`: a wheel for pip, with the program and the module `perflings` that a PyTorch training imports.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// A version of glibc after the target, as zig takes it: systems from 2018 on (RHEL 8, Debian 10, Ubuntu 20.04) run it.
const DEFAULT: &str = "x86_64-unknown-linux-gnu.2.28";
const USAGE: &str = "\
cargo xtask dist [TARGET]   a package of the program in target/dist
cargo xtask wheel           a wheel for pip in target/dist, from python/pyproject.toml (needs `pip install maturin`)

TARGET is one that this machine can run, such as x86_64-unknown-linux-gnu.2.28 (needs `pip install cargo-zigbuild`)
or aarch64-apple-darwin. Licences come from `cargo install --locked --features cli cargo-about`.";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["dist"] => dist(DEFAULT),
        ["dist", target] if !target.starts_with('-') => dist(target),
        ["wheel"] => wheel(),
        _ => bail!("{USAGE}"),
    }
}

fn dist(target: &str) -> Result<()> {
    ensure!(
        Path::new("src/main.rs").is_file(),
        "start this in the root of the checkout"
    );
    // `…-gnu.2.28`: a triple, and the glibc that zig links against.
    let (triple, glibc) = match target.split_once("gnu.") {
        Some((head, _)) => (format!("{head}gnu"), true),
        None => (target.to_owned(), false),
    };
    let out = PathBuf::from("target/dist");
    let program = build(target, &triple, glibc, &out)?;
    let (archive, folder) = names(&triple)?;
    let made = out.join("made");
    let _ = fs::remove_dir_all(&made);
    write_manuals(&program, &made)?;

    let mut files = vec![(program, String::new())];
    for page in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        files.push((page.into(), String::new()));
    }
    files.push((licences(&triple, &out)?, String::new()));
    for (from, to) in [
        (Path::new("docs"), "docs/"),
        (&made.join("completions"), "completions/"),
        (&made.join("man1"), "man1/"),
    ] {
        for entry in fs::read_dir(from)? {
            let path = entry?.path();
            // The folder `docs/notes` stays in the repository.
            if path.is_file() {
                files.push((path, to.to_owned()));
            }
        }
    }
    let packed = pack(&folder, files)?;
    fs::write(out.join(&archive), &packed)?;
    let sum: String = Sha256::digest(&packed)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let line = format!("{sum}  {archive}\n");
    fs::write(out.join(format!("{archive}.sha256")), &line)?;
    print!("{} bytes in {}\n{line}", packed.len(), out.display());
    Ok(())
}

/// Builds the wheel for this machine's system, compiled as `cargo build --release` does it.
fn wheel() -> Result<()> {
    let mut maturin = Command::new("maturin");
    maturin
        .args(["build", "--release", "--locked", "--offline", "--strip"])
        .args(["--out", "../target/dist"])
        .current_dir("python");
    done(&mut maturin, "It comes with `pip install maturin`.")
}

/// Builds the program and gives its path. No path of this machine gets into it: cargo names this checkout's files without its
/// own, so that dependencies built for one checkout serve another.
fn build(target: &str, triple: &str, glibc: bool, out: &Path) -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let folder = match std::env::var_os("PERFLINGS_DIST_TARGET") {
        Some(folder) => {
            // Another checkout's program may be there, newer than these files: cargo would take it for this one's.
            let rooms = fs::read_dir("crates")?.map(|entry| Ok(entry?.path().join("src/lib.rs")));
            let mut libraries = rooms.collect::<Result<Vec<PathBuf>>>()?;
            libraries.push(PathBuf::from("src/lib.rs"));
            for library in libraries {
                let file = fs::File::options().append(true).open(library)?;
                file.set_modified(std::time::SystemTime::now())?;
            }
            std::path::absolute(folder)?
        }
        None => here.join(out).join("build"),
    };
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
    let home = home.context("there is no home folder")?;
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.unwrap_or_else(|| Path::new(&home).join(".cargo"));
    let mut flags = OsString::new();
    for (from, to) in [(&cargo_home, "/cargo"), (&folder, "/build")] {
        for part in [
            "--remap-path-prefix".into(),
            format!("{}={to}", from.display()),
        ] {
            if !flags.is_empty() {
                flags.push("\u{1f}");
            }
            flags.push(part);
        }
    }
    let verb = if glibc { "zigbuild" } else { "build" };
    let mut cargo = Command::new("cargo");
    cargo
        .args([
            verb,
            "--release",
            "--locked",
            "--offline",
            "--bin",
            "perflings",
        ])
        .args(["--target", target])
        .args(["--config", "profile.release.strip='symbols'"])
        .args(["--config", "profile.release.incremental=false"])
        .args(small()?)
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        // The path of the linker counts for cargo: where it changes, everything is compiled anew.
        .env("CARGO_ZIGBUILD_CACHE_DIR", folder.join("zigbuild"));
    done(
        &mut cargo,
        "`pip install cargo-zigbuild` brings cargo-zigbuild and zig",
    )?;
    let name = format!("perflings{}", std::env::consts::EXE_SUFFIX);
    Ok(folder.join(triple).join("release").join(name))
}

/// Cargo.toml compiles crates that need no speed quickly; a package has time to make them small.
fn small() -> Result<Vec<String>> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let lines = manifest.lines();
    let lines = lines.skip_while(|line| *line != "[profile.release.package]");
    let lines = lines.skip(1).take_while(|line| !line.starts_with('['));
    let quick = lines.filter_map(|line| line.split_once(" = { opt-level = "));
    let flag = |(name, level): (&str, &str)| {
        let small = format!("profile.release.package.{name}.opt-level='s'");
        let is_quick = level.starts_with(['0', '1']);
        is_quick.then(|| ["--config".to_owned(), small])
    };
    Ok(quick.filter_map(flag).flatten().collect())
}

/// The program's own completions and manual pages.
fn write_manuals(program: &Path, made: &Path) -> Result<()> {
    let completions = made.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, file) in [
        ("bash", "perflings.bash"),
        ("zsh", "_perflings"),
        ("fish", "perflings.fish"),
        ("powershell", "_perflings.ps1"),
    ] {
        let said = Command::new(program)
            .args(["completions", shell])
            .output()
            .with_context(|| format!("{} does not run here", program.display()))?;
        ensure!(said.status.success(), "no completions for {shell}");
        fs::write(completions.join(file), said.stdout)?;
    }
    let mut man = Command::new(program);
    man.arg("man").arg(made.join("man1"));
    done(&mut man, "")
}

/// The licences of everything that is linked into the program. They take minutes, and change with Cargo.lock only.
fn licences(triple: &str, out: &Path) -> Result<PathBuf> {
    let folder = out.join(triple);
    fs::create_dir_all(&folder)?;
    let page = folder.join("LICENCES.txt");
    let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    if changed(&page) > changed(Path::new("Cargo.lock")) {
        return Ok(page);
    }
    let mut about = Command::new("cargo");
    about
        .args([
            "about", "generate", "--frozen", "--fail", "--target", triple,
        ])
        .args(["-c", "xtask/about.toml", "xtask/about.hbs", "-o"])
        .arg(&page);
    done(
        &mut about,
        "`cargo install --locked --features cli cargo-about` brings cargo-about",
    )?;
    Ok(page)
}

/// Packs files under the folder `name`, each with the place there: sorted, with one time, one owner, two modes.
fn pack(name: &str, mut files: Vec<(PathBuf, String)>) -> Result<Vec<u8>> {
    files.sort_by_key(|(path, to)| (to.clone(), path.file_name().map(ToOwned::to_owned)));
    let time = time()?;
    let gzip = flate2::GzBuilder::new().mtime(0).operating_system(255);
    let mut tar = tar::Builder::new(gzip.write(Vec::new(), flate2::Compression::best()));
    for (path, to) in files {
        let bytes =
            fs::read(&path).with_context(|| format!("Failed to read {}", path.display()))?;
        let file = path.file_name().context("a file has a name")?;
        let program = to.is_empty() && file.to_string_lossy().starts_with("perflings");
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if program { 0o755 } else { 0o644 });
        header.set_mtime(time);
        let inside = Path::new(name).join(to).join(file);
        tar.append_data(&mut header, inside, bytes.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// When this commit was made; `SOURCE_DATE_EPOCH` says otherwise.
fn time() -> Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time
            .parse()
            .context("SOURCE_DATE_EPOCH is a number of seconds");
    }
    let git = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .output();
    let said = git
        .ok()
        .and_then(|it| String::from_utf8(it.stdout).ok()?.trim().parse().ok());
    said.context("git does not know when this commit was made; set SOURCE_DATE_EPOCH")
}

/// The names of the archive and of the folder in it: those that Cargo.toml tells `cargo binstall`.
fn names(triple: &str) -> Result<(String, String)> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let value = |key: &str| {
        let start = format!("{key} = \"");
        let found = manifest.lines().find_map(|line| line.strip_prefix(&start));
        let value = found.and_then(|it| it.strip_suffix('"'));
        value.with_context(|| format!("Cargo.toml has no {key}"))
    };
    let filled = |key: &str| -> Result<String> {
        let text = value(key)?.replace("{ name }", "perflings");
        let text = text.replace("{ version }", value("version")?);
        Ok(text.replace("{ target }", triple))
    };
    let (url, program) = (filled("pkg-url")?, filled("bin-dir")?);
    let archive = url.rsplit_once('/').map(|(_, last)| last.to_owned());
    let folder = program.strip_suffix("/{ bin }{ binary-ext }");
    let names = archive.zip(folder.map(str::to_owned));
    names.context("pkg-url ends with /ARCHIVE, bin-dir is FOLDER/{ bin }{ binary-ext }")
}

fn done(command: &mut Command, help: &str) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown} failed: {status}. {help}");
    Ok(())
}
