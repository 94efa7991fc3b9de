//! `perflings room`: opens a class in a folder or over the network and shows the instructor's board: on this terminal, as a page,
//! or a line at a time. `--export` writes down what the class has done.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::args::RoomArgs;
use super::workshop::{exit_of, theme};
use crate::app::Markers;
use crate::class::board::Board;
use crate::class::folder;
use crate::class::handle::RoomHandle;
use crate::class::page;
use crate::class::record::InstructorRequest;
use crate::class::server::{RoomSecrets, bind, host};
use crate::course::Course;
use crate::course::context::CourseContext;
use crate::course::mystery::LEVELS;
use crate::course::placeholder::{FigureSources, fill_known};
use crate::course::save_file;
use crate::files;
use crate::out::{self, Exit, notice, result, usage};
use crate::pages::{class, html};
use crate::tui::board::{BoardView, RoomControl, show};
use crate::tui::terminal;
use protocol::machine;

pub(super) fn room(args: &RoomArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let base = match &args.dir {
        Some(dir) => dir.clone(),
        None if args.listen.is_none() && args.export.is_none() => {
            return Err(usage(
                "a room is in a folder or on the network: write --dir DIR or --listen ADDRESS",
            ));
        }
        // Where rooms over the network are kept.
        None => save_file::directory("room")
            .context("this system names no folder for the room; write --dir DIR")?,
    };
    if let Some(file) = &args.export {
        let dir = latest_room(&base).unwrap_or(base);
        return write_down(&dir, file, &context.course);
    }
    let dir = match (&args.listen, args.resume) {
        (None, _) => base,
        (Some(_), false) => new_room(&base),
        (Some(_), true) => latest_room(&base).ok_or_else(|| {
            usage(format!(
                "--resume: there is no room in {}; leave it out to open a new one",
                shown(&base)
            ))
        })?,
    };
    // A port that is taken is told before a room is made.
    let listener = args
        .listen
        .as_deref()
        .map(bind)
        .transpose()
        .map_err(usage)?;
    let course = context.course.clone();
    let handle = RoomHandle::open(dir.clone(), listener.is_none(), course).map_err(usage)?;
    let (mut places, mut own) = (vec![shown(&dir)], Vec::new());
    if let Some(listener) = listener {
        let codes = codes(&dir)?;
        let at = host(listener, handle.clone(), codes.clone()).map_err(usage)?;
        let hosts = hosts(at);
        let with = |word: &str| {
            hosts
                .iter()
                .map(|host| format!("http://{host}/{word}"))
                .collect()
        };
        places = with(&codes.code);
        let keyed: Vec<String> = with(&codes.key);
        own.extend(keyed.iter().map(|it| format!("your page: {it}")));
        own.extend(
            keyed
                .first()
                .map(|it| format!("to present: perflings --present --room {it}")),
        );
    }
    let mut open = Open {
        handle,
        context,
        page: args.page.clone(),
        drawn: None,
    };
    if terminal::is_present() && !args.json {
        let theme = theme(args.theme, Markers::default());
        let view = BoardView {
            places,
            own,
            ..BoardView::default()
        };
        return show(&mut open, &theme, view).map(exit_of);
    }
    places
        .iter()
        .for_each(|it| notice(&format!("learners type: perflings --room {it}")));
    own.iter().for_each(|it| notice(it));
    lines(&mut open, args.json)
}

/// Without a screen: the board, or its counts, whenever they change, until the process is ended.
fn lines(open: &mut Open, json: bool) -> Result<Exit> {
    let mut before = (None, String::new());
    loop {
        let revision = Some(open.handle.state().revision);
        if revision != before.0 {
            let board = open.board();
            let line = match json {
                true => serde_json::to_string(&board)?,
                false => format!(
                    "{} here, {} not started, {} raised a hand",
                    board.here, board.not_started, board.raised
                ),
            };
            if line != before.1 {
                match json {
                    true => out::json_line(&line)?,
                    false => result(&line)?,
                }
            }
            before = (revision, line);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Every `HOST:PORT` that others on the network may reach this machine by, the likeliest first.
fn hosts(at: SocketAddr) -> Vec<String> {
    if !at.ip().is_unspecified() {
        return vec![at.to_string()];
    }
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let reached = all
        .iter()
        .filter(|it| !it.is_loopback() && !it.is_link_local());
    let mut ips: Vec<IpAddr> = reached.map(|it| it.ip()).collect();
    ips.retain(|ip| ip.is_ipv4() || at.is_ipv6());
    ips.sort_by_key(|ip| (ip.is_ipv6(), *ip));
    ips.dedup();
    let sockets = ips
        .into_iter()
        .map(|ip| SocketAddr::new(ip, at.port()).to_string());
    let name = format!("{}:{}", host_name(), at.port());
    sockets.chain([name]).collect()
}

/// The folder of a new room: one for each time that a class begins.
fn new_room(base: &Path) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    let numbered = (2..).map(|n| base.join(format!("{now}-{n}")));
    let mut all = std::iter::once(base.join(&now)).chain(numbered);
    all.find(|dir| !files::is_taken(dir))
        .unwrap_or_else(|| base.join(now))
}

/// The room that was opened last in a folder of rooms, or the folder where it is one itself.
fn latest_room(base: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(base).ok()?.filter_map(Result::ok);
    let rooms = entries.map(|it| it.path()).filter(|it| folder::is_room(it));
    let itself = folder::is_room(base).then(|| base.to_owned());
    rooms.max().or(itself)
}

/// The codes of the room in this folder: those it had, so that everybody comes back after a restart.
fn codes(dir: &Path) -> Result<RoomSecrets> {
    let path = dir.join("codes.json");
    let known = files::read(&path, 4096).ok();
    if let Some(codes) = known.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return Ok(codes);
    }
    let codes = RoomSecrets::draw();
    files::write(&path, &serde_json::to_vec(&codes)?)?;
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(codes)
}

/// The name that others on the network may know this machine by.
pub(super) fn host_name() -> String {
    let name = machine::system("/proc/sys/kernel/hostname");
    let name = name.ok().or_else(|| std::env::var("COMPUTERNAME").ok());
    match name.unwrap_or_default().trim() {
        "" => "THIS-MACHINE".to_owned(),
        name => name.to_owned(),
    }
}

fn shown(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

fn write_down(dir: &Path, file: &Path, course: &Course) -> Result<Exit> {
    let room = RoomHandle::read(dir.to_owned(), course).map_err(usage)?;
    let text = match file.extension().and_then(|it| it.to_str()) {
        Some("html") => html::page(&class::sheet(&room, course)),
        Some("json") => class::json(&room),
        Some("csv") => class::csv(&room),
        _ => {
            return Err(usage(
                "--export: write a file whose name ends in .html, .json or .csv",
            ));
        }
    };
    for (who, what) in &room.faults {
        notice(&format!("{who} {what}"));
    }
    out::file(file, text.as_bytes())?;
    Ok(Exit::Ok)
}

/// The room that is open.
struct Open {
    handle: RoomHandle,
    context: CourseContext,
    page: Option<PathBuf>,
    /// The board that the page shows.
    drawn: Option<Board>,
}

impl RoomControl for Open {
    fn board(&mut self) -> Board {
        let board = self.handle.board();
        if let Some(path) = &self.page
            && self.drawn.as_ref() != Some(&board)
        {
            let page = page::file(&board.clone().for_everybody());
            // Tried again with the next board.
            let _ = files::write(path, page.as_bytes());
            self.drawn = Some(board.clone());
        }
        board
    }

    fn stage(&self, at: usize) -> Option<String> {
        let stage = self.context.course.stages.get(at)?;
        Some(stage.id.clone())
    }

    fn race(&self, named: &str) -> Result<String, String> {
        let words: Vec<&str> = named.split_whitespace().collect();
        let seed = words.first().and_then(|it| it.parse::<u64>().ok());
        match (words.as_slice(), seed) {
            ([_, level @ ..], Some(seed)) => {
                let level = level.first().map_or(Ok(1), |it| it.parse());
                match level {
                    Ok(level @ 1..=LEVELS) => Ok(format!("mystery {seed}-{level}")),
                    _ => Err(format!("A mystery has a level from 1 to {LEVELS}")),
                }
            }
            ([name], None) => match self.context.exercise(name) {
                Some(exercise) if exercise.kernels().is_some() => Ok(exercise.id.clone()),
                Some(_) => Err(format!(
                    "{name} has no ratio to race for; name a kernel exercise"
                )),
                None => Err(self.context.no_exercise(name)),
            },
            _ => Err(
                "Write a mystery's seed and level, or an exercise, such as 7 2 or k04".to_owned(),
            ),
        }
    }

    fn answer(&self, stage: u32) -> Option<(String, String)> {
        let stage = self.context.course.stage(stage)?;
        let from = FigureSources::none(&stage.broken);
        let reason = fill_known(&stage.prediction.explanation, &from);
        Some((stage.id.clone(), reason))
    }

    fn order(&mut self, order: InstructorRequest) -> Result<(), String> {
        self.handle.order(&order)
    }
}
