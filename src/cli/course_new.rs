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

/// Writes the files of a new item into the folder of a course. Refuses a name that is taken, and one that no folder can have.
pub(super) fn new(args: &CourseNewArgs) -> Result<Exit> {
    let dir = args
        .course
        .course
        .clone()
        .unwrap_or_else(|| PathBuf::from("."));
    let name = args.name.as_str();
    if !plain_name(name) {
        let said = "a name takes lower-case letters, digits and `-`, such as slow-loader";
        return Err(usage(said));
    }
    let taken = names(&dir.join("exercises"));
    if let Some(other) = taken
        .iter()
        .find(|other| other.split_once('-').is_some_and(|it| it.1 == name))
    {
        let said =
            format!("exercises/{other} has this name; progress is kept by it, so choose another");
        return Err(usage(said));
    }
    let letter = match args.what {
        NewItem::Stage => "",
        NewItem::Kernel => "k",
        NewItem::Recording => "d",
    };
    let numbers = taken.iter().filter_map(|other| {
        let label = other.split('-').next()?.strip_prefix(letter)?;
        label.parse::<u32>().ok()
    });
    let label = format!("{letter}{:02}", numbers.max().unwrap_or(0) + 1);
    let folder = format!("exercises/{label}-{name}");
    let mut written = match args.what {
        NewItem::Stage => vec![
            (
                format!("{folder}/stage.toml"),
                include_str!("course_new/stage.toml").to_owned(),
            ),
            (
                format!("{folder}/config.toml"),
                include_str!("course_new/config.toml").to_owned(),
            ),
            (
                format!("{folder}/solution/config.toml"),
                include_str!("course_new/solution.toml").to_owned(),
            ),
            (
                format!("lessons/{label}-{name}.md"),
                include_str!("course_new/lesson.md").to_owned(),
            ),
        ],
        NewItem::Kernel => {
            let solution = include_str!("course_new/solution.wgsl");
            // The starter reads the place to which it writes.
            let starter =
                solution.replace("= x[(t * H + h) * D + d];", "= x[(h * T + t) * D + d];");
            vec![
                (
                    format!("{folder}/exercise.toml"),
                    include_str!("course_new/kernel.toml").to_owned(),
                ),
                (
                    format!("{folder}/reference.wgsl"),
                    CourseFiles::Embedded.read(REFERENCE)?,
                ),
                (format!("{folder}/starter.wgsl"), starter),
                (
                    format!("{folder}/solution/kernel.wgsl"),
                    solution.to_owned(),
                ),
                (
                    format!("{folder}/wrong.toml"),
                    include_str!("course_new/wrong.toml").to_owned(),
                ),
            ]
        }
        NewItem::Recording => vec![
            (
                format!("{folder}/exercise.toml"),
                include_str!("course_new/recording.toml").to_owned(),
            ),
            (
                format!("{folder}/run.jsonl"),
                CourseFiles::Embedded.read(RECORDING)?,
            ),
        ],
    };
    let course = "exercises/course.toml".to_owned();
    if !files::is_taken(&dir.join(&course)) {
        let text = "# Progress is kept by this id.\nid = \"my-course\"\ntitle = \"My course\"\n";
        written.insert(0, (course, text.to_owned()));
    }
    for (path, text) in &written {
        let target = dir.join(path);
        if files::is_taken(&target) {
            return Err(usage(format!("{} is there already", target.display())));
        }
        std::fs::create_dir_all(files::folder(&target))?;
        out::file(&target, text.replace("NAME", name).as_bytes())?;
    }
    result(&format!("wrote {folder}: {} files", written.len()))?;
    let shown = dir.display();
    notice(&format!(
        "check it with `perflings course check {label} --course {shown}`"
    ));
    Ok(Exit::Ok)
}

/// Names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
