//! `perflings course new`: writes a small stage, kernel or recorded run that passes `course check`, with comments, to be changed from
//! there.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::args::{CourseNewArgs, NewItem};
use crate::course::CourseFiles;
use crate::course::stage::plain_name;
use crate::files;
use crate::out::{self, Exit, notice, result, usage};

/// The recorded run that a new exercise begins with.
const RECORDING: &str = "exercises/d03-missing-time/run.jsonl";
/// The reference of the kernel that a new exercise asks for.
const REFERENCE: &str = "exercises/k03-copy/reference.wgsl";
/// The file of a course that has none yet.
const COURSE: &str = "# Progress is kept by this id.\nid = \"my-course\"\ntitle = \"My course\"\n";

/// Writes the files of a new item into the folder of a course. Refuses a name that is taken, and one that no folder can have.
pub(super) fn new(args: &CourseNewArgs) -> Result<Exit> {
    let dir = match &args.course.course {
        Some(dir) => dir.clone(),
        None => PathBuf::from("."),
    };
    let name = args.name.as_str();
    if !plain_name(name) {
        let said = "a name takes lower-case letters, digits and `-`, such as slow-loader";
        return Err(usage(said));
    }
    let label = new_label(args.what, name, &names(&dir.join("exercises")))?;
    let mut files = Vec::new();
    let course = "exercises/course.toml".to_owned();
    if !files::is_taken(&dir.join(&course)) {
        files.push((course, COURSE.to_owned()));
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

/// Returns the label of a new item: the next number of its kind. `taken` are the folders of the course.
fn new_label(what: NewItem, name: &str, taken: &[String]) -> Result<String> {
    let letter = match what {
        NewItem::Stage => "",
        NewItem::Kernel => "k",
        NewItem::Recording => "d",
    };
    let mut last = 0;
    for folder in taken {
        let Some((label, id)) = folder.split_once('-') else {
            continue;
        };
        if id == name {
            return Err(usage(format!(
                "exercises/{folder} has this name; progress is kept by it, so choose another"
            )));
        }
        let number = label.strip_prefix(letter).map(str::parse);
        if let Some(Ok(number)) = number {
            last = last.max(number);
        }
    }
    let number: u32 = last + 1;
    Ok(format!("{letter}{number:02}"))
}

/// Returns the files in the folder of a new item: their names and their texts.
fn texts(what: NewItem) -> Result<Vec<(&'static str, String)>> {
    Ok(match what {
        NewItem::Stage => vec![
            (
                "stage.toml",
                include_str!("course_new/stage.toml").to_owned(),
            ),
            (
                "config.toml",
                include_str!("course_new/config.toml").to_owned(),
            ),
            (
                "solution/config.toml",
                include_str!("course_new/solution.toml").to_owned(),
            ),
        ],
        NewItem::Kernel => {
            let solution = include_str!("course_new/solution.wgsl");
            // The starter reads the place to which it writes.
            let starter =
                solution.replace("= x[(t * H + h) * D + d];", "= x[(h * T + t) * D + d];");
            vec![
                (
                    "exercise.toml",
                    include_str!("course_new/kernel.toml").to_owned(),
                ),
                ("reference.wgsl", CourseFiles::Embedded.read(REFERENCE)?),
                ("starter.wgsl", starter),
                ("solution/kernel.wgsl", solution.to_owned()),
                (
                    "wrong.toml",
                    include_str!("course_new/wrong.toml").to_owned(),
                ),
            ]
        }
        NewItem::Recording => vec![
            (
                "exercise.toml",
                include_str!("course_new/recording.toml").to_owned(),
            ),
            ("run.jsonl", CourseFiles::Embedded.read(RECORDING)?),
        ],
    })
}

/// Returns the names of everything in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
