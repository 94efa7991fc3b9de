//! `perflings room`: opens a class in a folder or over the network and shows the instructor's board: on this terminal, as a page,
//! or a line at a time. Where another program has the room, this one looks at it. `--export` writes down what the class has done.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::args::RoomArgs;
use super::workshop::{exit_of, theme};
use crate::app::Markers;
use crate::class::board::Board;
use crate::class::folder::{self, RoomFolder};
use crate::class::handle::{OpenError, RoomHandle, RoomLooker, host_name};
use crate::class::instructor_link;
use crate::class::link::InstructorLink;
use crate::class::link::RoomNews;
use crate::class::lock::Owner;
use crate::class::member::Member;
use crate::class::page;
use crate::class::record::{InstructorRequest, Question};
use crate::class::secrets::RoomSecrets;
use crate::class::server::{bind, host};
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

/// Longest file of questions, in bytes.
const MOST_QUESTIONS: u64 = 100_000;

pub(super) fn room(args: &RoomArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let prepared = args.questions.as_deref().map(questions).transpose()?;
    let mut view = BoardView {
        prepared: prepared.unwrap_or_default(),
        ..BoardView::default()
    };
    if let Some(at) = &args.board {
        let link = instructor_link(at, &context.course).map_err(usage)?;
        let source = Source::elsewhere(link)?;
        return follow(args, source, context, view);
    }
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
    view.places = vec![shown(&dir)];
    let opened = RoomHandle::open(dir.clone(), listener.is_none(), context.course.clone());
    let source = match opened {
        Ok(handle) => Source::Own(handle),
        Err(OpenError::Taken(Owner(owner))) if listener.is_none() => {
            notice(&format!("{owner} has this room; this board looks at it"));
            Source::elsewhere(Box::new(RoomLooker::new(
                dir.clone(),
                context.course.clone(),
            )))?
        }
        Err(why) => return Err(usage(why.to_string())),
    };
    if listener.is_none() {
        let closed = RoomFolder::new(dir.clone()).closed_to_others();
        closed.iter().for_each(|why| notice(why));
    }
    if let (Some(listener), Source::Own(handle)) = (listener, &source) {
        let codes = codes(&dir)?;
        let at = host(listener, handle.clone(), codes.clone()).map_err(usage)?;
        let given = args.address.as_deref().map(tunnel).transpose()?;
        let mut hosts = hosts(at);
        hosts.splice(0..0, given.map(|host| (host, "--address".to_owned())));
        let with = |word: &str| {
            let places = hosts
                .iter()
                .map(|(host, _)| format!("http://{host}/{word}"));
            places.collect::<Vec<String>>()
        };
        view.places = with(&codes.code);
        let keyed = with(&codes.key);
        view.own
            .extend(keyed.iter().map(|it| format!("your page: {it}")));
        view.own.extend(keyed.first().into_iter().flat_map(|it| {
            [
                format!("to present: perflings --present --room {it}"),
                format!("this board on another machine: perflings room --board {it}"),
            ]
        }));
        view.interfaces = hosts.into_iter().map(|(_, name)| name).collect();
    }
    follow(args, source, context, view)
}

/// Shows the board until it is ended.
fn follow(
    args: &RoomArgs,
    source: Source,
    context: CourseContext,
    view: BoardView,
) -> Result<Exit> {
    let mut open = Open {
        source,
        context,
        page: args.page.clone(),
        drawn: None,
    };
    if terminal::is_present() && !args.json {
        let theme = theme(args.theme, Markers::default());
        return show(&mut open, &theme, view).map(exit_of);
    }
    let places = view.places.iter();
    places.for_each(|it| notice(&format!("learners type: perflings --room {it}")));
    view.own.iter().for_each(|it| notice(it));
    lines(&mut open, args.json)
}

/// Questions that were prepared in a file.
fn questions(file: &Path) -> Result<Vec<Question>> {
    let told = |why: String| usage(format!("--questions {}: {why}", shown(file)));
    let bytes =
        files::read(file, MOST_QUESTIONS).map_err(|error| told(save_file::in_words(&error)))?;
    Question::read_all(&String::from_utf8_lossy(&bytes)).map_err(told)
}

/// The `HOST:PORT` of the address that `--address` names.
fn tunnel(address: &str) -> Result<String> {
    let host = address
        .strip_prefix("http://")
        .unwrap_or(address)
        .trim_end_matches('/');
    let wrong = |c: char| c == '/' || c.is_whitespace() || crate::sanitize::harmful(c);
    if host.is_empty() || host.contains(wrong) {
        let said = "--address: write http://HOST:PORT as phones reach this room, without a path";
        return Err(usage(said));
    }
    Ok(host.to_owned())
}

/// Without a screen: the board, or its counts, whenever they change, until the process is ended.
fn lines(open: &mut Open, json: bool) -> Result<Exit> {
    let mut before = (None, String::new());
    loop {
        let revision = open.source.revision();
        if revision.is_none() || revision != before.0 {
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

/// Every `HOST:PORT` that others on the network may reach this machine by, with its interface: that of the default route first, those
/// of containers and virtual machines last.
fn hosts(at: SocketAddr) -> Vec<(String, String)> {
    if !at.ip().is_unspecified() {
        return vec![(at.to_string(), String::new())];
    }
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let reached = all
        .iter()
        .filter(|it| !it.is_loopback() && !it.is_link_local());
    let mut found: Vec<(IpAddr, String)> = reached.map(|it| (it.ip(), it.name.clone())).collect();
    found.retain(|(ip, _)| ip.is_ipv4() || at.is_ipv6());
    order(&mut found, default_route());
    let sockets = found
        .into_iter()
        .map(|(ip, name)| (SocketAddr::new(ip, at.port()).to_string(), name));
    let name = format!("{}:{}", host_name(), at.port());
    sockets.chain([(name, "by name".to_owned())]).collect()
}

/// The address from which this machine reaches others. Nothing is sent.
fn default_route() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address for documentation: it is nobody's.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Sorts addresses by how likely a phone in the room reaches them.
fn order(found: &mut Vec<(IpAddr, String)>, default: Option<IpAddr>) {
    const VIRTUAL: [&str; 9] = [
        "docker", "br-", "veth", "virbr", "vbox", "vmnet", "tun", "tap", "wg",
    ];
    found.sort_by_key(|(ip, name)| {
        let is_virtual = VIRTUAL.iter().any(|prefix| name.starts_with(prefix));
        (Some(*ip) != default, is_virtual, ip.is_ipv6(), *ip)
    });
    found.dedup_by_key(|(ip, _)| *ip);
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

/// Where the board comes from.
enum Source {
    Own(RoomHandle),
    /// Another program has the room: what it told last, and why it tells nothing now.
    Elsewhere {
        member: Member,
        board: Box<Board>,
        lost: Option<String>,
    },
}

impl Source {
    fn elsewhere(link: Box<dyn InstructorLink>) -> Result<Self> {
        Ok(Self::Elsewhere {
            member: Member::teach(link)?,
            board: Box::default(),
            lost: None,
        })
    }

    fn board(&mut self) -> Board {
        match self {
            Self::Own(handle) => RoomHandle::board(handle),
            Self::Elsewhere {
                member,
                board,
                lost,
            } => {
                while let Some(news) = member.next_news() {
                    match news {
                        RoomNews::Board(news) => (*board, *lost) = (news, None),
                        RoomNews::Lost { why, .. } => *lost = Some(why),
                        RoomNews::Class(_) => {}
                    }
                }
                let mut board = Board::clone(board);
                board.faults.extend(lost.clone());
                board
            }
        }
    }

    /// Grows with every change of this program's own room.
    fn revision(&self) -> Option<u64> {
        match self {
            Self::Own(handle) => Some(handle.state().revision),
            Self::Elsewhere { .. } => None,
        }
    }
}

/// The room that is shown.
struct Open {
    source: Source,
    context: CourseContext,
    page: Option<PathBuf>,
    /// The board that the page shows.
    drawn: Option<Board>,
}

impl RoomControl for Open {
    fn board(&mut self) -> Board {
        let board = self.source.board();
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

    fn reached(&self) -> BTreeSet<String> {
        match &self.source {
            Source::Own(handle) => handle.reached(),
            Source::Elsewhere { .. } => BTreeSet::new(),
        }
    }

    fn stage(&self, at: usize) -> Option<String> {
        let stage = self.context.course.stages.get(at)?;
        Some(stage.id.clone())
    }

    fn race(&self, named: &str) -> Result<InstructorRequest, String> {
        let mut words: Vec<&str> = named.split_whitespace().collect();
        let minutes = match words.as_slice() {
            [.., minutes, "min"] => {
                let minutes = minutes.parse().ok().filter(|it| (1..=600).contains(it));
                Some(minutes.ok_or("A race lasts 1 to 600 minutes, such as k04 15 min")?)
            }
            _ => None,
        };
        words.truncate(words.len() - 2 * usize::from(minutes.is_some()));
        let seed = words.first().and_then(|it| it.parse::<u64>().ok());
        let task = match (words.as_slice(), seed) {
            ([_, level @ ..], Some(seed)) if level.len() <= 1 => {
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
                "Write a mystery's seed and level, or an exercise, such as 7 2, k04 or k04 15 min"
                    .to_owned(),
            ),
        }?;
        Ok(match minutes {
            Some(minutes) => InstructorRequest::RaceFor { task, minutes },
            None => InstructorRequest::Race(Some(task)),
        })
    }

    fn answer(&self, stage: u32) -> Option<(String, String)> {
        let stage = self.context.course.stage(stage)?;
        let from = FigureSources::none(&stage.broken);
        let reason = fill_known(&stage.prediction.explanation, &from);
        Some((stage.id.clone(), reason))
    }

    fn order(&mut self, order: InstructorRequest) -> Result<(), String> {
        match &self.source {
            Source::Own(handle) => handle.order(&order),
            Source::Elsewhere { member, .. } => {
                member.order(order);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_default_route_comes_first_and_those_of_containers_last() {
        let of = |ip: [u8; 4], name: &str| (IpAddr::from(ip), name.to_owned());
        let wifi = of([192, 168, 1, 5], "wlan0");
        let mut found = vec![
            of([10, 8, 0, 2], "tun0"),
            of([172, 17, 0, 1], "docker0"),
            wifi.clone(),
            of([172, 20, 1, 4], "enp3s0"),
        ];
        order(&mut found, Some(wifi.0));
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["wlan0", "enp3s0", "tun0", "docker0"]);
    }

    #[test]
    fn an_address_of_a_tunnel_is_a_host() {
        let host = |address| tunnel(address).ok();
        assert_eq!(
            host("http://vote.example:80/").as_deref(),
            Some("vote.example:80")
        );
        assert_eq!(host("vote.example").as_deref(), Some("vote.example"));
        for wrong in ["", "https://x", "http://x/y", "a b", "\u{1b}[2J"] {
            assert_eq!(host(wrong), None, "{wrong}");
        }
    }
}
