//! `perflings room`: opens a room for a class, in a folder or over the network, and shows the instructor's board on this terminal, as a
//! page, or as lines. If another program has the room open, the board of that room is shown. `--export` writes the results of the class.

mod addresses;
mod shown;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::args::class::RoomArgs;
use super::workshop::{exit_of, theme};
use crate::app::Markers;
use crate::class::folder::{self, RoomFolder};
use crate::class::handle::{OpenError, RoomHandle, SecondBoard};
use crate::class::instructor_link;
use crate::class::record::Question;
use crate::class::secrets::RoomSecrets;
use crate::class::server::{bind, host};
use crate::course::Course;
use crate::course::context::CourseContext;
use crate::course::save_file;
use crate::files;
use crate::out::{self, Exit, notice, result, usage};
use crate::pages::{class, html};
use crate::tui::board::{BoardView, RoomControl, show};
use crate::tui::terminal;
use shown::{ShownRoom, Source};

/// The longest file of questions, in bytes.
const MOST_QUESTIONS: u64 = 100_000;
/// The interval at which the board is checked for changes if there is no screen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn room(args: &RoomArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let prepared = args.questions.as_deref().map(questions).transpose()?;
    let mut view = BoardView {
        prepared: prepared.unwrap_or_default(),
        ..BoardView::default()
    };
    if let Some(place) = &args.board {
        let link = instructor_link(place, &context.course).map_err(usage)?;
        return show_board(args, Source::elsewhere(link)?, context, view);
    }
    let base = match &args.dir {
        Some(dir) => dir.clone(),
        None if args.listen.is_none() && args.export.is_none() => {
            return Err(usage(
                "a room is in a folder or on the network: write --dir DIR or --listen ADDRESS",
            ));
        }
        // Rooms over the network are kept in a folder, too.
        None => save_file::directory("room")
            .context("this system names no folder for the room; write --dir DIR")?,
    };
    if let Some(file) = &args.export {
        let dir = latest_room(&base).unwrap_or(base);
        return export(&dir, file, &context.course);
    }
    let source = match &args.listen {
        None => open_folder(base, &context.course, &mut view)?,
        Some(address) => {
            // The port is taken first, so that a port that is in use leaves no new room behind.
            let listener = bind(address).map_err(usage)?;
            let dir = if args.resume {
                latest_room(&base).ok_or_else(|| {
                    usage(format!(
                        "--resume: there is no room in {}; leave it out to open a new one",
                        absolute(&base)
                    ))
                })?
            } else {
                new_room(&base)
            };
            serve(
                listener,
                dir,
                args.address.as_deref(),
                &context.course,
                &mut view,
            )?
        }
    };
    show_board(args, source, context, view)
}

/// Opens the room in a folder, or its second board if another program has the room open.
fn open_folder(dir: PathBuf, course: &Course, view: &mut BoardView) -> Result<Source> {
    view.places = vec![absolute(&dir)];
    let source = match RoomHandle::open(dir.clone(), true, course.clone()) {
        Ok(handle) => Source::Own(handle),
        Err(OpenError::Taken(owner)) => {
            notice(&format!(
                "{owner} has this room open; this board follows it"
            ));
            let board = SecondBoard::new(dir.clone(), course.clone());
            Source::elsewhere(Box::new(board))?
        }
        Err(error) => return Err(usage(error.to_string())),
    };
    if let Some(why) = RoomFolder::new(dir).closed_to_others() {
        notice(&why);
    }
    Ok(source)
}

/// Opens the room in `dir` and serves it on the network. Adds to `view` everything that the instructor has to announce. `public` is the
/// value of `--address`.
fn serve(
    listener: TcpListener,
    dir: PathBuf,
    public: Option<&str>,
    course: &Course,
    view: &mut BoardView,
) -> Result<Source> {
    let public_address = public.map(addresses::public).transpose()?;
    let handle = RoomHandle::open(dir.clone(), false, course.clone())
        .map_err(|error| usage(error.to_string()))?;
    let secrets = secrets(&dir)?;
    let served = host(listener, handle.clone(), secrets.clone()).map_err(usage)?;
    let mut addresses = addresses::all(served);
    addresses.splice(0..0, public_address);
    let first = format!("http://{}/{}", addresses[0].0, secrets.key);
    for (host, interface) in addresses {
        view.places.push(format!("http://{host}/{}", secrets.code));
        view.own_addresses
            .push(format!("your page: http://{host}/{}", secrets.key));
        view.interfaces.push(interface);
    }
    view.own_addresses.extend([
        format!("to present: perflings --present --room {first}"),
        format!("this board on another machine: perflings room --board {first}"),
    ]);
    Ok(Source::Own(handle))
}

/// Shows the board on the screen, or prints it, until the instructor ends it.
fn show_board(
    args: &RoomArgs,
    source: Source,
    context: CourseContext,
    view: BoardView,
) -> Result<Exit> {
    let mut room = ShownRoom {
        source,
        context,
        page: args.page.clone(),
        drawn: None,
    };
    if terminal::is_present() && !args.json {
        let theme = theme(args.theme, Markers::default());
        return show(&mut room, &theme, view).map(exit_of);
    }
    for place in &view.places {
        notice(&format!("learners type: perflings --room {place}"));
    }
    for own in &view.own_addresses {
        notice(own);
    }
    print_changes(&mut room, args.json)
}

/// Prints the board as JSON, or its counts in words, whenever they change, until the process is killed.
fn print_changes(room: &mut ShownRoom, as_json: bool) -> Result<Exit> {
    let mut last_revision = None;
    let mut last_line = String::new();
    loop {
        let revision = room.source.revision();
        if revision.is_none() || revision != last_revision {
            last_revision = revision;
            let board = room.board();
            let line = if as_json {
                serde_json::to_string(&board)?
            } else {
                format!(
                    "{} here, {} not started, {} raised a hand",
                    board.here, board.not_started, board.raised
                )
            };
            if line != last_line {
                if as_json {
                    out::json_line(&line)?;
                } else {
                    result(&line)?;
                }
                last_line = line;
            }
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Reads the file of `--questions`.
fn questions(file: &Path) -> Result<Vec<Question>> {
    let fault = |why: String| usage(format!("--questions {}: {why}", absolute(file)));
    let bytes = files::read(file, MOST_QUESTIONS)
        .map_err(|error| fault(save_file::explain_write_error(&error)))?;
    Question::read_all(&String::from_utf8_lossy(&bytes)).map_err(fault)
}

/// Returns a folder that does not exist yet for a new room. Its name is the present time.
fn new_room(base: &Path) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    let mut dir = base.join(&now);
    let mut number = 2;
    while files::is_taken(&dir) {
        dir = base.join(format!("{now}-{number}"));
        number += 1;
    }
    dir
}

/// Returns the newest room in a folder of rooms, or the folder itself if it is a room; `None` if there is no room.
fn latest_room(base: &Path) -> Option<PathBuf> {
    std::fs::read_dir(base)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| folder::is_room(path))
        .max()
        .or_else(|| folder::is_room(base).then(|| base.to_owned()))
}

/// Returns the codes of the room in this folder, and creates them for a new room. A resumed room has its old codes, so that everybody can
/// come back.
fn secrets(dir: &Path) -> Result<RoomSecrets> {
    let path = dir.join("codes.json");
    if let Ok(bytes) = files::read(&path, 4096)
        && let Ok(known) = serde_json::from_slice(&bytes)
    {
        return Ok(known);
    }
    let secrets = RoomSecrets::draw();
    files::write(&path, &serde_json::to_vec(&secrets)?)?;
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(secrets)
}

/// Returns the absolute path of a file or folder, for messages.
fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.display().to_string()
}

/// Writes the results of the class into a file, whose ending selects the format.
fn export(dir: &Path, file: &Path, course: &Course) -> Result<Exit> {
    let room = RoomHandle::read(dir.to_owned(), course).map_err(usage)?;
    let text = match file.extension().and_then(|ending| ending.to_str()) {
        Some("html") => html::page(&class::sheet(&room, course)),
        Some("json") => class::json(&room),
        Some("csv") => class::csv(&room),
        _ => {
            return Err(usage(
                "--export: write a file whose name ends in .html, .json or .csv",
            ));
        }
    };
    for fault in room.faults.values() {
        notice(fault);
    }
    out::file(file, text.as_bytes())?;
    Ok(Exit::Ok)
}
