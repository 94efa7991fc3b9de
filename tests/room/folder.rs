//! Rooms in a shared folder: members that come before their room, clocks that differ, orders from two programs.

use std::time::{Duration, SystemTime};

use perflings::class::board::Presence;
use perflings::class::folder::RoomFolder;
use perflings::class::handle::{OpenError, RoomHandle, SecondBoard};
use perflings::class::link::{InstructorLink, ParticipantLink, RoomError, RoomNews};
use perflings::class::member::Member;
use perflings::class::record::InstructorRequest;
use perflings::course::Course;

use super::{news, participant, wait};

/// Opens a room in a folder that everybody can write to.
fn open_public(dir: &tempfile::TempDir) -> RoomHandle {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    std::fs::set_permissions(dir.path(), mode).expect("set");
    open(dir)
}

fn open(dir: &tempfile::TempDir) -> RoomHandle {
    RoomHandle::open(dir.path().to_owned(), true, Course::builtin()).expect("opened")
}

fn names(handle: &RoomHandle) -> Vec<String> {
    let board = handle.board();
    board.rows.into_iter().map(|row| row.name).collect()
}

#[test]
fn a_member_waits_for_its_room_and_gets_news_of_orders() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = RoomFolder::new(dir.path().to_owned());
    let member = Member::join(Box::new(place)).expect("a thread");
    member.share(participant('a', "Ana"));
    let RoomNews::Lost(RoomError::Later(why)) = news(&member) else {
        panic!("no room is there");
    };
    assert!(why.starts_with("no room is open in "), "{why}");
    let handle = open(&dir);
    assert!(matches!(news(&member), RoomNews::Class(_)));
    wait("Ana", || (names(&handle) == ["Ana"]).then_some(()));
    handle
        .order(&InstructorRequest::OpenVote("broken-init".to_owned()))
        .expect("written");
    let RoomNews::Class(class) = news(&member) else {
        panic!("the room is there");
    };
    assert_eq!(
        class.open_vote().map(|(stage, _)| stage),
        Some("broken-init")
    );
    // A second program of the instructor, such as the presenter's, closes the vote, and the first one carries that out.
    let taken = RoomHandle::open(dir.path().to_owned(), true, Course::builtin());
    assert!(
        matches!(taken.err(), Some(OpenError::Taken(_))),
        "one board has the room"
    );
    let mut other = SecondBoard::new(dir.path().to_owned(), Course::builtin());
    let seen = other.board().expect("the log");
    assert_eq!(
        (seen.rows.len(), seen.vote.is_some_and(|vote| vote.open)),
        (1, true)
    );
    other.order(&InstructorRequest::CloseVote).expect("written");
    wait("the other's order", || {
        handle.state().class.open_vote().is_none().then_some(())
    });
    // Once the board has ended, the other takes the room over.
    drop(handle);
    let reopen = InstructorRequest::OpenVote("broken-init".to_owned());
    wait("the room", || {
        other.order(&reopen).expect("left or carried out");
        let board = other.board().expect("the log");
        board.vote.is_some_and(|vote| vote.open).then_some(())
    });
}

#[test]
fn clocks_of_other_machines_do_not_matter() {
    let dir = tempfile::tempdir().expect("a folder");
    let handle = open(&dir);
    let year = Duration::from_secs(365 * 24 * 3600);
    let dates = [SystemTime::now() - 20 * year, SystemTime::now() + 20 * year];
    for (digit, date) in ['a', 'b'].into_iter().zip(dates) {
        let mut me = participant(digit, &digit.to_string());
        me.sequence = if digit == 'a' { 1 } else { u64::MAX };
        RoomFolder::new(dir.path().to_owned())
            .share(&me)
            .expect("shared");
        let name = format!("p-{}.json", digit.to_string().repeat(32));
        std::fs::File::options()
            .append(true)
            .open(dir.path().join(name))
            .and_then(|file| file.set_modified(date))
            .expect("set");
    }
    wait("both", || (names(&handle) == ["a", "b"]).then_some(()));
    let board = handle.board();
    assert!(
        board
            .rows
            .iter()
            .all(|row| row.presence == Presence::Here && row.open_s < 10)
    );
}

#[test]
fn a_bad_file_is_a_line_on_the_board_until_it_is_mended() {
    let dir = tempfile::tempdir().expect("a folder");
    let handle = open_public(&dir);
    let file = dir.path().join(format!("p-{}.json", "a".repeat(32)));
    std::fs::write(&file, "garbage\u{1b}[2J").expect("written");
    let faults = || handle.board().faults;
    let fault = wait("a fault", || faults().pop());
    assert!(fault.contains("is not a participant's record"), "{fault}");
    std::fs::remove_file(&file).expect("removed");
    RoomFolder::new(dir.path().to_owned())
        .share(&participant('a', "Ana"))
        .expect("shared");
    wait("Ana", || {
        (names(&handle) == ["Ana"] && faults().is_empty()).then_some(())
    });
}

#[test]
fn the_board_warns_of_a_folder_until_others_can_write_to_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let handle = open(&dir);
    let warning = handle.board().faults.pop().expect("a warning at once");
    assert!(
        warning.contains("nobody can join") && warning.contains("chmod 3770"),
        "{warning}"
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    std::fs::set_permissions(dir.path(), mode).expect("set");
    wait("its end", || handle.board().faults.is_empty().then_some(()));
}
