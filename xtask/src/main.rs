//! `cargo xtask dist [TARGET]` builds the program and packs it with its completions, manual pages and licences. It uses only this checkout
//! and crates that are cached or vendored, so the packages of one commit have equal bytes.
//!
//! `cargo xtask wheel` builds a wheel for pip, with the program and the module `perflings` that a PyTorch training imports.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// The default target. Its end is a version of glibc in the form that zig takes. Systems from 2018 on have this version (RHEL 8,
/// Debian 10, Ubuntu 20.04).
const DEFAULT_TARGET: &str = "x86_64-unknown-linux-gnu.2.28";
const USAGE: &str = "\
cargo xtask dist [TARGET]   build a package of the program in target/dist
cargo xtask wheel           build a wheel for pip in target/dist, from python/pyproject.toml
                            (needs `pip install maturin`)

TARGET is one that this machine can run: aarch64-apple-darwin, or x86_64-unknown-linux-gnu.2.28,
which needs `pip install cargo-zigbuild`. Licences need cargo-about: install it with
`cargo install --locked --features cli cargo-about`.";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["dist"] => dist(DEFAULT_TARGET),
        ["dist", target] if !target.starts_with('-') => dist(target),
        ["wheel"] => wheel(),
        _ => bail!("{USAGE}"),
    }
}

/// Builds the package for a target in `target/dist`, and a file with its checksum.
fn dist(target: &str) -> Result<()> {
    ensure!(
        Path::new("src/main.rs").is_file(),
        "start this in the root of the checkout"
    );
    // A target such as `…-gnu.2.28` is a triple and the version of glibc that zig links against.
    let (triple, names_glibc) = match target.split_once("gnu.") {
        Some((head, _)) => (format!("{head}gnu"), true),
        None => (target.to_owned(), false),
    };
    let out = PathBuf::from("target/dist");
    let program = build(target, &triple, names_glibc, &out)?;
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
            // Folders, such as `docs/notes`, are not packed.
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

/// Builds the wheel for the system of this machine, with the settings of `cargo build --release`.
fn wheel() -> Result<()> {
    let mut maturin = Command::new("maturin");
    maturin
        .args(["build", "--release", "--locked", "--offline", "--strip"])
        .args(["--out", "../target/dist"])
        .current_dir("python");
    run(&mut maturin, "It comes with `pip install maturin`.")
}

/// Builds the program and returns its path. The program contains no path of this machine. `PERFLINGS_DIST_TARGET` names a target folder that
/// several checkouts share: the dependencies that were built for one checkout are used for the others.
fn build(target: &str, triple: &str, names_glibc: bool, out: &Path) -> Result<PathBuf> {
    let folder = match std::env::var_os("PERFLINGS_DIST_TARGET") {
        Some(shared) => {
            touch_libraries()?;
            std::path::absolute(shared)?
        }
        None => std::path::absolute(out)?.join("build"),
    };
    let cargo_home = match std::env::var_os("CARGO_HOME") {
        Some(cargo_home) => PathBuf::from(cargo_home),
        None => std::env::home_dir()
            .context("there is no home folder")?
            .join(".cargo"),
    };
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
    let mut cargo = Command::new("cargo");
    cargo
        .args([
            if names_glibc { "zigbuild" } else { "build" },
            "--release",
            "--locked",
            "--offline",
            "--bin",
            "perflings",
        ])
        .args(["--target", target])
        .args(["--config", "profile.release.strip='symbols'"])
        .args(["--config", "profile.release.incremental=false"])
        .args(flags_for_small_crates()?)
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        // The linker is always at this path, because cargo compiles everything again if the path changes.
        .env("CARGO_ZIGBUILD_CACHE_DIR", folder.join("zigbuild"));
    run(
        &mut cargo,
        "`pip install cargo-zigbuild` brings cargo-zigbuild and zig",
    )?;
    let name = format!("perflings{}", std::env::consts::EXE_SUFFIX);
    Ok(folder.join(triple).join("release").join(name))
}

/// Makes the libraries of this checkout look changed. Otherwise cargo would take a newer program that another checkout has left in the
/// shared target folder for the program of this checkout.
fn touch_libraries() -> Result<()> {
    let mut libraries = vec![PathBuf::from("src/lib.rs")];
    for entry in fs::read_dir("crates")? {
        libraries.push(entry?.path().join("src/lib.rs"));
    }
    for library in libraries {
        let file = fs::File::options().append(true).open(library)?;
        file.set_modified(std::time::SystemTime::now())?;
    }
    Ok(())
}

/// Returns the flags that make cargo compile crates for size. Cargo.toml has `opt-level` 0 or 1 for the crates that need no speed, because
/// that compiles quickly. A package is built rarely, so there is time to make these crates small.
fn flags_for_small_crates() -> Result<Vec<String>> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let mut flags = Vec::new();
    let packages = manifest
        .lines()
        .skip_while(|line| *line != "[profile.release.package]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    for line in packages {
        if let Some((name, level)) = line.split_once(" = { opt-level = ")
            && level.starts_with(['0', '1'])
        {
            flags.push("--config".to_owned());
            flags.push(format!("profile.release.package.{name}.opt-level='s'"));
        }
    }
    Ok(flags)
}

/// Writes the completions and manual pages that the program prints into the folder `made`.
fn write_manuals(program: &Path, made: &Path) -> Result<()> {
    let completions = made.join("completions");
    fs::create_dir_all(&completions)?;
    for (shell, file) in [
        ("bash", "perflings.bash"),
        ("zsh", "_perflings"),
        ("fish", "perflings.fish"),
        ("powershell", "_perflings.ps1"),
    ] {
        let output = Command::new(program)
            .args(["completions", shell])
            .output()
            .with_context(|| format!("{} does not run here", program.display()))?;
        ensure!(output.status.success(), "no completions for {shell}");
        fs::write(completions.join(file), output.stdout)?;
    }
    let mut man = Command::new(program);
    man.arg("man").arg(made.join("man1"));
    run(&mut man, "")
}

/// Writes the licences of everything that is linked into the program, and returns the path of the file. This takes minutes, so an existing
/// file is used until Cargo.lock changes.
fn licences(triple: &str, out: &Path) -> Result<PathBuf> {
    let folder = out.join(triple);
    fs::create_dir_all(&folder)?;
    let page = folder.join("LICENCES.txt");
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if modified(&page) > modified(Path::new("Cargo.lock")) {
        return Ok(page);
    }
    let mut about = Command::new("cargo");
    about
        .args([
            "about", "generate", "--frozen", "--fail", "--target", triple,
        ])
        .args(["-c", "xtask/about.toml", "xtask/about.hbs", "-o"])
        .arg(&page);
    run(
        &mut about,
        "`cargo install --locked --features cli cargo-about` brings cargo-about",
    )?;
    Ok(page)
}

/// Packs files into the folder `name` of an archive. Each file comes with the folder below `name` that it is put into. Equal files give
/// equal archives: the files are sorted, all have the time of the commit, and their owners and modes are fixed.
fn pack(name: &str, mut files: Vec<(PathBuf, String)>) -> Result<Vec<u8>> {
    files.sort_by_key(|(path, to)| (to.clone(), path.file_name().map(ToOwned::to_owned)));
    let time = commit_time()?;
    let gzip = flate2::GzBuilder::new().mtime(0).operating_system(255);
    let mut tar = tar::Builder::new(gzip.write(Vec::new(), flate2::Compression::best()));
    for (path, to) in files {
        let bytes =
            fs::read(&path).with_context(|| format!("Failed to read {}", path.display()))?;
        let file = path.file_name().context("a file has a name")?;
        let is_program = to.is_empty() && file.to_string_lossy().starts_with("perflings");
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if is_program { 0o755 } else { 0o644 });
        header.set_mtime(time);
        let inside = Path::new(name).join(to).join(file);
        tar.append_data(&mut header, inside, bytes.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Returns the time of this commit, or the time in `SOURCE_DATE_EPOCH` if that is set, in seconds since 1970.
fn commit_time() -> Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time
            .parse()
            .context("SOURCE_DATE_EPOCH must be a number of seconds");
    }
    let log = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .output();
    log.ok()
        .and_then(|log| String::from_utf8(log.stdout).ok()?.trim().parse().ok())
        .context("git does not know when this commit was made; set SOURCE_DATE_EPOCH")
}

/// Returns the names of the archive and of the folder in it. They are read from Cargo.toml, where `cargo binstall` finds them.
fn names(triple: &str) -> Result<(String, String)> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let value = |key: &str| {
        let start = format!("{key} = \"");
        manifest
            .lines()
            .find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'))
            .with_context(|| format!("Cargo.toml has no {key}"))
    };
    let filled = |key: &str| -> Result<String> {
        Ok(value(key)?
            .replace("{ name }", "perflings")
            .replace("{ version }", value("version")?)
            .replace("{ target }", triple))
    };
    let url = filled("pkg-url")?;
    let program = filled("bin-dir")?;
    match (
        url.rsplit_once('/'),
        program.strip_suffix("/{ bin }{ binary-ext }"),
    ) {
        (Some((_, archive)), Some(folder)) => Ok((archive.to_owned(), folder.to_owned())),
        _ => bail!(
            "pkg-url must end with /ARCHIVE, \
             and bin-dir must be FOLDER/{{ bin }}{{ binary-ext }}"
        ),
    }
}

/// Runs a command. If it fails, the error ends with the advice `help`.
fn run(command: &mut Command, help: &str) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown} failed: {status}. {help}");
    Ok(())
}
