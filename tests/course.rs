//! The course as data: everything shipped loads and refers to things that exist, and every fault of a course file is
//! one message with file and line. Nothing here trains.

use perflings::course::validate::{Vocabulary, structure};
use perflings::course::{Course, Source};

fn vocabulary(check: impl FnOnce(&Vocabulary<'_>)) {
    let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let keys = words("1 2 3 4 5 6 n p a b c d t space r T h s l tab e y m C o x w g ? q");
    let lints = words(
        "gradient-coverage ledger-open backward-too-short above-peak stuck-at-ln-vocab below-entropy not-finite no-kernels",
    );
    let command = |line: &str| match line.split_whitespace().nth(1) {
        Some("run" | "compare" | "check" | "course" | "list" | "hint" | "reset" | "init" | "doctor" | "replay") => Ok(()),
        _ => Err("unknown command".to_owned()),
    };
    check(&Vocabulary { keys: &keys, lints: &lints, command: &command });
}

#[test]
fn the_shipped_course_is_whole() {
    for language in ["en", "de"] {
        let course = Course::builtin(language);
        let problems: Vec<String> = course.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(course.stages.iter().map(|stage| stage.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert!(course.glossary.is_some());
        vocabulary(|vocabulary| {
            let found = structure(&Source::Embedded, &course, vocabulary);
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
        });
    }
}
