//! `perflings course new`: writes a small stage, kernel exercise or recorded run into the folder of a course. The new files have comments
//! and pass `course check`; an author changes them from there.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::args::exercises::{CourseNewArgs, NewItem};
use crate::course::CourseFiles;
use crate::course::stage::plain_name;
use crate::files;
use crate::out::{self, Exit, notice, result, usage};

/// The recorded run that a new exercise begins with, in the built-in course.
const RECORDING: &str = "exercises/d03-missing-time/run.jsonl";
/// The reference that a new kernel exercise begins with, in the built-in course.
const REFERENCE: &str = "exercises/k03-copy/reference.wgsl";
/// The text of `course.toml` for a new course.
const COURSE: &str = "\
# Progress is kept by this id.
id = \"my-course\"
title = \"My course\"
";

/// Writes the files of a new item into the folder of a course.
///
/// # Errors
/// If the name cannot be used or is taken, or if a file exists already.
pub(super) fn new(args: &CourseNewArgs) -> Result<Exit> {
    let dir = match &args.course.course {
        Some(dir) => dir.clone(),
        None => PathBuf::from("."),
    };
    let name = args.name.as_str();
    if !plain_name(name) {
        return Err(usage(
            "a name takes lower-case letters, digits and `-`, such as slow-loader",
        ));
    }
    let label = new_label(args.what, name, &names(&dir.join("exercises")))?;
    let mut files = Vec::new();
    let course_file = "exercises/course.toml".to_owned();
    if !files::is_taken(&dir.join(&course_file)) {
        files.push((course_file, COURSE.to_owned()));
    }
    let folder = format!("exercises/{label}-{name}");
    for (file, text) in texts(args.what)? {
        files.push((format!("{folder}/{file}"), text));
    }
    if args.what == NewItem::Stage {
        let lesson = include_str!("course_new/lesson.md").to_owned();
        files.push((format!("lessons/{label}-{name}.md"), lesson));
    }
    for (path, text) in &files {
        let target = dir.join(path);
        if files::is_taken(&target) {
            return Err(usage(format!("{} is there already", target.display())));
        }
        std::fs::create_dir_all(files::folder(&target))?;
        out::file(&target, text.replace("NAME", name).as_bytes())?;
    }
    result(&format!("wrote {folder}: {} files", files.len()))?;
    notice(&format!(
        "check it with `perflings course check {label} --course {}`",
        dir.display()
    ));
    Ok(Exit::Ok)
}

/// Returns the label of a new item, with the next free number of its kind: `05`, `k11` or `d04`. `folders` are the names of the folders that
/// the course has.
fn new_label(what: NewItem, name: &str, folders: &[String]) -> Result<String> {
    let letter = match what {
        NewItem::Stage => "",
        NewItem::Kernel => "k",
        NewItem::Recording => "d",
    };
    let mut last = 0;
    for folder in folders {
        let Some((label, id)) = folder.split_once('-') else {
            continue;
        };
        if id == name {
            return Err(usage(format!(
                "exercises/{folder} has this name; progress is kept by it, so choose another"
            )));
        }
        if let Some(Ok(number)) = label.strip_prefix(letter).map(str::parse::<u32>) {
            last = last.max(number);
        }
    }
    Ok(format!("{letter}{:02}", last + 1))
}

/// Returns the names and the texts of the files in the folder of a new item.
fn texts(what: NewItem) -> Result<Vec<(&'static str, String)>> {
    Ok(match what {
        NewItem::Stage => vec![
            ("stage.toml", include_str!("course_new/stage.toml").into()),
            ("config.toml", include_str!("course_new/config.toml").into()),
            (
                "solution/config.toml",
                include_str!("course_new/solution.toml").into(),
            ),
        ],
        NewItem::Kernel => {
            let solution = include_str!("course_new/solution.wgsl");
            // The fault of the starter: it reads at the index to which it writes.
            let starter =
                solution.replace("= x[(t * H + h) * D + d];", "= x[(h * T + t) * D + d];");
            vec![
                (
                    "exercise.toml",
                    include_str!("course_new/kernel.toml").into(),
                ),
                ("reference.wgsl", CourseFiles::Embedded.read(REFERENCE)?),
                ("starter.wgsl", starter),
                ("solution/kernel.wgsl", solution.to_owned()),
                ("wrong.toml", include_str!("course_new/wrong.toml").into()),
            ]
        }
        NewItem::Recording => vec![
            (
                "exercise.toml",
                include_str!("course_new/recording.toml").into(),
            ),
            ("run.jsonl", CourseFiles::Embedded.read(RECORDING)?),
        ],
    })
}

/// Returns the names of everything in a folder; none if the folder cannot be read.
fn names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
